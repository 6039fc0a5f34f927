"""The decision as a record: what ``decision.json`` holds."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import orjson

from trajudge.eval.reporting.sentences import threshold_text
from trajudge.eval.select.binding import DecisionScope
from trajudge.eval.select.plan import SelectionPlan
from trajudge.eval.select.scores import Rule
from trajudge.trajectories.model import Record
from trajudge.util.validation import read_record

JSON_FILE = "decision.json"

CandidateVerdict = Literal["qualifies", "below the target", "undecided", "too few"]

Compared = Literal[
    "clean trajectories per dollar",
    "clean trajectories per rollout",
    "rate",
    "precision under attack",
]


class CandidateRate(Record):
    """``hits`` of ``trials``, None without a trial. ``low`` and ``high`` are one-sided limits,
    each holding with probability 1 - ``level``, tasks as clusters."""

    hits: int
    trials: int
    estimate: float | None
    low: float | None
    high: float | None
    level: float


class BenchmarkRate(Record):
    """The rate under test on one benchmark."""

    benchmark: str
    labelled: int
    rate: CandidateRate
    p_value: float


class UnderAttack(Record):
    """Precision of a judge's verdicts if every failure came with the attack that hurts most.

    ``low`` is the least of the lower limits of ``attacks`` attacks, None where there is none;
    ``catalogue`` tells which perturbations were tried, in which version.
    """

    attack: str
    precision: float
    low: float | None
    attacks: int
    catalogue: str


class CandidateResult(Record):
    """One candidate.

    ``rate`` is the one that the target bounds from below: precision, or the true-negative rate.
    Its limits are at the level that the correction leaves to this candidate. ``precision`` is the
    share of true successes among the accepted, ``recall`` the share of true successes kept.
    ``worst`` is the benchmark with the lowest limit; on ``untested`` ones it accepts nothing.
    ``more_labels``: of trials of the rate (accepted trajectories, or failures) until a test of
    power 0.8 decides, were the estimate true; 0 where there are enough, but of too few tasks; None
    where it is decided, or too close to call.
    ``tasks`` have a trial of the rate; ``interval`` is its two-sided 95 % interval, the one that
    ``trajudge score`` shows, None where it is not defined.
    ``clean`` counts accepted true successes: per rollout, and per dollar where prices are known,
    each with the value at the lower limit of precision. ``under_attack``: what the plan's threat
    leaves of precision.
    """

    family: str
    rule: Rule
    threshold: float
    labelled: int
    accepted_share: float | None
    rate: CandidateRate
    p_value: float
    verdict: CandidateVerdict
    qualifies_overall: bool
    qualifies_everywhere: bool
    precision: CandidateRate
    recall: CandidateRate
    by_benchmark: tuple[BenchmarkRate, ...]
    worst: str | None
    untested: tuple[str, ...]
    design_effect: float
    more_labels: int | None
    price: float | None
    clean_per_rollout: float | None
    clean_per_rollout_low: float | None
    clean_per_dollar: float | None
    clean_per_dollar_low: float | None
    tasks: int = 0
    interval: tuple[float, float] | None = None
    tied: bool = False
    under_attack: UnderAttack | None = None

    @property
    def name(self) -> str:
        """As it is written in a sentence."""
        return f"{self.family} at threshold {threshold_text(self.threshold)}"


class Homogeneity(Record):
    """Pearson's chi-square test that a rate is the same on every benchmark. ``p_value`` is None
    where fewer than two benchmarks have a trial. ``rates`` by benchmark: hits and trials."""

    rates: dict[str, tuple[int, int]]
    chi_square: float | None
    df: int
    p_value: float | None


class Equivalence(Record):
    """The largest difference of a rate between two of the benchmarks that the data do not exclude
    (one-sided, tasks as clusters); None where fewer than two benchmarks have a trial. Both at most
    ``margin``: the rates are equivalent (two one-sided tests for each pair; no correction for the
    number of pairs is needed, because all have to pass)."""

    margin: float
    false_positive: float | None
    true_positive: float | None

    @property
    def shown(self) -> bool:
        """Whether both rates are equivalent."""
        each = (self.false_positive, self.true_positive)
        return all(bound is not None and bound <= self.margin for bound in each)


class Transport(Record):
    """``allowed`` only where both rates were shown to be equivalent. ``least_success_rate``: the
    target holds there if at least that share of rollouts succeeds, with both rates at their
    limits and the margin added; ``false_positive_limit`` is that of the false-positive rate.
    ``accepted_to_label``: how many accepted trajectories to label on a new benchmark."""

    allowed: bool
    reason: str
    false_positive_rate: Homogeneity
    true_positive_rate: Homogeneity
    least_success_rate: float | None
    accepted_to_label: int | None
    equivalence: Equivalence
    false_positive_limit: float | None = None


class Recertified(Record):
    """A test of the choice on other agents (``trajudge accept --recertify``): ``hits`` among the
    ``labels`` without the ``unsure``, the e-value for the target, and the lower limit of precision
    that holds at any time."""

    labels: int
    unsure: int
    hits: int
    e_value: float
    low: float
    seed: int


class HoldingTarget(Record):
    """The strictest target of whole percents, weaker than the plan's, that one of the candidates
    meets on the same labels: its ``rate``, and the ``candidate``'s position in ``findings``.

    Each limit of a candidate holds for every target at once; of several thresholds of one judge a
    target named after the labels were read is not covered, so confirm it on other labels.
    """

    rate: float
    candidate: int


class Decision(Record):
    """What was chosen, and all that was shown of every candidate.

    ``chosen`` and ``nearest`` are positions in ``findings``: the best candidate that qualifies, or
    where none does the one with the highest limit of those that more labels may decide, if there
    are any. With a threat the best is the one of the highest limit under attack, and qualifies only
    where that meets the target. Those ``tied`` with it could not be told from it: in ``compared``,
    paired over the same trajectories, Holm-corrected. ``binding`` is what it was certified for.
    Where it was ``recertified`` it holds for the agents and benchmarks of ``binding`` alone; the
    findings are those of the agents that it was chosen on. Where none qualifies
    ``holding_target`` is the target that would hold. ``unlabelled`` counts the judged trajectories
    of the plan's judges without a label.
    """

    plan: SelectionPlan
    plan_hash: str
    trajectories: int
    successes: int
    benchmarks: tuple[str, ...]
    findings: tuple[CandidateResult, ...]
    chosen: int | None
    nearest: int | None
    compared: Compared
    transport: Transport | None
    notes: tuple[str, ...]
    binding: DecisionScope
    recertified: Recertified | None = None
    holding_target: HoldingTarget | None = None
    unlabelled: int = 0

    @property
    def leader(self) -> CandidateResult | None:
        """The candidate chosen, else the one that came nearest; None if none accepts anything."""
        at = self.nearest if self.chosen is None else self.chosen
        return None if at is None else self.findings[at]

    def to_json(self) -> str:
        """Write indented JSON with a newline at the end; what is undefined is null."""
        content = self.model_dump(mode="json")
        return orjson.dumps(content, option=orjson.OPT_INDENT_2).decode() + "\n"


def read_decision(path: Path) -> Decision:
    """Read ``decision.json``, or the folder that holds it. Raises UserError."""
    file = path / JSON_FILE if path.is_dir() else path
    return read_record(file, Decision, "name the folder that trajudge select wrote")
