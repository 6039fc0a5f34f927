"""CUAVerifierBench's labels by policy, and its published verdicts."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.trajectories.loaders.cua_made import INTERNAL, WEB, release
from trajudge.annotations import (
    Label,
    Role,
    open_annotations,
    parse_labels,
    policy_note,
    primary_labels,
)
from trajudge.annotations.published import PublishedVerdict, open_verdicts
from trajudge.annotations.sources.cuaverifierbench import load, majority, read_verdicts
from trajudge.util.errors import UserError


def told(annotations: Iterable[Label]) -> list[tuple[str, str, bool | None, bool | None]]:
    return [
        (one.key.task_id.partition("/")[2], one.annotator, one.success, one.process)
        for one in annotations
    ]


def test_adjudicated_is_the_default(tmp_path: Path) -> None:
    folder = release(tmp_path)
    labels = open_annotations(f"cuaverifierbench:{folder}")
    assert told(labels) == [
        ("Tea--1", "adjudicated", True, True),
        ("Tea--2", "adjudicated", True, True),
        ("Tea--3", "adjudicated", False, True),
        ("Tea--4", "adjudicated", False, True),
        ("Mail--1", "adjudicated", True, True),
        ("Mail--2", "adjudicated", True, True),
    ]
    assert open_annotations(str(folder)) == labels
    assert str(parse_labels(str(folder))) == f"cuaverifierbench/adjudicated:{folder}"


def test_a_tie_of_blind_annotators_is_unsure(tmp_path: Path) -> None:
    labels = open_annotations(f"cuaverifierbench/blind-majority:{release(tmp_path)}")
    assert [(task, success) for task, _, success, _ in told(labels)] == [
        ("Tea--1", True),
        ("Tea--2", None),
        ("Tea--3", True),
        ("Tea--4", None),
        ("Mail--1", True),
        ("Mail--2", False),
    ]
    assert {one.role for one in labels} == {Role.PRIMARY}
    assert {one.process_score for one in labels} == {0.5, None}


def test_each_annotator_is_kept_the_first_one_primary(tmp_path: Path) -> None:
    labels = open_annotations(f"cuaverifierbench/each:{release(tmp_path)}")
    assert len(labels) == 10
    assert len(primary_labels(labels)) == 6
    third = [one for one in labels if one.raw_task_id == "Tea--3"]
    assert [(one.annotator, one.role) for one in third] == [
        ("a", Role.PRIMARY),
        ("b", Role.SECONDARY),
        ("c", Role.SECONDARY),
    ]


def test_the_note_names_the_policy_and_what_another_would_change(tmp_path: Path) -> None:
    folder = release(tmp_path)
    assert policy_note(f"cuaverifierbench:{folder}") == (
        "labels: adjudicated, 6 runs (4 successful); blind-majority would give 4 runs "
        "(3 successful), 2 unsure left out and differ on 2 of 4 (50.0%): the labels are noisy, "
        "name the policy"
    )
    assert policy_note("agentrewardbench:x") == ""


def test_an_unknown_policy_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no label policy 'primary' of cuaverifierbench: use one"):
        open_annotations(f"cuaverifierbench/primary:{tmp_path}")
    with pytest.raises(UserError, match="use one of primary, majority, unanimous, any"):
        open_annotations(f"trajudge/each:{tmp_path}")
    release(tmp_path)
    for file in (tmp_path / "annotations").iterdir():
        file.unlink()
    with pytest.raises(UserError, match="no annotators' labels"):
        load(tmp_path, "each")


@pytest.mark.parametrize(
    ("opinions", "expected"),
    [
        ([True], True),
        ([True, False], None),
        ([True, False, False], False),
        ([None, True], True),
        ([], None),
    ],
)
def test_majority(opinions: list[bool | None], expected: bool | None) -> None:
    assert majority(opinions) is expected


def verdicts_of(verdicts: Iterable[PublishedVerdict], task: str) -> dict[str, PublishedVerdict]:
    return {one.judge_id: one for one in verdicts if one.key.task_id.endswith(task)}


def test_every_column_of_verdicts_is_a_judge(tmp_path: Path) -> None:
    verdicts = open_verdicts(str(release(tmp_path)))
    first = verdicts_of(verdicts, "Tea--1")
    assert {name: one.success for name, one in first.items()} == {
        "universal-verifier@published": True,
        "webtailbench-mm@published": True,
        "om2w-gpt@published": False,
    }
    verifier = first["universal-verifier@published"]
    assert (verifier.scores, verifier.process) == ({"process_score": 0.8}, True)
    assert first["om2w-gpt@published"].reasoning == "The box was empty."
    third = verdicts_of(verdicts, "Tea--3")["universal-verifier@published"]
    assert (third.success, third.process, third.scores) == (False, False, {"process_score": 0.4})


def test_the_verifiers_own_file_under_another_judges_column(tmp_path: Path) -> None:
    """``gpt_eval_json`` of split internal is the Universal Verifier's; the columns decide."""
    found = verdicts_of(read_verdicts(release(tmp_path)), "Mail--1")
    assert set(found) == {"universal-verifier@published", "webtailbench-text@published"}
    verifier = found["universal-verifier@published"]
    assert verifier.reasoning == "It is green."
    assert verifier.record is not None
    assert verifier.scores == {"process_score": 0.8}


def test_no_verdict_is_not_a_verdict(tmp_path: Path) -> None:
    assert verdicts_of(read_verdicts(release(tmp_path)), "Mail--2") == {}


def test_the_constructed_rows_have_verdicts_and_no_label(real_data: Path) -> None:
    folder = real_data / "cuaverifierbench"
    verdicts = open_verdicts(str(folder))
    assert [(one.judge_id, one.success, one.scores) for one in verdicts] == [
        ("universal-verifier@published", True, {"process_score": 1.0})
    ] * 2
    assert open_annotations(f"cuaverifierbench:{folder}") == []


def test_the_published_files() -> None:
    folder = os.environ.get("TRAJUDGE_CUAVERIFIERBENCH")
    if not folder:
        pytest.skip("TRAJUDGE_CUAVERIFIERBENCH names no folder with the published files")
    each = open_annotations(f"cuaverifierbench/each:{folder}")
    splits = [one.key.task_id.partition("/")[0] for one in each]
    assert (splits.count(WEB), splits.count(INTERNAL)) == (215, 154)
    blind = open_annotations(f"cuaverifierbench/blind-majority:{folder}")
    decided = [one.success for one in blind if one.success is not None]
    assert (len(blind), len(decided), sum(decided)) == (260, 239, 119)
    inside = [one.success for one in blind if one.key.task_id.startswith(INTERNAL)]
    assert (inside.count(True), inside.count(False)) == (90, 64)
    assert len(open_annotations(f"cuaverifierbench:{folder}")) == 260
