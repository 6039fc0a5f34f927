"""A run that is killed at any moment and started again loses nothing and asks nothing twice."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

from tests.eval.judge_command import SAMPLE
from tests.eval.killed_command import Command
from tests.forked import Forked
from tests.llm_replies import Incoming
from tests.llm_server import LlmServer
from tests.waiting import wait_until
from trajudge.judges.engine.cache import Cache

KILLS = 5
JUDGMENTS = SAMPLE * 2


def kept(cache: Path) -> int:
    """The answers in the cache, once what a killed process had received is taken in."""
    Cache(cache).close()
    with sqlite3.connect(cache) as connection:
        (count,) = connection.execute("SELECT count(*) FROM answers").fetchone()
        return int(count)


def wait_for(condition: int, server: LlmServer, process: Forked) -> None:
    """Until the server has seen so many requests, or the run has ended."""
    wait_until(lambda: server.stats.requests >= condition or process.poll() is not None)


@pytest.mark.slow
def test_sigkill_at_any_moment(tmp_path: Path) -> None:
    rng = np.random.default_rng(20)
    with LlmServer(latency=0.05) as server:
        killed = Command(server, tmp_path / "killed")
        for _ in range(KILLS):
            process = killed.start()
            wait_for(server.stats.requests + int(rng.integers(0, 12)), server, process)
            try:
                process.wait(timeout=float(rng.uniform(0, 0.1)))
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
            process.communicate()
            before, there = server.stats.requests, kept(killed.cache)
        assert 0 < there < JUDGMENTS, "the kills must fall into the run"
        killed.finish()
        assert server.stats.requests - before == JUDGMENTS - there
        whole = Command(server, tmp_path / "whole")
        whole.finish()
    assert killed.result("judgments.jsonl").count(b"\n") == JUDGMENTS
    for name in ("judgments.jsonl", "results.csv", "results.json", "manifest.json"):
        assert killed.result(name) == whole.result(name)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_keeps_what_was_under_way(tmp_path: Path, number: signal.Signals) -> None:
    with LlmServer(latency=0.2) as server:
        command = Command(server, tmp_path / "run", "--limit", "20")
        process = command.start()
        wait_for(10, server, process)
        process.send_signal(number)
        _, shown = process.communicate(timeout=120)
        assert process.returncode == 130
        assert b"the same command goes on" in shown
        assert b"Traceback" not in shown
        asked = server.stats.requests
        assert command.result("judgments.jsonl").count(b"\n") == asked == kept(command.cache)
        command.finish()
        assert server.stats.requests == 40


@pytest.mark.slow
def test_a_second_ctrl_c_ends_at_once_and_keeps_what_was_answered(tmp_path: Path) -> None:
    def latency(incoming: Incoming) -> float:
        return 0.0 if incoming.ordinal < 10 or incoming.ordinal >= 14 else 60.0

    with LlmServer(latency=latency) as server:
        command = Command(server, tmp_path / "run", "--limit", "10")
        process = command.start()
        wait_for(14, server, process)
        for number in (signal.SIGTERM, signal.SIGINT):
            time.sleep(0.3)
            process.send_signal(number)
        _, shown = process.communicate(timeout=40)
        assert process.returncode == 130
        assert b"Traceback" not in shown and b"interrupted" in shown
        assert kept(command.cache) == 10
        command.finish()
        assert server.stats.requests == 20 + 4
