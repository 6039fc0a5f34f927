"""A plan is frozen once, and read back as it was."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from tests.eval.select.world import plan
from trajudge.eval.select.plan import CandidateFamily, SelectionPlan, freeze, read_plan
from trajudge.eval.select.scores import Rule
from trajudge.util.errors import UserError


def test_what_is_frozen_is_read_back(tmp_path: Path) -> None:
    file, made = tmp_path / "new" / "candidates.json", plan((1.0, 2 / 3, 0.5), (1.0,))
    freeze(file, made)
    freeze(file, made)
    assert read_plan(file) == made
    assert read_plan(file).hash == made.hash


def test_a_frozen_plan_is_not_changed(tmp_path: Path) -> None:
    file = tmp_path / "candidates.json"
    freeze(file, plan((1.0,)))
    with pytest.raises(UserError, match="holds another plan"):
        freeze(file, plan((1.0,), rate=0.7))
    assert read_plan(file) == plan((1.0,))


def test_candidates_and_groups_are_in_one_order() -> None:
    made = plan((0.9, 0.5), (1.0,))
    assert [(f.name, t) for f, t in made.candidates] == [
        ("judge 1", 0.9),
        ("judge 1", 0.5),
        ("judge 2", 1.0),
    ]
    assert made.groups == [[0, 1], [2]]


@pytest.mark.parametrize("thresholds", [(), (0.5, 0.9), (0.5, 0.5), (1.2,), (0.0,)])
def test_thresholds_go_from_strict_to_loose_within_the_scale(thresholds: tuple[float]) -> None:
    with pytest.raises(ValidationError):
        CandidateFamily(name="f", rule=Rule(judges=("a",)), thresholds=thresholds)


@pytest.mark.parametrize(
    ("kind", "judges"), [("judge", ("a", "b")), ("panel", ("a",)), ("cascade", ("a", "a"))]
)
def test_a_rule_has_as_many_judges_as_its_kind(kind: str, judges: tuple[str, ...]) -> None:
    with pytest.raises(ValidationError):
        Rule.model_validate({"kind": kind, "judges": judges})


def test_two_families_of_one_name_are_refused() -> None:
    one = CandidateFamily(name="f", rule=Rule(judges=("a",)), thresholds=(1.0,))
    with pytest.raises(ValidationError):
        SelectionPlan.model_validate({"target": {"rate": 0.8}, "families": (one, one)})


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"format": 2}', '{"families": 3}'])
def test_a_file_that_is_no_plan_is_one_sentence(tmp_path: Path, content: str) -> None:
    file = tmp_path / "plan.json"
    file.write_text(content)
    with pytest.raises(UserError, match=r"plan\.json"):
        read_plan(file)
    with pytest.raises(UserError, match="cannot be read"):
        read_plan(tmp_path / "none.json")
