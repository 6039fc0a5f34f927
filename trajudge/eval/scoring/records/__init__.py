"""Records of scoring: what ``results.json`` holds and the tables show."""

from trajudge.eval.scoring.records.comparison import (
    Comparison,
    EqualRecall,
    McNemarResult,
    MetricDifference,
    Ranking,
)
from trajudge.eval.scoring.records.faults import (
    FAULT_RATES,
    FaultRate,
    FaultScore,
)
from trajudge.eval.scoring.records.names import (
    ALL_AGENTS,
    ALPHA,
    LABEL_TITLES,
    LABELS,
    OVERALL,
    RATES,
    RULE_BASED,
    SCORE_RATES,
    Label,
    Limits,
    Missing,
    Rate,
    ScoreRate,
)
from trajudge.eval.scoring.records.report import (
    ScoreReport,
    UnfinishedRun,
)
from trajudge.eval.scoring.records.scores import (
    Coverage,
    EstimatedRate,
    EstimatedRateName,
    RateName,
    Score,
    SuccessRate,
)
from trajudge.eval.scoring.records.spending import (
    JudgeUsage,
    PaidBeside,
    StageUsage,
    UsageTotals,
)

__all__ = [
    "ALL_AGENTS",
    "ALPHA",
    "FAULT_RATES",
    "LABELS",
    "LABEL_TITLES",
    "OVERALL",
    "RATES",
    "RULE_BASED",
    "SCORE_RATES",
    "Comparison",
    "Coverage",
    "EqualRecall",
    "EstimatedRate",
    "EstimatedRateName",
    "FaultRate",
    "FaultScore",
    "JudgeUsage",
    "Label",
    "Limits",
    "McNemarResult",
    "MetricDifference",
    "Missing",
    "PaidBeside",
    "Ranking",
    "Rate",
    "RateName",
    "Score",
    "ScoreRate",
    "ScoreReport",
    "StageUsage",
    "SuccessRate",
    "UnfinishedRun",
    "UsageTotals",
]
