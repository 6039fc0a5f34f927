"""Judgments beside their trajectories hold what the run's readers hold; several runs as one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.eval.cases import key, label, said
from tests.eval.data.view_runs import judgments, write
from trajudge.annotations import store
from trajudge.annotations.model import Role
from trajudge.app.workspace import OpenedRun
from trajudge.eval.sources import combine, observed_verdicts, read_run
from trajudge.eval.store.filters import (
    JudgmentView,
    combine_views,
    parse_filter,
    parse_sorting,
    read_view,
    sorted_rows,
)
from trajudge.eval.store.run_folder import (
    JUDGMENTS,
    LABELS,
    judgment_line,
    write_labels,
    write_manifest,
    write_rewards,
)
from trajudge.util.errors import UserError

pytestmark = pytest.mark.usefixtures("own_folder")


def test_it_holds_what_the_readers_hold(tmp_path: Path) -> None:
    folder = write(tmp_path / "run")
    view, source = read_view(folder), read_run(folder)
    assert [*view.judgments] == [*source.judgments]
    for row, judgment in enumerate(source.judgments):
        record = view.record(row)
        assert record["task_id"] == judgment.key.task_id
        for name in ("judge", "sample", "status", "success", "score"):
            assert record[name] == getattr(judgment, name), name
        costs = [call.cost for call in judgment.calls]
        known = [cost for cost in costs if cost is not None]
        cost = sum(known) if len(known) == len(costs) else None
        assert record["cost"] == (None if cost is None else pytest.approx(cost))
        assert record["tokens"] == sum(130 for _ in judgment.calls)
        assert (record["seconds"] or 0) == sum(call.seconds for call in judgment.calls)
        label = source.labels.get(judgment.key)
        unsure = label is not None and label.success is None
        assert record["expert"] == ("unsure" if unsure else label and label.success)
        reward = source.rewards.get(judgment.key)
        assert record["rule"] == (None if reward is None else reward > 0.5)


def test_samples_of_one_judge_that_disagree_make_a_trajectory_unstable(tmp_path: Path) -> None:
    answers = {0: (True, True), 1: (False, False), 2: (True, False), 3: (True, None)}
    lines = [
        said(task, success, judge="a", sample=sample)
        for task, both in answers.items()
        for sample, success in enumerate(both)
    ]
    lines.append(said(0, False, judge="b"))  # another judge's, no sample of the first
    view = read_view(write(tmp_path / "run", lines))
    unstable = {view.keys.key(place).task_id for place in np.flatnonzero(view.unstable).tolist()}
    assert unstable == {key(2).task_id}


def test_a_trajectory_counts_each_judge_once_as_scoring_does(tmp_path: Path) -> None:
    folder = write(tmp_path / "run")
    view = read_view(folder)
    votes: dict[str, list[int]] = {}
    for observed in observed_verdicts(read_run(folder), "exclude").values():
        for place, answered, said_yes in zip(
            observed.index, observed.answered, observed.predictions, strict=True
        ):
            counts = votes.setdefault(observed.reference.keys.key(place).task_id, [0, 0])
            if answered:
                counts[0 if said_yes == 1 else 1] += 1
    assert len(votes) == 10
    for place, trajectory in enumerate(view.keys):
        if trajectory.task_id in votes:
            assert view.votes[:2, place].tolist() == votes[trajectory.task_id]
        assert view.votes[:, place].sum() == 3


def test_other_labels_stand_in_the_place_of_the_runs(tmp_path: Path) -> None:
    folder, other = write(tmp_path / "run"), write(tmp_path / "labels")
    write_labels(other, [label(11, True)])
    view = read_view(folder, f"trajudge:{other / LABELS}")
    assert [key.task_id for key in view.keys.at(view.expert == 1)] == ["webarena.11"]
    assert [one.success for one in view.opinions(key(11))] == [True]


def test_every_annotator_is_heard(tmp_path: Path) -> None:
    folder = write(tmp_path / "run")
    second = label(1, False).model_copy(update={"annotator": "B", "role": Role.SECONDARY})
    store.write(folder / LABELS, [*store.load(folder / LABELS), second])
    view = read_view(folder)
    assert [(one.annotator, one.success) for one in view.opinions(key(1))] == [
        ("A", True),
        ("B", False),
    ]


def test_a_run_that_grows_is_read_again(tmp_path: Path) -> None:
    every = judgments()
    run = OpenedRun("run", write(tmp_path / "run", every[:3]))
    assert len(run.view().judgments) == 3
    assert run.view() is run.view()
    line = judgment_line(every[3])
    with (run.folder / JUDGMENTS).open("ab") as file:
        file.write(line[:50])
        file.flush()
        run._next = 0.0
        assert len(run.view().judgments) == 3
        file.write(line[50:])
    run._next = 0.0
    assert [*run.view().judgments][3].judge == every[3].judge
    with (run.folder / JUDGMENTS).open("ab") as file:
        file.write(b'{"key": 1}\n')
    run._next = 0.0
    with pytest.raises(UserError, match=r"judgments\.jsonl, line 5"):
        run.view()


def two(folder: Path) -> list[Path]:
    first = write(folder / "first")
    other = [said(task, task > 3, judge="a" if task % 2 else "z") for task in range(8, 16)]
    second = write(folder / "second", other)
    write_labels(second, [label(8, True), label(15, False)])
    return [first, second]


def combined(folders: list[Path]) -> JudgmentView:
    return combine_views({folder.name: read_view(folder) for folder in folders}, folders)


def test_several_runs_hold_what_the_combined_sources_hold(tmp_path: Path) -> None:
    folders = two(tmp_path)
    view, source = combined(folders), combine([read_run(folder) for folder in folders])
    names = {str(folder): folder.name for folder in folders}
    for row, judgment in enumerate(source.judgments):
        record, judge = view.record(row), judgment.judge
        for path, name in names.items():
            judge = judge.replace(path, name)
        assert (record["judge"], record["task_id"]) == (judge, judgment.key.task_id)
        assert (record["success"], record["status"]) == (judgment.success, judgment.status)
        label = source.labels.get(judgment.key)
        unsure = label is not None and label.success is None
        assert record["expert"] == ("unsure" if unsure else label and label.success)
    assert view.judgments.source.tolist() == [0] * len(judgments()) + [1] * 8
    assert len(view.keys) == 16


def test_filters_ask_over_all_judges(tmp_path: Path) -> None:
    """Of task 8 a and z say yes, b no (two samples that differ), and c yes."""
    view = combined(two(tmp_path))
    found = view.keys.at(parse_filter("disagree>=1 expert:yes").trajectories(view))
    assert [key.task_id for key in found] == [f"webarena.{task}" for task in (0, 2, 4, 8)]


def test_parts_of_one_judge_are_one_judge_and_other_settings_are_another(tmp_path: Path) -> None:
    """Two runs judge the two halves of the tasks; a third has the settings of neither."""
    halves = [[said(task, True, judge="a") for task in tasks] for tasks in (range(6), range(6, 9))]
    folders = [write(tmp_path / f"half{n}", lines) for n, lines in enumerate(halves)]
    assert combined(folders).judgments.judges == ("a",)
    other = write(tmp_path / "other", [said(9, True, judge="a")])
    write_manifest(other, {"judge": "a", "data": "trajudge:absent", "prompt_hash": "other"})
    view = combined([*folders, other])
    assert view.judgments.judges == ("a (half0)", "a (half1)", "a (other)")
    assert np.bincount(view.judgments.judge).tolist() == [6, 3, 1]


def test_the_worst_come_first_by_who_agrees_and_then_by_score(tmp_path: Path) -> None:
    """Three judges of one run; the rule accepts task 1 and task 2."""
    accepts = {"a": "1234", "b": "124", "c": "1"}
    scores = {("a", "2"): 0.6, ("a", "3"): 0.9, ("a", "4"): 0.8, ("b", "2"): None}
    judgments = [
        said(task, task in accepted, judge=judge, score=scores.get((judge, task), 0.7))
        for judge, accepted in accepts.items()
        for task in "1234"
    ]
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / JUDGMENTS).write_bytes(b"".join(map(judgment_line, judgments)))
    write_labels(folder, [label(task, False) for task in "1234"])
    write_rewards(folder, {key(task): float(task in "12") for task in "1234"})
    view = read_view(folder)
    rows = sorted_rows(view, parse_filter("wrong:fp"), parse_sorting("-agree"))
    shown = [(judgments[row].judge, judgments[row].key.task_id[-1]) for row in rows]
    assert shown == [
        *(("a", "1"), ("b", "1"), ("c", "1")),  # three judges and the rule
        *(("a", "2"), ("b", "2")),  # two judges and the rule; the score of b is not known
        *(("a", "4"), ("b", "4")),  # two judges
        ("a", "3"),
    ]
    agreeing = [int(view.agreeing[row]) for row in rows]
    assert agreeing == [4, 4, 4, 3, 3, 2, 2, 1]
    assert view.evaluators.sum(axis=0).tolist() == [4, 4, 4, 4]
