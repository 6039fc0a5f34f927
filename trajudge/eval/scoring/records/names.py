"""Names of labels, metrics and groups, which all records of scoring share."""

from __future__ import annotations

from typing import Literal, get_args

Label = Literal["success", "side_effect", "repetition", "process"]
Missing = Literal["negative", "exclude", "agentrewardbench"]
Rate = Literal[
    "precision",
    "recall",
    "f1",
    "accuracy",
    "npv",
    "tnr",
    "kappa",
    "mcc",
    "balanced_accuracy",
    "fpr",
    "fnr",
    "over_accept_share",
]
ScoreRate = Literal["roc_auc", "average_precision", "brier", "calibration_error"]
LABELS: tuple[Label, ...] = get_args(Label)
RATES: tuple[Rate, ...] = get_args(Rate)
SCORE_RATES: tuple[ScoreRate, ...] = get_args(ScoreRate)
LABEL_TITLES: dict[Label, str] = {
    "success": "Success",
    "side_effect": "Side effect",
    "repetition": "Repetition",
    "process": "Process",
}
OVERALL = "overall"
ALL_AGENTS = "all"
RULE_BASED = "rule-based"

# The corrected p-value at which two judges differ.
ALPHA = 0.05

Limits = tuple[float, float]
