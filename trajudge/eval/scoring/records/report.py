"""Everything that the tables show."""

from __future__ import annotations

from trajudge.eval.scoring.records.comparison import Comparison, EqualRecall, MetricDifference
from trajudge.eval.scoring.records.faults import FaultScore
from trajudge.eval.scoring.records.names import Missing
from trajudge.eval.scoring.records.scores import Coverage, EstimatedRate, Score, SuccessRate
from trajudge.eval.scoring.records.spending import JudgeUsage, PaidBeside
from trajudge.trajectories.model import Record


class UnfinishedRun(Record):
    """A run of ``judge`` that was cut short, or goes on: ``judged`` of the ``due`` judgments."""

    judge: str
    judged: int
    due: int


class ScoreReport(Record):
    """Everything that the tables show, in a stable order. ``resamples`` and ``seed`` are what was
    asked for: no interval needs them today, but without resamples judges are not compared.
    ``against_baseline``: every judge less the rule-based baseline on the same trajectories,
    ``p_holm`` over the judges. ``baselines`` are the scores of trivial baselines, which read no
    page, and ``equal_recall`` what judges reach beyond them. ``faults``: where the
    question is the process, how judges find and place faults. ``label_policy`` made one label of
    several opinions, "" where a run has its one label. ``beside``: what the runs paid beside what
    the ``spending`` of their judgments tells. ``unfinished`` are the runs that lack judgments."""

    missing: Missing
    resamples: int
    seed: int
    scores: tuple[Score, ...]
    success_rates: tuple[SuccessRate, ...] = ()
    estimated_rates: tuple[EstimatedRate, ...] = ()
    comparison: Comparison = Comparison()
    against_baseline: tuple[MetricDifference, ...] = ()
    coverage: tuple[Coverage, ...]
    spending: tuple[JudgeUsage, ...]
    remarks: tuple[str, ...] = ()
    baselines: tuple[Score, ...] = ()
    equal_recall: tuple[EqualRecall, ...] = ()
    faults: tuple[FaultScore, ...] = ()
    label_policy: str = ""
    beside: PaidBeside = PaidBeside()
    unfinished: tuple[UnfinishedRun, ...] = ()

    def titled(self, title: str) -> str:
        """Head a table: with the policy that made the labels, if it is one of several."""
        return f"{title} (labels: {self.label_policy})" if self.label_policy else title
