"""A result is printed before it is written: a file that cannot be written does not lose it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.environments.cases import agent, job, sound
from tests.environments.offline import recorded
from trajudge.environments.agents.script import Behaviour
from trajudge.eval.cli import main

FULL = "/dev/full"  # a device that takes nothing
pytestmark = pytest.mark.skipif(not Path(FULL).exists(), reason="the device that is always full")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    case = sound("wish")
    made = tmp_path_factory.mktemp("recorded")
    return recorded(made, [case], [job(case, agent(Behaviour.NEAR_MISS))])


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("results DIR --cases DIR/cases.jsonl", "1 agent, 1 run"),
        ("results DIR --cases DIR/cases.jsonl --full", "Agents over the suite"),
        ("verify DIR --other-goals 1", "the labels of 1 of 1 runs"),
    ],
)
def test_the_result_is_printed_where_the_file_cannot_be_written(
    words: str, shown: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    named = words.replace("DIR", str(folder)).split()
    assert main(["env", *named, "--save", FULL]) == 2
    captured = capsys.readouterr()
    assert shown in captured.out
    assert captured.err.startswith(f"error: {FULL}: cannot be written (No space left")


@pytest.mark.parametrize("command", ["results", "verify"])
def test_a_file_that_cannot_be_is_refused_before_the_work(
    command: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rest = ["--other-goals", "1"] if command == "verify" else ["--cases", str(folder / "no.jsonl")]
    below = folder / "cases.jsonl" / "x.json"
    assert main(["env", command, str(folder), *rest, "--save", str(below)]) == 2
    captured = capsys.readouterr()
    assert f"{folder / 'cases.jsonl'} is a file, not a folder" in captured.err
    assert captured.out == ""
