"""Batches of a provider, and runs that were made through them."""

from __future__ import annotations

from pathlib import Path

import orjson

from tests.batch_server import BatchServer
from tests.command_words import instead
from tests.llm_replies import Incoming, answer, verdict_text
from trajudge.eval.judge import main
from trajudge.judges.batch.openai import output_of


def run_file(path: Path, text: str, *, is_verdict: bool = True) -> None:
    """Answer every line as ``vllm run-batch`` does: its output is in the order of the input."""
    lines = []
    for line in path.read_bytes().splitlines():
        asked = orjson.loads(line)
        assert (asked["method"], asked["url"]) == ("POST", "/v1/chat/completions")
        incoming = Incoming(0, "openai", "", {}, orjson.dumps(asked["body"]))
        verdict = verdict_text(incoming.prompt) if is_verdict else ""
        body = orjson.loads(answer(incoming, verdict + text).body)
        response = {"status_code": 200, "request_id": "vllm-batch-1", "body": body}
        name = {"id": "vllm-1", "custom_id": asked["custom_id"]}
        lines.append(orjson.dumps({**name, "response": response, "error": None}))
    output_of(str(path)).write_bytes(b"\n".join(lines) + b"\n")


OPTIONS = "lines=50000,bytes=200000000,poll=0.05,grace=0.5"
JUDGMENTS = 8


def judge(server: BatchServer, out: str, *words: str, name: str = "gpt-4o") -> int:
    root = server.url if name.startswith("claude") else f"{server.url}/v1"
    cache = ("--cache", f"{out}.sqlite")
    data = ("--data", "sample", "--limit", str(JUDGMENTS), "--model", name, "--base-url", root)
    batch = ("--batch-options", OPTIONS) if any("--batch" in word for word in words) else ()
    return main(instead([*data, "--out", out, *batch, *cache], ["--yes", *words]))


def live(server: BatchServer, *words: str, name: str = "gpt-4o") -> bytes:
    root = server.url if name.startswith("claude") else f"{server.url}/v1"
    data = ("--data", "sample", "--limit", str(JUDGMENTS), "--model", name, "--base-url", root)
    assert main([*data, "--out", "live", "--yes", "--cache", "live.sqlite", *words]) == 0
    return Path("live/judgments.jsonl").read_bytes()
