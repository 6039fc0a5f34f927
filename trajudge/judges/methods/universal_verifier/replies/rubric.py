"""The replies of the stages that make a rubric and score it on the action history alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from trajudge.judges.methods.universal_verifier.replies.fields import (
    Fields,
    entries,
    numeric,
    object_with,
    required_flag,
    text_of,
)
from trajudge.judges.methods.universal_verifier.rubric_items import RubricItem
from trajudge.judges.options import read_json
from trajudge.judges.replies import ParseFailure
from trajudge.trajectories.util.errors import UserError

# What the name of a criterion must have in common with the rubric's, by difflib's ratio.
LEAST_RESEMBLANCE = 0.7
# A rubric longer than this would make every later prompt too long.
_MOST_ITEMS = 60
_MOST_POINTS = 1000


def parse_rubric(text: str) -> tuple[RubricItem, ...]:
    """Parse a rubric that is not scored yet. Raises ParseFailure."""
    return read_rubric(object_with(text, "items"))


def read_rubric(rubric: Fields) -> tuple[RubricItem, ...]:
    """Check the items of a rubric: at least one, all fields, no scores. Raises ParseFailure."""
    listed = entries(rubric, "items")
    if not 1 <= len(listed) <= _MOST_ITEMS:
        raise ParseFailure(f"the rubric has {len(listed)} items, not 1 to {_MOST_ITEMS}")
    return tuple(_item(number, entry) for number, entry in enumerate(listed))


def _item(number: int, entry: Fields) -> RubricItem:
    if "items" in entry:
        raise ParseFailure(f"item {number} holds items of its own: a rubric is one flat list")
    for name in ("justification", "earned_points"):
        if entry.get(name) != "":
            raise ParseFailure(f"item {number}: {name} is not an empty text")
    condition = entry.get("condition")
    if condition is not None and (not isinstance(condition, str) or not condition.strip()):
        raise ParseFailure(f"item {number}: condition is empty: leave the field out for none")
    points = numeric(entry, "max_points", 0, _MOST_POINTS)
    if points == 0:
        raise ParseFailure(f"item {number}: max_points is not above 0")
    return RubricItem(
        criterion=text_of(entry, "criterion"),
        description=text_of(entry, "description"),
        max_points=points,
        condition=condition,
    )


def parse_dependencies(text: str, items: Sequence[RubricItem]) -> tuple[RubricItem, ...]:
    """Parse the review of a rubric: a reformulated one, or ``items`` as they are. Raises
    ParseFailure."""
    fields = object_with(text)
    needed = fields.get("needs_reformulation", False)
    if not isinstance(needed, bool):
        raise ParseFailure("needs_reformulation is neither true nor false")
    if not needed:
        return tuple(items)
    rubric = fields.get("reformulated_rubric")
    if not isinstance(rubric, Mapping) or not rubric:
        raise ParseFailure("needs_reformulation is true, and reformulated_rubric is empty")
    return read_rubric(rubric)


def parse_baseline(text: str, items: Sequence[RubricItem]) -> tuple[RubricItem, ...]:
    """Parse the scores on the action history: the rubric's items in its order, of which text,
    points and condition flag are taken over. Raises ParseFailure."""
    listed = entries(object_with(text, "items"), "items", len(items))
    return tuple(
        _scored(number, item, entry)
        for number, (item, entry) in enumerate(zip(items, listed, strict=True))
    )


def _scored(number: int, item: RubricItem, entry: Fields) -> RubricItem:
    named = text_of(entry, "criterion")
    likeness = SequenceMatcher(None, named.lower(), item.criterion.lower()).ratio()
    if likeness < LEAST_RESEMBLANCE:
        raise ParseFailure(f"item {number} is not the rubric's criterion {number}, or renamed")
    changes: dict[str, Any] = {
        "justification": text_of(entry, "justification"),
        "earned_points": numeric(entry, "earned_points"),
    }
    if item.condition is not None:
        is_missing = entry.get("is_condition_met") is None
        changes["is_condition_met"] = not is_missing and required_flag(entry, "is_condition_met")
    return item.model_copy(update=changes)


def given_rubrics(path: Path) -> dict[str, tuple[RubricItem, ...]]:
    """Read rubrics from a JSON file {task id: {"items": [...]}}. Raises UserError for one that is
    not a rubric, or that is scored already."""
    wanted = "write an object, task id to rubric"
    content = read_json("rubrics", path, wanted)
    if not isinstance(content, dict):
        raise UserError(f"rubrics {path}: is no JSON object: {wanted}")
    rubrics = {}
    for task, rubric in content.items():
        listed = {"items": rubric} if isinstance(rubric, list) else rubric
        try:
            rubrics[task] = read_rubric(listed if isinstance(listed, dict) else {})
        except ParseFailure as failure:
            raise UserError(
                f"rubrics {path}, task {task}: {failure}; give unscored rubrics, with "
                "justification and earned_points empty"
            ) from failure
    return rubrics
