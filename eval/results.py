"""``results.json`` and ``results.csv``: the scores as data, the same bytes for the same scores."""

from __future__ import annotations

import csv
from io import StringIO
from typing import Any

from eval.scoring import Score, Scores

_RATES = ("precision", "precision_low", "precision_high", "recall", "f1")
_MORE_RATES = ("accuracy", "npv", "tnr", "kappa")
_NUMBERS = ("n", "positives", "missing", "unsure", "without_reward")
COLUMNS = (
    *("judge", "evaluator", "benchmark", "label"),
    *_RATES,
    *_MORE_RATES,
    *("tp", "fp", "fn", "tn"),
    *_NUMBERS,
    "missing_policy",
)
# A run that was interrupted ends with the same bytes.
_EXECUTION: dict[str, Any] = {
    "spending": {"__all__": {"seconds": True, "stages": {"__all__": {"seconds"}}}}
}


def results_json(scores: Scores) -> str:
    """All scores, coverage and spending but its seconds, which are this execution's;
    ``Scores.model_validate_json`` reads it back."""
    return scores.model_dump_json(indent=2, exclude=_EXECUTION) + "\n"


def results_csv(scores: Scores) -> str:
    """One line a score, rates as fractions (empty: undefined). ``evaluator`` is ``judge``, or
    ``rule-based`` for the baseline on the trajectories of ``judge``."""
    text = StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for found in scores.scores:
        writer.writerow(_row(found) | {"missing_policy": scores.missing})
    return text.getvalue()


def _row(found: Score) -> dict[str, object]:
    fields = found.model_dump(exclude={"counts", "baseline"})
    evaluator = "rule-based" if found.baseline else "judge"
    return fields | found.counts.model_dump() | {"evaluator": evaluator}
