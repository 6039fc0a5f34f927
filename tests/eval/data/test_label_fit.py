"""Labels that do not fit the trajectories are said, before a judge is asked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from trajudge.annotations import store
from trajudge.annotations.model import Label
from trajudge.eval.cli import main
from trajudge.trajectories.sample import sample_path

Change = Callable[[int, Label], Label | None]


def judged(tmp_path: Path, change: Change, *more: str) -> int:
    """Judge the sample by its labels as ``change`` makes them, or leaves them out: all are of test
    unless it says otherwise."""
    labels = store.load(sample_path() / "labels.jsonl")
    changed = [change(i, a.model_copy(update={"split": "test"})) for i, a in enumerate(labels)]
    file = tmp_path / "mine.jsonl"
    store.write(file, [label for label in changed if label])
    words = ["--judge", "heuristic", "--data", "sample", "--annotations", str(file), *more]
    return main(["judge", *words, "--out", str(tmp_path / "run")])


def renamed(label: Label, **key: str) -> Label:
    return label.model_copy(update={"key": label.key.model_copy(update=key)})


def test_labels_of_which_none_belongs_are_refused_by_a_key_of_either(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It said that --split, which nobody had given, left no trajectory."""
    assert judged(tmp_path, lambda _, label: renamed(label, benchmark="mine")) == 2
    error = capsys.readouterr().err
    assert "mine.jsonl: none of its" in error
    assert "'mine'" in error
    assert not (tmp_path / "run").exists()


def test_runs_of_tasks_without_a_split_are_counted_and_one_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They were left out without a word."""
    lost = store.load(sample_path() / "labels.jsonl")[0].key
    same = {"benchmark": lost.benchmark, "task_id": lost.task_id}

    def change(_: int, label: Label) -> Label | None:
        return None if same.items() <= label.key.model_dump().items() else label

    assert judged(tmp_path, change) == 0
    error = capsys.readouterr().err
    assert "warning: not judged, because no label assigns their tasks to dev or test: " in error
    assert repr(lost.task_id) in error
    assert judged(tmp_path, change, "--split", "all") == 2  # other settings than those of the run
    (tmp_path / "all").mkdir()
    assert judged(tmp_path / "all", change, "--split", "all") == 0
    assert "not judged, because" not in capsys.readouterr().err


def test_labels_that_miss_their_trajectories_are_counted_and_one_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def change(number: int, label: Label) -> Label:
        return renamed(label, task_id="Task_1") if number == 3 else label

    assert judged(tmp_path, change, "--split", "all") == 0
    error = capsys.readouterr().err
    assert "labels that belong to no trajectory of the data: 1 (the first of" in error
    assert "task 'Task_1'" in error
    assert "trajectories without a label: 1 (" in error


def test_labels_of_other_agents_and_a_filter_are_no_misfit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def change(number: int, label: Label) -> Label | None:
        if number == 5:
            return None
        return renamed(label, agent="somebody") if number == 3 else label

    assert judged(tmp_path, change, "--limit", "20") == 0
    assert "belong to no trajectory" not in capsys.readouterr().err
