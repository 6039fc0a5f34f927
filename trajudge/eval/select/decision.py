"""The decision as a record: what ``decision.json`` holds."""

from __future__ import annotations

from typing import Literal

from trajudge.eval.reporting.sentences import threshold_text
from trajudge.eval.select.binding import DecisionScope
from trajudge.eval.select.measures.transport import Transport
from trajudge.eval.select.measures.under_attack import UnderAttack
from trajudge.eval.select.plan import Rule, SelectionPlan
from trajudge.trajectories.model import Record

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


class CandidateResult(Record):
    """One candidate.

    ``rate`` is the one that the target bounds from below: precision, or the true-negative rate.
    Its limits are at the level that the correction leaves to this candidate. ``precision`` is the
    share of true successes among the accepted, ``recall`` the share of true successes kept.
    ``worst`` is the benchmark with the lowest limit; on ``untested`` ones it accepts nothing.
    ``more_labels``: of trials of the rate (accepted trajectories, or failures) until a test of
    power 0.8 decides, were the estimate true; 0 where there are enough, but of too few tasks; None
    where it is decided, or too close to call.
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
    places: tuple[BenchmarkRate, ...]
    worst: str | None
    untested: tuple[str, ...]
    design_effect: float
    more_labels: int | None
    price: float | None
    clean_per_rollout: float | None
    clean_per_rollout_low: float | None
    clean_per_dollar: float | None
    clean_per_dollar_low: float | None
    tied: bool = False
    under_attack: UnderAttack | None = None

    @property
    def name(self) -> str:
        """As it is written in a sentence."""
        return f"{self.family} at threshold {threshold_text(self.threshold)}"


class Recertified(Record):
    """That the choice was tested again on other agents (``trajudge run recertify``): ``hits`` among
    ``labels`` without the ``unsure``, the e-value for the target, and the lower limit of precision
    that holds at any time."""

    labels: int
    unsure: int
    hits: int
    e_value: float
    low: float
    seed: int


class Decision(Record):
    """``chosen`` and ``nearest`` are positions in ``findings``: the best candidate that qualifies,
    or where none does the one with the highest limit of those that more labels may decide, if there
    are any. With a threat the best is the one of the
    highest limit under attack, and qualifies only where that meets the target. Those ``tied`` with
    it could not be told from it: in ``compared``, paired over the same trajectories,
    Holm-corrected. ``binding`` is what it was certified for; None: an earlier version did not
    record it. Where it was ``recertified`` it holds for the agents and benchmarks of ``binding``
    alone; the findings are those of the agents that it was chosen on."""

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
    binding: DecisionScope | None = None
    recertified: Recertified | None = None
