"""``trajudge inspect`` and ``trajudge label``, started as their users start them."""

from __future__ import annotations

import resource
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.annotations.queues import item, queue
from tests.app.made_runs import Task, write_run
from tests.app.started import started
from trajudge.eval.cli import main as trajudge
from trajudge.eval.store.run_folder import write_manifest

TASKS = [Task(str(place), place > 3, place < 6) for place in range(9)]


def cpu_of_children() -> float:
    """Processor time of the processes that have ended: a loaded machine adds little to it."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@pytest.mark.slow
def test_it_serves_until_ctrl_c(tmp_path: Path) -> None:
    run = write_run(tmp_path, TASKS)
    before = cpu_of_children()
    new = str(tmp_path / "queues")  # a folder of queues is made with the first of them
    with started("inspect", str(run), "--data", "sample", "--queues", new) as page:
        assert b"/run/judge" in page
    assert cpu_of_children() - before < 10  # seconds: about one on an idle machine


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "nothing to look at"),
        (["absent"], "is not the folder of a run"),
        (["RUN", "HALF"], "half: has no judgments.jsonl: it was copied in part"),
        (["RUN", "--host", "0.0.0.0", "--no-token"], "leave --no-token out"),
        (["RUN", "--host", "no such host"], "cannot be listened on"),
        (["RUN", "--port", "70000"], "--port 70000: must be at most 65535"),
        (["RUN", "--port", "TAKEN"], "choose another --port"),
        (["RUN", "--host", "198.51.100.1"], "choose another --host"),
        (["RUN", "--data", "trajudge:absent"], "no file or folder 'absent': write the path"),
        (["RUN", "--data", "sample", "--data", "absent"], "give a path, KIND:PATH"),
        (["RUN", "--data", "agentrewardbench"], "write --data agentrewardbench:PATH"),
        (["RUN", "--data", "sample::goals=absent"], "absent"),
        (["RUN", "--annotations", "trajudge:absent"], "no file or folder 'absent': write KIND"),
        (["RUN", "--annotations", "absent"], "absent: no such file"),
        (["RUN", "--queues", "absent/queues"], "no folder 'absent' to make it in: name a folder"),
        (["RUN", "--queues", "FILE"], "is a file: name a folder"),
    ],
)
def test_bad_input_is_one_sentence(
    words: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, half = write_run(tmp_path, TASKS), tmp_path / "half"
    half.mkdir()
    write_manifest(half, {"judge": "judge"})
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        known = {
            "RUN": str(run),
            "HALF": str(half),
            "FILE": str(run / "manifest.json"),
            "TAKEN": str(taken.getsockname()[1]),
        }
        assert trajudge(["inspect", *(known.get(word, word) for word in words)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert sentence in line


def test_a_missing_extra_is_one_sentence(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code = "import sys; sys.modules['starlette'] = None; from trajudge.eval.cli import main; "
    words = ["inspect", str(write_run(tmp_path, TASKS))]
    done = subprocess.run([sys.executable, "-c", f"{code}sys.exit(main({words}))"], check=False)
    assert done.returncode == 2
    (line,) = capfd.readouterr().err.splitlines()
    assert "pip install 'trajudge[app]'" in line


@pytest.mark.slow
def test_a_queue_is_served_until_ctrl_c(tmp_path: Path) -> None:
    queue(tmp_path / "queue", [item(0)]).close()
    with started("label", str(tmp_path / "queue")) as page:
        assert b"Who are you?" in page


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["serve", "absent"], "make one with  trajudge label build"),
        (["absent"], "no command 'label absent'"),
        (["QUEUE", "--auth"], "trajudge label people"),
        (["QUEUE", "--data", "trajudge:absent"], "there is no file or folder 'absent'"),
        (["serve", "QUEUE", "--host", "0.0.0.0", "--no-token"], "leave --no-token out"),
        (["serve", "QUEUE", "--auth", "--no-token"], "exclude each other"),
    ],
)
def test_bad_input_about_a_queue_is_one_sentence(
    words: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    queue(tmp_path, [item(0)]).close()
    assert trajudge(["label", *(str(tmp_path) if word == "QUEUE" else word for word in words)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert sentence in line


def test_the_help_says_where_a_token_comes_from(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "140")
    for command, words in (
        (["label", "serve"], "their own token, which trajudge label people printed"),
        (["inspect"], "--no-token"),
    ):
        with pytest.raises(SystemExit):
            trajudge([*command, "--help"])
        assert words in " ".join(capsys.readouterr().out.split()), command
