"""``trajudge label QUEUE``: starts, says where it is, asks for a token where it is told to."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.annotations.labelling.queues import item, queue
from trajudge.eval.cli import main as trajudge


def test_it_serves_until_ctrl_c(tmp_path: Path) -> None:
    queue(tmp_path / "queue", [item(0)]).close()
    words = [sys.executable, "-m", "trajudge.eval.cli", "label", str(tmp_path / "queue")]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as ran:
        assert ran.stdout is not None
        assert ran.stderr is not None
        (address,) = re.findall(r"^http://127\.0\.0\.1:\d+/", ran.stdout.readline())
        with urlopen(address) as answer:
            assert b"Who are you?" in answer.read()
        ran.send_signal(signal.SIGINT)
        assert ran.wait(timeout=20) == 0
        assert ran.stderr.read() == ""


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["serve", "absent"], "make one with  trajudge label build"),
        (["absent"], "no command 'label absent'"),
        (["QUEUE", "--auth"], "trajudge label people"),
        (["QUEUE", "--host", "0.0.0.0"], "--i-know-it-is-open"),
    ],
)
def test_bad_input_is_one_sentence(
    words: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    queue(tmp_path, [item(0)]).close()
    assert trajudge(["label", *(str(tmp_path) if word == "QUEUE" else word for word in words)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert sentence in line
