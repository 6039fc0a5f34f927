"""``results.json`` and ``results.csv``: the scores as data, the same bytes for the same scores."""

from __future__ import annotations

import csv
from io import StringIO
from typing import Any

from trajudge.eval.scoring.metrics import METRICS
from trajudge.eval.scoring.records import Score, ScoreReport

_NUMBERS = ("n", "tasks", "positives", "missing", "unsure", "without_reward", "scored")
COLUMNS = (
    *("judge", "evaluator", "benchmark", "agent", "label"),
    *(f"{rate}{end}" for rate in METRICS for end in ("", "_low", "_high")),
    *("tp", "fp", "fn", "tn"),
    *_NUMBERS,
    "degenerate",
    "missing_policy",
    *(f"{metric.name}_design_effect" for metric in METRICS.values() if metric.trials),
    "no_interval",
)
_NESTED = {"counts", "baseline", "intervals", "no_interval", "design_effects"}
# A run that was interrupted ends with the same bytes.
_OF_CALLS = {"seconds", "cached", "cached_cost", "cached_unpriced"}
_EXECUTION: dict[str, Any] = {
    "spending": {"__all__": {**dict.fromkeys(_OF_CALLS, True), "stages": {"__all__": _OF_CALLS}}},
    "unattributed_cost": True,
}


def results_json(scores: ScoreReport) -> str:
    """Encode all that was scored but seconds, cache hits and payments, which are this execution's;
    ``ScoreReport.model_validate_json`` reads it back."""
    idle = {name: True for name in ("label_policy", "unfinished") if not getattr(scores, name)}
    return scores.model_dump_json(indent=2, exclude=_EXECUTION | idle) + "\n"


def results_csv(scores: ScoreReport) -> str:
    """One line a score, rates as fractions (empty: undefined). ``evaluator`` is ``judge``, or
    ``rule-based`` for the rule on the trajectories of ``judge``, or ``baseline`` for a trivial one,
    whose name then stands as the judge."""
    text = StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(result_rows(scores))
    return text.getvalue()


def result_rows(scores: ScoreReport) -> list[dict[str, object]]:
    """Return a row per judge or baseline, benchmark, agent and label, of some of ``COLUMNS``."""
    rows = [_row(score) for score in scores.scores]
    rows += [_row(score) | {"evaluator": "baseline"} for score in scores.baselines]
    return [row | {"missing_policy": scores.missing} for row in rows]


def _row(score: Score) -> dict[str, object]:
    fields = score.model_dump(exclude=_NESTED)
    for rate, (low, high) in score.intervals.items():
        fields |= {f"{rate}_low": low, f"{rate}_high": high}
    evaluator = "rule-based" if score.baseline else "judge"
    cells = {
        "evaluator": evaluator,
        "degenerate": " ".join(score.degenerate),
        "no_interval": " ".join(score.no_interval),
        **{f"{rate}_design_effect": effect for rate, effect in score.design_effects.items()},
    }
    return fields | score.counts.model_dump() | cells
