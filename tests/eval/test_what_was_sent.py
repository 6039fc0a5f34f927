"""A run says why it waits, keeps a log without keys, and tells what it really sent."""

from __future__ import annotations

import re
from importlib import metadata
from pathlib import Path

import orjson
import pytest

from tests.eval.judge_command import model
from tests.llm_replies import Incoming, Outgoing, error, verdict_text
from tests.llm_server import LlmServer, at
from tests.screens import on_one_line
from trajudge.eval.store.run_folder import LOG, read_manifest

pytestmark = pytest.mark.usefixtures("own_folder")
KEY = "zz0123456789abcdef"


def picky(incoming: Incoming) -> str | None:
    """As a reasoning model: neither ``max_tokens`` nor ``temperature``."""
    for parameter in ("max_tokens", "temperature"):
        if parameter in incoming.payload:
            return f"no-{parameter.replace('_', '-')}"
    return None


def test_the_manifest_tells_what_really_went_out(capsys: pytest.CaptureFixture[str]) -> None:
    with LlmServer(script=picky, record=1) as server:
        tags = ("--judge-option", "answer=tags")
        assert model(server, "--limit", "6", *tags, name="picky-1") == 0
        (last,) = server.seen
    manifest = read_manifest(Path("run"))
    assert manifest["parameters"] == {"max_tokens": 1024, "temperature": 0.0, "seed": 0}
    (sent,) = manifest["sent"]
    assert sent == {
        "model": "picky-1",
        "endpoint": f"{server.url}/v1",
        "adapter": "http",
        "sdk": f"aiohttp {metadata.version('aiohttp')}",
        "parameters": {"max_completion_tokens": 1024, "seed": 0},
    }
    on_the_wire = {k: v for k, v in last.payload.items() if k not in ("model", "messages")}
    assert on_the_wire == sent["parameters"]
    assert "through the lean http adapter (--adapter openai" in capsys.readouterr().err


def test_the_sdk_asks_where_it_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with LlmServer() as server:
        assert model(server, "--limit", "1", "--adapter", "openai") == 0
    (sent,) = read_manifest(Path("run"))["sent"]
    assert sent["sdk"] == f"openai {metadata.version('openai')}"
    assert "lean" not in capsys.readouterr().err


def test_what_was_sent_is_kept_over_sessions_and_told_of_cached_replies() -> None:
    with LlmServer(script=picky) as server:
        assert model(server, "--limit", "4", name="picky-1") == 0
        before = read_manifest(Path("run"))["sent"]
        assert model(server, "--limit", "4", name="picky-1") == 0
        assert read_manifest(Path("run"))["sent"] == before
        asked = server.stats.requests
        assert model(server, "--limit", "4", "--out", "copy", name="picky-1") == 0
        assert server.stats.requests == asked
    (sent,) = read_manifest(Path("copy"))["sent"]
    assert sent == before[0] | {"adapter": None, "sdk": None}


def test_a_manifest_from_before_stays_the_same_run() -> None:
    with LlmServer() as server:
        assert model(server, "--limit", "3") == 0
        path = Path("run/manifest.json")
        manifest = orjson.loads(path.read_bytes())
        del manifest["sent"]
        path.write_bytes(orjson.dumps(manifest))
        assert model(server, "--limit", "3") == 0
        assert server.stats.requests == 3


@pytest.mark.slow
def test_a_pause_says_until_when_and_why(capsys: pytest.CaptureFixture[str]) -> None:
    def answered(incoming: Incoming) -> str | Outgoing:
        if incoming.ordinal == 2:
            return error(incoming, 429, "slow down", kind="requests", headers={"retry-after": "3"})
        return verdict_text(incoming.prompt)

    with LlmServer(text=answered) as server:
        assert model(server, "--limit", "4", "--concurrency", "1") == 0
    said = on_one_line(capsys.readouterr().err)
    assert re.search(r"judged 2/4 .*paused until \d\d:\d\d:\d\d \(429, Retry-After 3 s\)", said)
    log = Path("run", LOG).read_text()
    assert "all calls pause for 3.00 s: 429, Retry-After 3 s" in log
    assert re.search(r"^20\d\d-\d\d-\d\d .*RateLimited: 127\.0\.0\.1:\d+ answered 429", log, re.M)


def test_no_key_gets_into_the_log(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)

    def repeats_the_key(incoming: Incoming) -> Outgoing:
        return error(incoming, 400, f"no such thing as {KEY} here", kind="invalid_request_error")

    with LlmServer(text=repeats_the_key) as server:
        assert model(server, "--limit", "2") == 1
    log = Path("run", LOG).read_text()
    assert "no such thing as [key] here" in log
    assert KEY not in log


@pytest.mark.slow
def test_a_smaller_window_and_retries_are_told() -> None:
    with LlmServer(slots=2, latency=0.05, script=at({3: "500"})) as server:
        assert model(server, "--limit", "30", "--concurrency", "16") == 0
    assert re.search(r"window \d+ of 16 calls at once", Path("run", LOG).read_text())
