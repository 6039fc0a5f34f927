"""Recompute recorded runs of the Universal Verifier: score files, folders of them, or
CUAVerifierBench's Parquet file (column ``gpt_eval_json``).

From the recorded relevance, items and votes the ranking, the screenshots examined, totals, process
score, median, majority and outcome are computed anew; nothing is asked.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from trajudge.judges.methods.universal_verifier.model import (
    RubricItem,
    majority,
    median_index,
    ranked_screenshots,
    relevant_only,
    totals,
)
from trajudge.judges.methods.universal_verifier.replies import parse_relevance

STEPS = "rubric_intermediate_mm_rubric_steps"
PER_CRITERION = 5


def recomputed(verdict: Mapping[str, Any]) -> dict[str, bool]:
    """Recompute a recorded verdict; return field to whether ours is the same."""
    steps = verdict[STEPS]
    ranked = _ranked(steps["step2_relevance_scores"])
    seen = {
        criterion: [entry["screenshot_idx"] for entry in entries]
        for criterion, entries in steps["step4_evidence_by_criterion"].items()
    }
    items = _items(verdict["rubric_items"])
    points = totals(items)
    scorings = steps["majority_vote_steps67"]
    votes = steps["majority_vote_step8"]
    outcome = majority(votes["all_votes"])
    return {
        "ranking": _named(ranked[0]) == steps["step3_grouped_screenshots"],
        "examined": _named(ranked[1]) == seen,
        "max_points": points.max == verdict["rubric_total_max_points"],
        "earned_points": points.earned == verdict["rubric_total_earned_points"],
        "process_score": points.score == scorings["all_scores"][scorings["median_instance_idx"]],
        "median": median_index(scorings["all_scores"]) == scorings["median_instance_idx"],
        "majority": outcome == votes["majority_output_success"],
        "outcome": outcome == verdict["outcome_success"],
    }


def _ranked(scores: Mapping[str, Any]) -> tuple[dict[int, list[int]], dict[int, list[int]]]:
    """The screenshots of every criterion before the filter and after it."""
    shots = [scores[f"screenshot_{index}"] for index in range(len(scores))]
    relevance = [parse_relevance(json.dumps(shot), len(shot) - 1) for shot in shots]
    ranked = ranked_screenshots(relevance, PER_CRITERION)
    return ranked, relevant_only(ranked, relevance)


def _items(recorded: Sequence[Mapping[str, Any]]) -> list[RubricItem]:
    known = RubricItem.model_fields.keys()
    return [
        RubricItem.model_validate({name: item[name] for name in known & item.keys()})
        for item in recorded
    ]


def _named(by_criterion: Mapping[int, Sequence[int]]) -> dict[str, list[int]]:
    return {str(criterion): list(shots) for criterion, shots in by_criterion.items()}


def verdicts(paths: Sequence[Path]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield what each recorded run's verdict says, {} for a text that holds no verdict."""
    for path in paths:
        if path.is_dir():
            yield from verdicts(sorted(path.rglob("*.json")))
        elif path.suffix == ".parquet":
            table = import_module("pyarrow.parquet").read_table(
                path, columns=["task_id", "gpt_eval_json"]
            )
            yield from (
                (row["task_id"], _decoded(row["gpt_eval_json"])) for row in table.to_pylist()
            )
        else:
            content = _decoded(path.read_text(encoding="utf-8"))
            yield path.name, _decoded(str(content.get("gpt_response_text", "{}")))


def _decoded(text: str | None) -> Mapping[str, Any]:
    try:
        content = json.loads(text or "{}")
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}
