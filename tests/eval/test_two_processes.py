"""Two processes at once: never in one folder, and over one cache nothing is paid twice."""

from __future__ import annotations

import re
import signal
import socket
import time
from pathlib import Path

import pytest

from tests.eval.killed_command import Command
from tests.llm_replies import Incoming
from tests.llm_server import LlmServer
from tests.waiting import wait_until
from trajudge.eval.store.run_folder import LOCK

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
