"""One label of several annotations of a trajectory."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import pytest

from tests.eval.cases import label
from trajudge.annotations import open_annotations, open_labels
from trajudge.annotations.model import (
    LABELS_BY,
    Label,
    LabelConflicts,
    LabelsBy,
    Role,
    SampleFrame,
    label_conflicts,
    opinions_by_trajectory,
    primary_labels,
)
from trajudge.annotations.store import read_frame, write
from trajudge.eval.cli import main
from trajudge.util.errors import UserError


def by(annotator: str, success: bool | None, role: Role = Role.PRIMARY, task: int = 1) -> Label:
    return label(task, success).model_copy(update={"annotator": annotator, "role": role})


@pytest.mark.parametrize(
    ("given", "counts"),
    [
        pytest.param([by("ann", True), by("ann", False)], False, id="a correction"),
        pytest.param(
            [by("bob", False, Role.SECONDARY), by("ann", True)], True, id="a second opinion first"
        ),
        pytest.param(
            [by("ann", True), by("judge", False, Role.ADJUDICATED), by("ann", True)],
            False,
            id="an adjudicated one",
        ),
        pytest.param(
            [by("ann", True), by("bob", False), by("judge", True, Role.ADJUDICATED)],
            True,
            id="two primary ones that were adjudicated",
        ),
    ],
)
def test_the_correction_or_what_was_adjudicated_is_the_label(
    given: list[Label], counts: bool
) -> None:
    (chosen,) = primary_labels(given).values()
    assert chosen.success is counts


@pytest.mark.parametrize(
    ("votes", "expected"),
    [  # what primary, majority, unanimous and any make of the votes of ann, bob and cleo
        ((True, False, False), (True, False, None, True)),
        ((True, True, False), (True, True, None, True)),
        ((False, False, False), (False, False, False, False)),
        ((True, False, None), (True, None, None, True)),
        ((None, False, None), (None, False, None, False)),
    ],
)
def test_a_policy_makes_one_label_whatever_the_order_of_the_lines(
    votes: tuple[bool | None, ...], expected: tuple[bool | None, ...]
) -> None:
    lines = [by(name, vote) for name, vote in zip(("ann", "bob", "cleo"), votes, strict=True)]
    lines.append(by("ann", True, task=2))  # ann labels most, so hers is the primary label
    for some in permutations(lines):
        found = [primary_labels(some, policy)[lines[0].key].success for policy in LABELS_BY]
        assert tuple(found) == expected
        if len(set(votes)) > 1:
            with pytest.raises(UserError, match="ann, bob, cleo differ on 1 of 1 trajectory"):
                primary_labels(some)


def test_annotators_who_differ_are_refused_until_a_policy_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The contradicting file of two annotators, of which one corrected a label."""
    labels = [
        each.model_copy(update={"annotator": name, "success": bool(place % 2) or name == "ann"})
        for name in ("ann", "bob")
        for place, each in enumerate(open_annotations("sample")[:6])
    ]
    write(tmp_path / "two.jsonl", [*labels, labels[0].model_copy(update={"success": False})])
    words = ["judge", "--judge", "heuristic", "--data", "sample", "--limit", "6", "--annotations"]
    out = ["--out", str(tmp_path / "run")]
    assert main([*words, str(tmp_path / "two.jsonl"), *out]) == 2
    error = " ".join(capsys.readouterr().err.split())
    assert "ann, bob differ on 2 of 6 trajectories" in error
    assert "--labels-by primary|majority|unanimous|any" in error
    assert "an annotator labelled 1 trajectory twice, differently: the last label counts" in error
    named = ["--labels-by", "majority"]
    assert main([*words, str(tmp_path / "two.jsonl"), *named, *out]) == 0
    assert main(["score", str(tmp_path / "run"), "--full"]) == 0
    assert "(labels: majority)" in capsys.readouterr().out
    by_policy: LabelsBy = "any"
    spec = f"trajudge/{by_policy}:{tmp_path / 'two.jsonl'}"
    assert [each.success for each in open_labels(spec).values()] == [False, *[True] * 5]
    assert main(["score", str(tmp_path / "run"), "--labels-by", "any"]) == 2
    assert "--annotations KIND:PATH" in capsys.readouterr().err


def test_two_people_differ_a_decision_settles_it() -> None:
    opinions = [by("ann", True), by("bob", False, Role.SECONDARY)]
    decided = by("judge", False, Role.ADJUDICATED)
    for given, expected in (
        (opinions, LabelConflicts(1, 1, 0, ())),
        ([*opinions, decided], LabelConflicts(1, 0, 0, ())),
        ([opinions[0], decided], LabelConflicts(0, 0, 0, ())),
        ([opinions[0], by("bob", False)], LabelConflicts(1, 1, 1, ("ann", "bob"))),
    ):
        assert label_conflicts(opinions_by_trajectory(given)) == expected


def test_a_file_keeps_how_its_labels_were_drawn(tmp_path: Path) -> None:
    frame = SampleFrame(size=900, strategy="ppi", filter="wrong:fp")
    drawn = by("ann", True).model_copy(update={"inclusion_probability": 0.25, "stratum": "yes"})
    write(tmp_path / "labels.jsonl", [drawn], frame)
    assert open_annotations(str(tmp_path / "labels.jsonl")) == [drawn]
    assert read_frame(tmp_path / "labels.jsonl") == frame
