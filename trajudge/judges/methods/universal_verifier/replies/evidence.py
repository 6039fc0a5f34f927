"""The replies of the stages that look at screenshots: relevance, evidence, conditions, reality."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from trajudge.judges.methods.universal_verifier.replies.fields import (
    Fields,
    indexed,
    object_with,
    optional_flag,
    required_flag,
    text_of,
)
from trajudge.judges.methods.universal_verifier.rubric_items import RubricItem
from trajudge.judges.replies import ParseFailure
from trajudge.trajectories.model import Record
from trajudge.trajectories.thoughts import without_thoughts

MOST_RELEVANT = 10


class Evidence(Record):
    """What one screenshot (index from 0) shows of one criterion. ``condition_verification`` is
    None where the criterion has no condition, or nothing was said of it."""

    screenshot: int
    screenshot_evidence: str
    criterion_analysis: str
    discrepancies: str
    environment_issues_confirmed: bool
    condition_verification: bool | None = None


def parse_relevance(text: str, count: int) -> list[int]:
    """Parse the relevance of one screenshot for ``count`` criteria, 0-10 each. Raises
    ParseFailure."""
    fields = object_with(text)
    return [_relevance(fields, criterion) for criterion in range(count)]


def _relevance(fields: Fields, criterion: int) -> int:
    named = [fields[name] for name in (f"criterion_{criterion}", str(criterion)) if name in fields]
    value = named[0] if named and named[0] == named[-1] else None
    if isinstance(value, str) and value.strip().isdecimal():
        value = int(value)
    whole = isinstance(value, int | float) and not isinstance(value, bool) and value == int(value)
    if not whole or not isinstance(value, int | float) or not 0 <= value <= MOST_RELEVANT:
        raise ParseFailure(
            f"criterion_{criterion} is no whole number from 0 to {MOST_RELEVANT}, or missing"
        )
    return int(value)


def parse_evidence(
    text: str, shot: int, criteria: Sequence[int], items: Sequence[RubricItem]
) -> dict[int, Evidence]:
    """Parse what screenshot ``shot`` shows of ``criteria``, by criterion: an object for one, a
    list in order for several. Raises ParseFailure."""
    if len(criteria) == 1:
        listed: Sequence[Fields] = [_single(text)]
    else:
        listed = _batch(text, criteria)
    return {
        criterion: _evidence(entry, shot, conditional=items[criterion].condition is not None)
        for criterion, entry in zip(criteria, listed, strict=True)
    }


def _single(text: str) -> Fields:
    fields = object_with(text)
    listed = fields.get("analyses")
    if isinstance(listed, list) and len(listed) == 1 and isinstance(listed[0], dict):
        return listed[0]
    return fields


def _batch(text: str, criteria: Sequence[int]) -> Sequence[Fields]:
    """Find the entries: a list under any name, a bare one, or an object by index."""
    fields = _bare_list(text) or object_with(text)
    named = fields.get("analyses")
    lists = [named] if isinstance(named, list) else [*fields.values()]
    for listed in lists:
        if isinstance(listed, list) and len(listed) == len(criteria):
            return indexed({"analyses": listed}, "analyses", criteria)
    by_index = [fields.get(str(criterion)) for criterion in criteria]
    if len(fields) == len(criteria) and all(isinstance(entry, dict) for entry in by_index):
        return [entry for entry in by_index if isinstance(entry, dict)]
    raise ParseFailure(f"analyses does not have exactly {len(criteria)} entries")


def _bare_list(text: str) -> Fields:
    """Return a reply that is nothing but a list under the name that it should have had."""
    try:
        listed = json.loads(without_thoughts(text))
    except (ValueError, RecursionError):
        return {}
    return {"analyses": listed} if isinstance(listed, list) else {}


def _evidence(entry: Fields, shot: int, *, conditional: bool) -> Evidence:
    met = optional_flag(entry, "condition_verification")
    if conditional and met is None:
        raise ParseFailure("condition_verification is missing, or neither true nor false")
    return Evidence(
        screenshot=shot,
        screenshot_evidence=text_of(entry, "screenshot_evidence"),
        criterion_analysis=text_of(entry, "criterion_analysis"),
        discrepancies=text_of(entry, "discrepancies"),
        environment_issues_confirmed=required_flag(entry, "environment_issues_confirmed"),
        condition_verification=met if conditional else None,
    )


def parse_conditions(
    text: str, indices: Sequence[int], items: Sequence[RubricItem]
) -> dict[int, bool]:
    """Parse which of the conditional criteria ``indices`` have their condition met. Raises
    ParseFailure."""
    listed = indexed(object_with(text, "disambiguation"), "disambiguation", indices)
    met = {}
    for index, entry in zip(indices, listed, strict=True):
        if entry.get("condition") != items[index].condition:
            raise ParseFailure(f"criterion {index}: condition is not the rubric's, word by word")
        text_of(entry, "reasoning")
        met[index] = required_flag(entry, "is_condition_met")
    return met


def any_screenshot(evidence: Sequence[Evidence]) -> bool | None:
    """Tell whether any screenshot shows the condition met; None where none says anything."""
    flags = [e.condition_verification for e in evidence if e.condition_verification is not None]
    return any(flags) if flags else None


def parse_reality(text: str, count: int) -> list[str]:
    """Parse the notes on ``count`` criteria, "" for nothing to note. Raises ParseFailure."""
    listed = indexed(object_with(text, "reality_checks"), "reality_checks", range(count))
    return [text_of(entry, "reality_notes", may_be_empty=True) for entry in listed]


def in_order_of_time(
    evidence: Mapping[int, Sequence[Evidence]],
) -> dict[int, list[Evidence]]:
    """Return the evidence of every criterion by screenshot; it is stored best first."""
    return {
        criterion: sorted(listed, key=lambda one: one.screenshot)
        for criterion, listed in evidence.items()
    }
