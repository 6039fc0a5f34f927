"""Records of scoring: what ``results.json`` holds and the tables show, and the metrics by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

from pydantic import ConfigDict, Field, model_validator

from trajudge.eval.scoring.metrics import METRICS, NOTHING_VARIES
from trajudge.judges.model import Status, Usage
from trajudge.trajectories.model import Record
from trajudge.util.terminal import count_of, listed


class Counts(Record):
    """The confusion matrix of one judge on one label. Rates are fractions; None where the
    denominator is zero: not defined is not zero."""

    tp: int
    fp: int
    fn: int
    tn: int

    @property
    def n(self) -> int:
        """Trajectories counted."""
        return self.tp + self.fp + self.fn + self.tn

    @property
    def positives(self) -> int:
        """Trajectories that the expert labelled positive."""
        return self.tp + self.fn

    @property
    def accepted(self) -> int:
        """Trajectories that the judge called positive: precision's denominator."""
        return self.tp + self.fp


LabelName = Literal["success", "side_effect", "repetition", "process"]

Missing = Literal["negative", "exclude", "agentrewardbench"]

LABELS: tuple[LabelName, ...] = get_args(LabelName)

LABEL_TITLES: dict[LabelName, str] = {
    "success": "Success",
    "side_effect": "Side effect",
    "repetition": "Repetition",
    "process": "Process",
}

OVERALL = "overall"

ALL_AGENTS = "all"

RULE_BASED = "rule-based"

WEIGHTED = (
    "labels: drawn with unequal probabilities: every rate weights a label by one over its "
    "inclusion probability, while n counts labels"
)

# The corrected p-value at which two judges differ.
ALPHA = 0.05

Limits = tuple[float, float]


class MetricDifference(Record):
    """``first`` minus ``second`` in one metric, on the ``n`` trajectories that both judged.

    ``low`` and ``high`` are 95 % limits over tasks
    (``stats.intervals``), ``p`` the level at which they exclude zero and
    ``p_holm`` that corrected for the number of pairs; None where undefined. ``note`` says why.
    """

    benchmark: str = OVERALL
    label: LabelName = "success"
    metric: str
    first: str
    second: str
    n: int
    difference: float | None
    low: float | None
    high: float | None
    p: float | None
    p_holm: float | None
    note: str = ""


class McNemarResult(Record):
    """McNemar's exact test of who is right more often (accuracy; the two are swapped in
    whole tasks), and ``improvement``, the probability that on a task drawn at random a verdict of
    ``first`` is better than one of ``second`` (a tie counts half), with 95 % limits over tasks."""

    benchmark: str = OVERALL
    label: LabelName = "success"
    first: str
    second: str
    n: int
    only_first_right: int
    only_second_right: int
    p: float
    p_holm: float
    improvement: float | None = None
    improvement_low: float | None = None
    improvement_high: float | None = None


class Ranking(Record):
    """Judges by one metric, best first, those whose rate is ``undefined`` last; ``equal`` are those
    whose rate is exactly that of the judge before. ``ties`` are the longest runs of neighbours of
    whom no two are told apart (Demšar 2006's bars), then the other pairs that are not, ``apart``
    the pairs that are."""

    benchmark: str = OVERALL
    label: LabelName = "success"
    metric: str
    judges: tuple[str, ...]
    ties: tuple[tuple[str, ...], ...]
    apart: tuple[tuple[str, str], ...]
    undefined: tuple[str, ...] = ()
    equal: tuple[str, ...] = ()

    @property
    def are_all_tied(self) -> bool:
        """Tell whether no two judges whose rate is defined are told apart."""
        return any(len(tie) == len(self.judges) - len(self.undefined) for tie in self.ties)

    def order(self, most: int | None = None, *, sign: str = " > ") -> str:
        """Write the judges from best to worst with ``sign`` between them (" = " between equal
        ones), and apart from them those that have no place; of more than ``most`` the first."""
        places = [judge for judge in self.judges if judge not in self.undefined]
        signed = [(" = " if judge in self.equal else sign) + judge for judge in places]
        unplaced = f"undefined: {listed(self.undefined, most)}" if self.undefined else ""
        placed = listed(signed, most, sign="")[len(sign) :]
        return "; ".join(filter(None, (placed, unplaced)))

    def tied(self, most: int | None = None) -> str:
        """Write the judges that are not told apart, without a sign that the order gives another
        meaning; empty where all are. Of more than ``most`` names (at least two) the first, of
        half as many groups."""
        names = None if most is None else max(most, 2)
        groups = [
            f"{', '.join(tie[:-1])} and {tie[-1]}"
            if names is None or len(tie) <= names
            else listed(tie, names)
            for tie in self.ties
        ]
        shown = len(groups) if names is None else names // 2
        more = [f"and {count_of(len(groups) - shown, 'more group')}"] * (len(groups) > shown)
        return "; ".join([*groups[:shown], *more])

    def puts_above(self, first: str, second: str) -> bool:
        """Tell whether ``first`` stands above ``second``, not level with it."""
        before, after = self.judges.index(first), self.judges.index(second)
        return any(judge not in self.equal for judge in self.judges[before + 1 : after + 1])


