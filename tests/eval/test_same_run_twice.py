"""A run that is given twice is refused: its judge would be compared with itself."""

from __future__ import annotations

from pathlib import Path

import pytest

import trajudge as tj
from tests.eval.runs_to_score import make_run
from trajudge.eval.cli import main
from trajudge.util.errors import UserError

COMMANDS = [
    "score {} {}",
    "report {} {} --out out",
    "select {} {} --target-precision 0.5 --out out",
    "audit {} {} --out out",
    "score {} {} --ranks",
    "accept --judge judge --threshold 1 --run {} --run {} --out out",
    "label build {} {} --out out",
    "robust {} {} --attacked attacked --out out",
]


@pytest.fixture(autouse=True)
def run(own_folder: None) -> Path:
    """The run's folder ``run``, with a link to it."""
    Path("link").symlink_to("run")
    return make_run(Path("run"))


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("again", "sentence"),
    [
        ("run/", "error: run: is given twice: give each folder once"),
        ("link/", "error: link: is the folder run, which is given twice: give each folder once"),
    ],
)
def test_a_command_takes_a_run_once(
    command: str, again: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(command.format("run", again).split()) == 2
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", sentence + "\n")
    assert not Path("out").exists()


def test_so_does_python(run: Path) -> None:
    judged = tj.read_run(run)
    with pytest.raises(UserError, match="run: is given twice"):
        judged + tj.read_run("run/")
    with pytest.raises(UserError, match="run: is given twice"):
        tj.score([run, "run"])
    with pytest.raises(UserError, match="link: is the folder run, which is given twice"):
        tj.compare([judged, "link"])
    with pytest.raises(UserError, match="run: is given twice"):
        tj.select([judged, run], target_precision=0.5)
