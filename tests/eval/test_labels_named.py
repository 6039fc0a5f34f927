"""What is wrong with the labels that a user names is said with their file."""

from __future__ import annotations

from pathlib import Path

import pytest

from trajudge.annotations import store
from trajudge.annotations.model import Label, Role
from trajudge.eval.cli import main
from trajudge.trajectories.sample import sample_path


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("judged") / "run"
    assert main(["judge", "--judge", "heuristic", "--data", "sample", "--out", str(folder)]) == 0
    return folder


def labels() -> list[Label]:
    return store.load(sample_path() / "labels.jsonl")[:3]


def command(words: str, run: Path, out: Path, file: Path) -> list[str]:
    places = {"RUN": run, "OUT": out, "FILE": file}
    return [str(places.get(word, word)) for word in words.split()]


COMMANDS = (
    "judge --judge heuristic --data sample --out OUT --annotations FILE",
    "score RUN --annotations FILE",
    "audit RUN --out OUT --annotations FILE",
    "select RUN --target-precision 0.5 --out OUT --annotations FILE",
    "robust --judge heuristic --data sample --limit 3 --out OUT --annotations FILE",
    "data perturb --data sample --limit 3 --out OUT --annotations FILE",
    "judges train --data sample --annotations FILE",
    "score RUN --ranks --annotations FILE",
    "label build RUN --out OUT --annotations FILE",
    "label build RUN --out OUT --gold FILE",
)
ASKING = [words for words in COMMANDS if words.split()[0] in ("audit", "robust", "judges")]


@pytest.mark.parametrize("words", COMMANDS)
@pytest.mark.parametrize("roles", [(), (Role.SECONDARY,)])
def test_a_file_without_a_label_is_refused_by_its_name(
    words: str,
    roles: tuple[Role, ...],
    run: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Some said to name labels, which had been done, and others went on without a word."""
    file = tmp_path / "mine.jsonl"
    store.write(file, [labels()[0].model_copy(update={"role": role}) for role in roles])
    assert main(command(words, run, tmp_path / "out", file)) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert f"{words.split()[-2]} {file}: holds no label" in error


@pytest.mark.parametrize("words", ASKING)
@pytest.mark.parametrize("changed", ["task", "unsure"])
def test_labels_of_other_runs_and_unsure_ones_are_refused_by_their_name(
    words: str, changed: str, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of unsure labels ``robust`` said that its own folder held no trajectory."""
    file = tmp_path / "mine.jsonl"
    one = labels()[0]
    other = one.key.model_copy(update={"task_id": "another"})
    update = {"key": other} if changed == "task" else {"success": None}
    store.write(file, [one.model_copy(update=update)])
    assert main(command(words, run, tmp_path / "out", file)) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert str(file) in error
    assert "name" in error


def test_a_report_by_the_labels_of_other_runs_comes_with_a_warning(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.jsonl"
    one = labels()[0]
    other = one.key.model_copy(update={"task_id": "another"})
    store.write(file, [one.model_copy(update={"key": other})])
    words = "report RUN --out OUT --annotations FILE"
    assert main(command(words, run, tmp_path / "x.html", file)) == 0
    error = capsys.readouterr().err
    assert f"warning: {file}: none of its 1 labels belongs to a trajectory that is judged" in error
