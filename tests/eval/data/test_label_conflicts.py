"""Runs whose labels differ are refused: which of them counted depended on their order."""

from __future__ import annotations

from pathlib import Path

import pytest

import trajudge as tj
from tests.eval.cases import key, label
from trajudge.annotations import store
from trajudge.eval.cli import main
from trajudge.eval.store.labels import merged_labels, refuse_conflicts, unanswered_notes
from trajudge.trajectories.sample import sample_path
from trajudge.util.errors import UserError


def test_the_first_difference_is_named_with_its_runs_and_all_are_counted() -> None:
    same = {key(task): label(task, True) for task in range(4)}
    less = {key(task): label(task, True) for task in (3, 1)}
    other = {key(task): label(task, task < 2) for task in range(5)}
    refuse_conflicts([("a", same), ("b", less), ("c", {})])
    with pytest.raises(UserError, match=r"^a and c: their labels of \S+\.2 differ .* 2 traj"):
        refuse_conflicts([("a", same), ("b", less), ("c", other)])


def test_a_difference_counts_in_the_questions_that_are_asked() -> None:
    some = {key(1): label(1, True, side_effect=False)}
    more = {key(1): label(1, True), key(2): label(2, True, side_effect=True)}
    refuse_conflicts([("a", some), ("b", more)], ["success"])
    with pytest.raises(UserError, match=r"of 1 trajectory, in side effect\): name the labels"):
        refuse_conflicts([("a", some), ("b", more)])


def test_labels_that_never_answer_a_question_contradict_nobody() -> None:
    some = {key(1): label(1, True, side_effect=False), key(2): label(2, False, side_effect=True)}
    bare = {key(1): label(1, True), key(3): label(3, False)}
    for parts in ([("a", some), ("b", bare)], [("b", bare), ("a", some)]):
        refuse_conflicts(parts)
        merged = merged_labels([labels for _, labels in parts])
        assert {k: (one.success, one.side_effect) for k, one in merged.items()} == {
            key(1): (True, False), key(2): (False, True), key(3): (False, None)
        }  # fmt: skip
        assert [*unanswered_notes(parts)] == [
            "b: its labels lack side effect, which the labels of the other runs answer where they "
            "have the trajectory"
        ]
    assert [*unanswered_notes([("b", bare), ("c", bare)])] == []
    differing = {key(2): label(2, True, side_effect=None)}
    with pytest.raises(UserError, match=r"^a and d: .* of 1 trajectory, in success\)"):
        refuse_conflicts([("b", bare), ("a", some), ("d", differing)])


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The same trajectories under two judges, the second by labels of which one was changed."""
    folder = tmp_path_factory.mktemp("runs")
    first, *others = store.load(sample_path() / "labels.jsonl")
    changed = first.model_copy(update={"success": not first.success})
    store.write(folder / "labels.jsonl", [changed, *others])
    more = ["--annotations", f"trajudge:{folder / 'labels.jsonl'}"]
    for judge, named in (("heuristic", []), ("rule-based", more)):
        words = ["--judge", judge, "--data", "sample", "--out", str(folder / judge), *named]
        assert main(["judge", *words]) == 0
    return [str(folder / "heuristic"), str(folder / "rule-based")]


@pytest.mark.parametrize(
    "words", ["score", "audit --out OUT", "select --target-precision 0.1 --out OUT"]
)
def test_a_command_asks_which_labels_count(
    words: str, runs: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command, *more = words.replace("OUT", str(tmp_path / "out")).split()
    assert main([command, *runs, *more]) == 2
    error = capsys.readouterr().err
    assert f"{runs[0]} and {runs[1]}: their labels of " in error
    assert "(in all the runs those of 1 trajectory, in success): name the labels" in error
    named = ["--annotations", f"trajudge:{sample_path() / 'labels.jsonl'}"]
    assert main([command, *runs, *more, *named]) in (0, 1)


def test_python_asks_for_the_labels_too(runs: list[str]) -> None:
    with pytest.raises(UserError, match="name the labels that count"):
        tj.score(runs)
    one, other = map(tj.read_run, runs)
    with pytest.raises(UserError, match="name the labels that count"):
        tj.score(one + other)
    assert tj.score(runs, tj.labels("sample")).scores
