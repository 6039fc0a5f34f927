"""The replies of the rubric judge's stages: criteria, relevance, findings with their evidence."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from trajudge.judges.model import Verdict
from trajudge.judges.replies import ParseFailure, flag, number_in, parse_json

_MOST_CRITERIA = 10
_LONGEST_CRITERION = 500


class Criterion(NamedTuple):
    """What must hold for the task; ``number`` from 1. A critical one that fails decides."""

    number: int
    text: str
    critical: bool


ASSUMED_CRITERIA = json.dumps(
    {
        "criteria": [
            {"criterion": "The result fulfils this condition of the task.", "critical": True}
        ]
        * 4
    }
)


def assumed_relevance(count: int) -> str:
    """Return the reply about one screenshot that a dry run assumes."""
    return json.dumps({"relevance": [5] * count})


def parse_criteria(text: str) -> list[Criterion]:
    """Parse 1 to 10 criteria. Raises ParseFailure."""
    entries = parse_json(text, ["criteria"]).fields["criteria"]
    if not isinstance(entries, list) or not 1 <= len(entries) <= _MOST_CRITERIA:
        raise ParseFailure(f"the reply holds no list of 1 to {_MOST_CRITERIA} criteria")
    criteria = []
    for number, entry in enumerate(entries, start=1):
        fields = _entry(entry, f"criterion {number}", ("criterion", "critical"))
        wording = str(fields["criterion"]).strip()[:_LONGEST_CRITERION]
        if not wording:
            raise ParseFailure(f"criterion {number} is empty")
        criteria.append(Criterion(number, wording, flag(fields, "critical")))
    return criteria


def parse_relevance(text: str, count: int) -> list[float]:
    """Parse one grade from 0 to 10 for each of ``count`` criteria. Raises ParseFailure."""
    grades = parse_json(text, ["relevance"]).fields["relevance"]
    if not isinstance(grades, list) or len(grades) != count:
        raise ParseFailure(f"the reply holds no list of {count} grades")
    return [number_in({"relevance": grade}, "relevance", 0, 10) for grade in grades]


def parse_findings(text: str, criteria: Sequence[Criterion], steps: int) -> Verdict:
    """Parse the verdict of a run of ``steps`` steps.

    Success is the reply's own outcome, unless a critical criterion fails; the process score is
    the mean of the criteria's scores. Raises ParseFailure if a criterion has no finding or two,
    or if a step is cited that does not exist.
    """
    parsed = parse_json(text, ["findings", "outcome", "side_effect"])
    scores: dict[int, float] = {}
    entries = parsed.fields["findings"]
    for entry in entries if isinstance(entries, list) else []:
        fields = _entry(entry, "a finding", ("criterion", "score", "steps"))
        number = fields["criterion"]
        known = isinstance(number, int) and number in {c.number for c in criteria}
        if not known or number in scores:
            raise ParseFailure(f"criterion {str(number)[:20]} has two findings, or does not exist")
        _check_steps(fields["steps"], steps)
        scores[number] = number_in(fields, "score", 0, 1)
    if len(scores) != len(criteria):
        raise ParseFailure(f"{len(scores)} of {len(criteria)} criteria have a finding")
    _check_steps(parsed.fields.get("side_effect_steps", []), steps)
    failed = [c.number for c in criteria if c.critical and scores[c.number] < 0.5]
    outcome = flag(parsed.fields, "outcome")
    reasoning = str(parsed.fields.get("reasoning", ""))
    if outcome and failed:
        reasoning += f" [critical criteria failed: {', '.join(map(str, failed))}]"
    return Verdict(
        success=outcome and not failed,
        side_effect=flag(parsed.fields, "side_effect"),
        scores={"process": sum(scores.values()) / len(scores), "outcome": float(outcome)},
        reasoning=reasoning.strip(),
        fallback=parsed.fallback,
    )


def _entry(entry: object, name: str, fields: tuple[str, ...]) -> Mapping[str, Any]:
    if not isinstance(entry, dict) or not set(fields) <= entry.keys():
        raise ParseFailure(f"{name} lacks one of {', '.join(fields)}")
    return entry


def _check_steps(cited: object, steps: int) -> None:
    """Check that the evidence names steps that exist, or none."""
    if not isinstance(cited, list):
        raise ParseFailure("the steps of a finding are no list")
    for number in cited:
        if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= steps:
            raise ParseFailure(f"step {str(number)[:20]} is cited, and the run has {steps} steps")
