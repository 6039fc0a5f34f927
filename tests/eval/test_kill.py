"""A run that is killed, interrupted, or run twice at once loses nothing and pays nothing twice."""

from __future__ import annotations

import re
import signal
import socket
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
from trajudge.eval.store.run_folder import LOCK
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


TOGETHER = 8
LIMIT = 32


def shared(server: LlmServer, tmp_path: Path, name: str) -> Command:
    """The main command in a folder of its own, over a cache that all of them share."""
    command = Command(server, tmp_path / name)
    command.words += ["--adapter", "http"]  # starts sooner than an SDK
    words = {"--samples": "1", "--concurrency": str(TOGETHER), "--cache": str(tmp_path / "cache")}
    for option, value in words.items():
        command.words[command.words.index(option) + 1] = value
    command.words += ["--limit", str(LIMIT)]
    return command


@pytest.mark.slow
def test_two_runs_over_one_cache_pay_every_prompt_once(tmp_path: Path) -> None:
    with LlmServer(latency=0.05) as server:
        commands = [shared(server, tmp_path, name) for name in ("one", "other")]
        processes = [command.start() for command in commands]
        told = [process.communicate(timeout=60)[1].decode() for process in processes]
        assert [process.returncode for process in processes] == [0, 0], told
        assert (server.stats.requests, server.stats.duplicates) == (LIMIT, 0)
    one, other = (command.result("judgments.jsonl") for command in commands)
    assert one == other and one.count(b"\n") == LIMIT


@pytest.mark.slow
def test_what_a_killed_process_was_asking_is_asked_by_the_one_that_waited(tmp_path: Path) -> None:
    """Only what was in flight at the kill is asked again, and at once."""
    hung = {"hang": True}

    def latency(incoming: Incoming) -> float:
        return 60.0 if hung["hang"] else 0.0

    with LlmServer(latency=latency) as server:
        killed = shared(server, tmp_path, "killed").start()
        wait_until(lambda: server.stats.requests == TOGETHER)
        waiting = shared(server, tmp_path, "waiting")
        waiter = waiting.start()
        wait_until((tmp_path / "waiting" / "runs").is_dir)
        time.sleep(0.5)
        assert server.stats.requests == TOGETHER, "the other one waits for the answers"
        hung["hang"] = False
        killed.kill()
        killed.communicate()
        _, told = waiter.communicate(timeout=120)
        assert waiter.returncode == 0, told.decode()
        assert server.stats.requests == LIMIT + TOGETHER
        assert server.stats.duplicates == TOGETHER
    assert waiting.result("judgments.jsonl").count(b"\n") == LIMIT


@pytest.mark.slow
def test_a_second_process_is_told_who_works_in_the_folder(tmp_path: Path) -> None:
    with LlmServer(latency=60.0) as server:
        first = shared(server, tmp_path, "run")
        holder = first.start()
        wait_until(lambda: server.stats.requests == TOGETHER)
        process = first.start()
        _, told = process.communicate(timeout=50)
        assert process.returncode == 2
        owner = rf"process {holder.pid} on {re.escape(socket.gethostname())}, since 20\d\d-"
        assert re.search(owner, told.decode())
        assert server.stats.requests == TOGETHER
        holder.send_signal(signal.SIGKILL)
        holder.communicate()
        server.latency = 0.0
        first.finish()  # the dead one's lock is taken over
    (run,) = (first.folder / "runs").iterdir()
    assert not (run / LOCK).exists()
