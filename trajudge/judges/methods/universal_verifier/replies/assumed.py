"""Replies that a dry run assumes: of the usual length, and with a usual number of criteria."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from trajudge.judges.methods.universal_verifier.rubric_items import RubricItem

CRITERIA = 6
_SENTENCE = "The page shows the filter that the task names, and the results that it leaves. "


def prose(sentences: int) -> str:
    """Return so many sentences of the usual length."""
    return (_SENTENCE * sentences).strip()


CRITICAL_POINT = f"""{prose(6)}
```yaml
critical_point_type: NO_CRITICAL_POINT
classification_reasoning: {prose(2)}
irreversible_action_present: false
irreversible_action_description: ""
missing_user_information: []
underspecified_aspects: []
expected_behavior:
  - {prose(1)}
confidence: HIGH
```"""

RUBRIC = json.dumps(
    {
        "items": [
            {
                "criterion": f"Part {number} of the task is done",
                "description": prose(8),
                "max_points": 3,
                "justification": "",
                "earned_points": "",
            }
            for number in range(1, CRITERIA + 1)
        ]
    }
)
DEPENDENCIES = json.dumps(
    {"reasoning": prose(6), "needs_reformulation": False, "reformulated_rubric": {}}
)
SIDE_EFFECTS = json.dumps(
    {"reasoning": prose(5), "requires_penalty": False, "penalty_criteria": []}
)
OUTCOME = json.dumps({"primary_intent": prose(2), "reasoning": prose(10), "output_success": True})
VIOLATION = json.dumps({"reasoning": prose(4), "cp_violation": False})
FAILURES = json.dumps({"reasoning": prose(8), "has_failure": False, "failure_points": []})
VALIDITY = json.dumps(
    {
        "reasoning_is_ambiguous": prose(3),
        "is_ambiguous": False,
        "ambiguity_codes": [],
        "reasoning_is_invalid": prose(3),
        "is_invalid": False,
        "invalid_task_codes": [],
    }
)


def baseline(items: Sequence[RubricItem]) -> str:
    """Return the items scored in full."""
    scored: list[dict[str, Any]] = []
    for item in items:
        entry = {"criterion": item.criterion, "description": item.description}
        numbers = {"max_points": item.max_points, "earned_points": item.max_points}
        scored.append({**entry, **numbers, "justification": prose(3), "is_condition_met": True})
    return json.dumps({"items": scored})


def relevance(shot: int, shots: int, count: int) -> str:
    """Return scores by which about two thirds of a long run's screenshots are looked at: five for
    each criterion, some of them the same."""
    distance = max(1, round(shots / 5))
    scores = {
        f"criterion_{criterion}": 8 if (shot + criterion % 4) % distance == 0 else 2
        for criterion in range(count)
    }
    return json.dumps(scores)


def evidence(criteria: Sequence[int], items: Sequence[RubricItem]) -> str:
    """Return an analysis of each criterion."""
    analyses = [
        {
            "criterion_idx": criterion,
            "screenshot_evidence": prose(9),
            "criterion_analysis": prose(4),
            "discrepancies": prose(2),
            "environment_issues_confirmed": False,
            **({"condition_verification": True} if items[criterion].condition else {}),
        }
        for criterion in criteria
    ]
    return json.dumps(analyses[0] if len(analyses) == 1 else {"analyses": analyses})


def conditions(indices: Sequence[int], items: Sequence[RubricItem]) -> str:
    """Return every condition as met."""
    listed = [
        {
            "criterion_idx": index,
            "condition": items[index].condition,
            "reasoning": prose(2),
            "is_condition_met": True,
        }
        for index in indices
    ]
    return json.dumps({"disambiguation": listed})


def reality(count: int) -> str:
    """Return a note on every criterion."""
    notes = [{"criterion_idx": index, "reality_notes": prose(4)} for index in range(count)]
    return json.dumps({"reality_checks": notes})


def rescore(items: Sequence[RubricItem]) -> str:
    """Return full points for every item."""
    scored = [
        {
            "criterion_idx": index,
            "applicable_evidence": prose(4),
            "post_image_justification": prose(4),
            "post_image_earned_points": item.max_points,
        }
        for index, item in enumerate(items)
    ]
    return json.dumps({"items": scored})