class Comparison(Record):
    """Every pair of judges on every label that both were asked for, over all benchmarks first."""

    differences: tuple[MetricDifference, ...] = ()
    discordances: tuple[McNemarResult, ...] = ()
    rankings: tuple[Ranking, ...] = ()


class EqualRecall(Record):
    """A judge's precision less that of a trivial ``baseline`` which is made to accept as many of
    the same ``n`` trajectories' successes: at the judge's ``recall``.

    The baseline accepts by its score, or else by its verdict, from the threshold at which its
    recall is the judge's; of the trajectories at the threshold a share. ``low`` and ``high`` are
    95 % limits over tasks that take this threshold for given; None where undefined.
    """

    judge: str
    baseline: str
    n: int
    recall: float
    precision: float
    baseline_precision: float
    difference: float
    low: float | None
    high: float | None


FaultRate = Literal[
    "precision",
    "recall",
    "f1",
    "false_alarms",
    "silent_recall",
    "loud_recall",
    "step_exact",
    "step_within_one",
    "step_found",
]

FAULT_RATES: tuple[FaultRate, ...] = get_args(FaultRate)


class FaultScore(Record):
    """How one judge finds runs whose process is faulty, and where: a fault is the positive.

    Of ``n`` runs ``faulty`` are so; ``false_alarms`` is the share of the sound ones that are called
    faulty. A ``silent`` fault left the outcome right, a ``loud`` one did not. Of the faults that
    the judge found, ``named`` come with a step: ``step_exact`` and ``step_within_one`` are shares
    of these, ``step_found`` is the share of all faults that were found at their exact step.
    ``type_f1`` is the mean over the kinds of faults of the F1 of naming each, among faulty runs.
    A failed judgment finds nothing. Rates are fractions with 95 % limits over tasks in
    ``intervals``, None where undefined.
    """

    judge: str
    n: int
    faulty: int
    silent: int
    loud: int
    named: int
    precision: float | None
    recall: float | None
    f1: float | None
    false_alarms: float | None
    silent_recall: float | None
    loud_recall: float | None
    step_exact: float | None
    step_within_one: float | None
    step_found: float | None
    type_f1: float | None
    intervals: dict[FaultRate, Limits] = Field(default_factory=dict)


