"""How well a judge did on a group of trajectories, and how its judgments ended."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from trajudge.eval.scoring.metrics import Counts
from trajudge.eval.scoring.records.names import ALL_AGENTS, Label, Limits, Rate, ScoreRate
from trajudge.judges.model import Status
from trajudge.trajectories.model import Record


class Score(Record):
    """One judge (or the rule-based ``baseline`` on the same trajectories) on one label.

    ``n`` trajectories of ``tasks`` tasks were scored, ``positives`` of them labelled positive;
    ``missing`` of the ``n`` judgments failed (under ``exclude``: beside the ``n``). Left out and
    counted: ``unsure`` labels and, for the baseline, trajectories ``without_reward``. Rates are
    fractions, None where undefined. The last four are those of the judge's scores, on ``scored``
    trajectories.

    ``intervals`` holds the 95 % limits of what has them, all cluster-robust over tasks
    (``eval.stats.intervals.clustered_rates``); ``no_interval`` says why a metric that is defined
    has none, ``degenerate`` are those of which because nothing varies. ``design_effects``: how many
    times larger a rate's variance is than that of independent trajectories. Results of earlier
    versions hold Wilson's limits for independent trajectories, and a bootstrap's percentiles for
    the rest.
    """

    judge: str
    baseline: bool = False
    benchmark: str
    agent: str = ALL_AGENTS
    label: Label
    n: int
    tasks: int = 0
    positives: int
    counts: Counts
    missing: int = 0
    unsure: int = 0
    without_reward: int = 0
    precision: float | None
    recall: float | None
    f1: float | None
    accuracy: float | None
    npv: float | None
    tnr: float | None
    kappa: float | None
    mcc: float | None
    balanced_accuracy: float | None = None
    fpr: float | None = None
    fnr: float | None = None
    over_accept_share: float | None = None
    scored: int = 0
    roc_auc: float | None = None
    average_precision: float | None = None
    brier: float | None = None
    calibration_error: float | None = None
    intervals: dict[Rate | ScoreRate, Limits] = Field(default_factory=dict)
    degenerate: tuple[Rate | ScoreRate, ...] = ()
    no_interval: dict[Rate | ScoreRate, str] = Field(default_factory=dict)
    design_effects: dict[Rate, float] = Field(default_factory=dict)

    @property
    def precision_low(self) -> float | None:
        return self.intervals["precision"][0] if "precision" in self.intervals else None

    @property
    def precision_high(self) -> float | None:
        return self.intervals["precision"][1] if "precision" in self.intervals else None


RateName = Literal["expert", "judge_rate", "rule_based"]


class SuccessRate(Record):
    """How often the agent succeeded: by the ``expert``, by the ``judge``'s verdicts, and by the
    mean of the official reward (not thresholded) of the ``rewarded`` among the ``n``
    trajectories. Fractions with 95 % limits, cluster-robust over tasks."""

    judge: str
    benchmark: str
    agent: str
    n: int
    rewarded: int
    expert: float | None
    judge_rate: float | None
    rule_based: float | None
    intervals: dict[RateName, Limits] = Field(default_factory=dict)


EstimatedRateName = Literal["estimate", "expert_only", "judge_only"]


class EstimatedRate(Record):
    """How often the agent succeeds over ``labelled`` and ``unlabelled`` trajectories together: the
    prediction-powered ``estimate`` (the judge's rate, corrected by the labels), beside the labels
    alone and the judge alone, whose interval does not hold its error.

    It holds where the ``labelled_tasks`` are a random sample of the tasks. ``effective_labels`` is
    how many labels alone would be as precise. Fractions with 95 % limits over tasks; None where
    undefined, ``note`` says why.
    """

    judge: str
    benchmark: str
    agent: str
    labelled: int
    unlabelled: int
    labelled_tasks: int
    estimate: float | None
    expert_only: float
    judge_only: float
    effective_labels: float | None
    intervals: dict[EstimatedRateName, Limits] = Field(default_factory=dict)
    note: str = ""


class Coverage(Record):
    """How the judgments of one judge ended: ``statuses`` sum to ``judged``. Beside them the
    trajectories of the run that were not judged, and the judged ones without annotation.
    ``training`` counts those that the judge was trained on, which are left out of all else.

    ``shortened`` counts the judgments of which a prompt showed less than was recorded, by the
    furthest rung of the truncation ladder that a prompt which was answered stood on; ``fewer``:
    screenshots were left out. ``verdicts`` counts the judgments that gave a label, annotated or
    not, ``positive`` those that say yes."""

    judge: str
    benchmark: str
    agent: str = ALL_AGENTS
    judged: int
    statuses: dict[Status, int]
    shortened: dict[str, int] = Field(default_factory=dict)
    unjudged: int
    unlabelled: int
    training: int = 0
    verdicts: dict[Label, int] = Field(default_factory=dict)
    positive: dict[Label, int] = Field(default_factory=dict)
