"""A run that workers share: each a process of its own, as on another machine."""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

import orjson

from tests.forked import Forked, start
from tests.llm_server import LlmServer
from trajudge.eval.cli import main

ROOT = Path(__file__).parents[3]
RUNS = 90
SAME = ("judgments.jsonl", "labels.jsonl", "rewards.jsonl", "results.json", "results.csv")


def words(server: LlmServer, cache: Path) -> list[str]:
    """The options of the judge; every worker has a cache of its own, as on another machine."""
    return [
        *("--data", "sample", "--model", "gpt-4o", "--base-url", f"{server.url}/v1"),
        *("--concurrency", "4", "--limit", str(RUNS), "--cache", str(cache)),
    ]


def ended(process: Forked | subprocess.Popen[bytes], code: int = 0) -> str:
    shown, said = process.communicate(timeout=120)
    assert process.returncode == code, said.decode()
    return (shown + said).decode()


def work(run: str, *options: str) -> list[str]:
    """The words of the command that works on a run."""
    return ["run", "work", "--shared", run, *options]


def worker(run: str, options: list[str], *own: str) -> Forked:
    return start("trajudge", work(run, *own, *options), ROOT, os.environ)


def merged(run: str, out: Path) -> str:
    """Merge the run in this process, and return what that shows."""
    shown = StringIO()
    with redirect_stdout(shown), redirect_stderr(shown):
        assert main(["run", "merge", "--shared", run, "--out", str(out)]) == 0
    return shown.getvalue()


def check_same(out: Path, alone: Path) -> None:
    for name in SAME:
        assert (out / name).read_bytes() == (alone / name).read_bytes(), name
    mine, theirs = (orjson.loads((f / "manifest.json").read_bytes()) for f in (out, alone))
    assert mine == theirs


def requests(server: LlmServer) -> Counter[bytes]:
    return Counter(seen.body for seen in server.seen)


def has_seen(server: LlmServer, count: int) -> bool:
    """Whether the server was asked so often."""
    return len(server.seen) >= count
