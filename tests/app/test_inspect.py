"""``trajudge inspect``: starts soon, says where it is, ends on Ctrl-C."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.app.made_runs import Task, write_run
from trajudge.app import inspect as command
from trajudge.eval.cli import main as trajudge

TASKS = [Task(str(place), place > 3, place < 6) for place in range(9)]


def test_it_serves_until_ctrl_c(tmp_path: Path) -> None:
    run = write_run(tmp_path, TASKS)
    words = [sys.executable, "-m", "trajudge.eval.cli", "inspect", str(run)]
    before = time.monotonic()
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as ran:
        assert ran.stdout is not None
        assert ran.stderr is not None
        (address,) = re.findall(r"^http://127\.0\.0\.1:\d+/", ran.stdout.readline())
        with urlopen(address) as answer:
            assert b"/run/judge" in answer.read()
        # One second on an idle machine; a loaded one is no failure.
        assert time.monotonic() - before < 10
        ran.send_signal(signal.SIGINT)
        assert ran.wait(timeout=10) == 0
        assert ran.stderr.read() == ""


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "nothing to look at"),
        (["absent"], "is not the folder of a run"),
        (["RUN", "--host", "0.0.0.0"], "--i-know-it-is-open"),
        (["RUN", "--auth", "--host", "no such host"], "cannot be listened on"),
        (["RUN", "--port", "70000"], "the highest port is 65535"),
        (["RUN", "--port", "TAKEN"], "choose another --port"),
    ],
)
def test_bad_input_is_one_sentence(
    words: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = write_run(tmp_path, TASKS)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        known = {"RUN": str(run), "TAKEN": str(taken.getsockname()[1])}
        assert trajudge(["inspect", *(known.get(word, word) for word in words)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert sentence in line


def test_a_missing_extra_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "find_spec", lambda name: None)
    assert trajudge(["inspect", str(write_run(tmp_path, TASKS))]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "pip install 'trajudge[app]'" in line