class Score(Record):
    """One judge (or the rule-based ``baseline`` on the same trajectories) on one label.

    ``n`` trajectories of ``tasks`` tasks were scored, ``positives`` of them labelled positive;
    ``missing`` of the ``n`` judgments failed (under ``exclude``: besides the ``n``). Left out and
    counted: ``unsure`` labels and, for the baseline, trajectories ``without_reward``. Every metric
    of ``metrics.METRICS`` is an attribute (``score.precision``), a fraction, None where undefined;
    those of the judge's scores are on ``scored`` of the trajectories.

    ``intervals`` holds the 95 % limits of what has them, all cluster-robust over tasks
    (``stats.intervals``); ``no_interval`` says why a metric that is defined has none.
    ``design_effects``: how many times larger a rate's variance is than that of independent
    trajectories.
    """

    model_config = ConfigDict(extra="allow")

    judge: str
    baseline: bool
    benchmark: str
    agent: str = ALL_AGENTS
    label: LabelName
    n: int
    tasks: int
    positives: int
    counts: Counts
    missing: int
    unsure: int
    without_reward: int
    scored: int
    intervals: dict[str, Limits] = Field(default_factory=dict)
    no_interval: dict[str, str] = Field(default_factory=dict)
    design_effects: dict[str, float] = Field(default_factory=dict)
    __pydantic_extra__: dict[str, float | None] = Field(init=False)

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> float | None: ...

    @model_validator(mode="after")
    def _check_metrics(self) -> Score:
        if unknown := [name for name in self.rates if name not in METRICS]:
            raise ValueError(f"no metric is named {unknown[0]!r}")
        return self

    @property
    def rates(self) -> dict[str, float | None]:
        """The metrics by name."""
        return self.__pydantic_extra__

    @property
    def degenerate(self) -> tuple[str, ...]:
        """The metrics without an interval because nothing varies."""
        reasons = self.no_interval.items()
        return tuple(name for name, reason in reasons if reason == NOTHING_VARIES)


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
    intervals: dict[str, Limits] = Field(default_factory=dict)


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
    intervals: dict[str, Limits] = Field(default_factory=dict)
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
    training: int
    verdicts: dict[LabelName, int] = Field(default_factory=dict)
    positive: dict[LabelName, int] = Field(default_factory=dict)


class UsageTotals(Record):
    """What calls used, each distinct request once. ``cost`` in US dollars over the calls whose
    cost is known, None if there is none; ``unpriced`` calls come on top, of which the server did
    not report the usage of ``unreported``. ``cached`` calls, worth
    ``cached_cost`` dollars and ``cached_unpriced`` of them nobody knows how many, were not paid by
    this run: the cache had their replies. ``seconds`` is the latency of those that were sent, added
    up."""

    calls: int
    usage: Usage
    cost: float | None
    unpriced: int
    cached: int = 0
    cached_cost: float = 0.0
    cached_unpriced: int = 0
    seconds: float = 0.0
    unreported: int


class UnattributedCost(Record):
    """What a run paid on top of the cost that its judgments state: ``dollars`` for attempts that
    failed, replies that a later one replaced, replies whose judgment never came and requests that
    several workers made; ``unpriced`` of these attempts come on top. ``rebate`` are the dollars by
    which the judgments' own replies were cheaper, as in batches. ``presumed`` are those
    that count towards --max-cost for replies of unknown cost."""

    dollars: float = 0.0
    unpriced: int = 0
    rebate: float = 0.0
    presumed: float = 0.0


class StageUsage(UsageTotals):
    """One stage of a judge: caption, describe, verdict, ..."""

    stage: str


class JudgeUsage(UsageTotals):
    """What one judge used; ``stages`` in the order in which it asks."""

    judge: str
    stages: tuple[StageUsage, ...]


class UnfinishedRun(Record):
    """A run of ``judge`` that was cut short, or goes on: ``judged`` of the ``due`` judgments."""

    judge: str
    judged: int
    due: int


class ScoreReport(Record):
    """Everything that the tables show, in a stable order. ``compared``: judges were held against
    each other. ``against_baseline``: every judge less the rule-based baseline on the same
    trajectories, ``p_holm`` over the judges. ``baselines`` are the scores of trivial baselines,
    which read no page, and ``equal_recall`` what judges reach beyond them. ``faults``: where
    the question is the process, how judges find and place faults. ``label_policy`` made one
    label of several opinions, "" where a run has its one label. ``unattributed_cost``: what the
    runs paid on top of what the ``spending`` of their judgments tells. ``unfinished`` are the runs
    that lack judgments."""

    missing: Missing
    compared: bool
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
    unattributed_cost: UnattributedCost = UnattributedCost()
    unfinished: tuple[UnfinishedRun, ...] = ()

    def titled(self, title: str) -> str:
        """Head a table: with the policy that made the labels, if it is one of several."""
        return f"{title} (labels: {self.label_policy})" if self.label_policy else title
