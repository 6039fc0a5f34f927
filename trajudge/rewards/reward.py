"""From a judgment to its reward: the value and what is taken off it, calibration and decision, the
version by which rewards are told apart, and what stands for a member of a group without a value.

Penalties never turn the order of success and failure: of an accepted trajectory they take a share
of what it lies above the boundary, of a rejected one a share of what it lies above the least value.

A trainer that leaves None out needs no neutral values. For one that takes numbers alone, a member
without a value gets a neutral one: the mean of the others, whose advantage is 0 and which moves no
mean. None makes a failure a low value.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

import orjson
from pydantic import Field, ValidationError, model_validator

from trajudge.eval.accept.accept import check_judges, filter_of
from trajudge.eval.analysis.calibration import Calibration, read_calibration
from trajudge.eval.select.binding import JudgeConfiguration, configuration_of_run, differences
from trajudge.eval.select.decision import Decision, read_decision
from trajudge.eval.select.scores import accepts_score, judged_score
from trajudge.judges.model import Judgment, Status
from trajudge.rewards.settings import BOUNDARY, RewardConfig, RewardForm, RewardShaping
from trajudge.stats.calibration import FittedMap
from trajudge.trajectories.model import Record, TrajectoryKey
from trajudge.util.errors import UserError

Abstention = Literal["", "failed", "late", "unknown", "uncertain", "drift", "over_budget"]
"""Why there is no value: the judge failed, was not ready at the deadline, was asked for an id under
which nothing was pushed, was not sure enough, is no longer trusted, or may not spend more. ``""``:
there is one."""


class Reward(Record):
    """What a judgment is worth to a trainer.

    ``value`` is None exactly where the judge ``abstained``: a failure is never a number.
    ``probability`` is the calibrated one of success, None without a calibration. ``penalties`` are
    named and already subtracted from ``value``. ``status`` is the judgment's, None while the judge
    is still at work. Equal trajectories and equal ``version`` give equal values. ``cost`` in US
    dollars (None: unknown), ``seconds`` of waiting.
    """

    key: TrajectoryKey
    value: float | None
    probability: float | None = None
    verdict: bool | None = None
    penalties: dict[str, float] = Field(default_factory=dict)
    status: Status | None = None
    abstained: Abstention = ""
    detail: str = ""
    judge: str
    version: str
    cost: float | None = None
    seconds: float = 0.0
    cached: bool = False

    @model_validator(mode="after")
    def _abstains_or_has_a_value(self) -> Self:
        if (self.value is None) != bool(self.abstained):
            raise ValueError("value is None exactly where the judge abstained")
        return self


PENALTIES = ("side_effect", "repetition")
MOST_LOG_ODDS = 4.0


class ShapedValue(NamedTuple):
    """What ``Reward`` has of these names."""

    value: float | None
    probability: float | None
    penalties: dict[str, float]
    abstained: Abstention


def shaped(judgment: Judgment, fitted: FittedMap | None, shaping: RewardShaping) -> ShapedValue:
    """Shape a judgment into a value; one that failed or says neither yes nor no has none."""
    score = judged_score(judgment)
    if score is None:
        return ShapedValue(None, None, {}, "failed")
    probability = None if fitted is None else float(fitted(score))
    accepted = _accepts(judgment, score, shaping)
    if shaping.form == "gate" and not accepted and accepts_score(score, shaping.reject_below):
        return ShapedValue(None, probability, {}, "uncertain")
    if shaping.form in ("verdict", "gate"):
        base, boundary = float(accepted), BOUNDARY
    else:
        threshold = shaping.boundary
        base = _formed(score if probability is None else probability, shaping.form)
        boundary = _formed(threshold if fitted is None else float(fitted(threshold)), shaping.form)
    width = shaping.high - shaping.low
    room = 1.0 if shaping.allow_flip else max(0.0, base - (boundary if accepted else 0.0))
    penalties = {
        name: room * getattr(shaping, name) * width
        for name in PENALTIES
        if getattr(judgment, name) and getattr(shaping, name)
    }
    value = shaping.low + width * base - sum(penalties.values())
    return ShapedValue(max(shaping.low, value), probability, penalties, "")


def neutral_share(
    shaping: RewardShaping,
    base_rate: float,
    scores: Sequence[tuple[float, int]],
    own: Sequence[int] | None = None,
) -> float:
    """Return the value between 0 and 1 that stands for an abstention, from trajectories of which
    the share ``base_rate`` succeeded; ``scores`` are pairs of a score and how many had it, of which
    ``own`` were accepted by the judge's own verdict (None: not recorded).

    Of verdicts it is the mean value: the share accepted of those that get a value. A lenient judge
    accepts more than succeed, so that the base rate would make an abstention a punishment.
    """
    if shaping.form not in ("verdict", "gate"):
        return _formed(base_rate, shaping.form)
    if own is None or shaping.threshold is not None:
        own = [n if accepts_score(score, shaping.boundary) else 0 for score, n in scores]
    rejected = sum(
        n - accepted
        for (score, n), accepted in zip(scores, own, strict=True)
        if shaping.form == "verdict" or not accepts_score(score, shaping.reject_below)
    )
    valued = sum(own) + rejected
    return sum(own) / valued if valued else base_rate


def _accepts(judgment: Judgment, score: float, shaping: RewardShaping) -> bool:
    if shaping.threshold is None and judgment.success is not None:
        return judgment.success
    return accepts_score(score, shaping.boundary)


def _formed(probability: float, form: RewardForm) -> float:
    """Map a probability into [0, 1]."""
    if form != "logit" or probability in (0, 1):
        return probability
    log_odds = math.log(probability / (1 - probability))
    return 0.5 + max(-MOST_LOG_ODDS, min(MOST_LOG_ODDS, log_odds)) / (2 * MOST_LOG_ODDS)


class Abstained(Exception):
    """The judge gave no value, and there is no neutral one."""


def neutral_values(rewards: Sequence[Reward], *, base_rate: float | None = None) -> list[float]:
    """Return the values of one group, (N,), in its order, neutral ones for members without.

    ``base_rate`` is the neutral value of a group in which nobody has one. Raises Abstained where it
    is needed and None.
    """
    known = [reward.value for reward in rewards if reward.value is not None]
    neutral = sum(known) / len(known) if known else base_rate
    values = [neutral if reward.value is None else reward.value for reward in rewards]
    first = next((one for one in rewards if one.value is None), None)
    if first is not None and neutral is None:
        raise Abstained(
            f"{why_abstained(first)}; no member of its group has a value, and there is no neutral "
            "value: give  trajudge serve  --neutral-value VALUE"
        )
    return [value for value in values if value is not None]


def why_abstained(reward: Reward) -> str:
    """Name the trajectory of a reward without a value, and why it has none."""
    name = reward.key if reward.key.benchmark else reward.key.task_id
    return f"{name}: {reward.abstained} ({reward.detail or reward.status})"


@dataclass(frozen=True)
class RewardFunction:
    """``configuration`` is the judge's; ``decided`` the hash of the decision's plan that gave the
    threshold, "" without one; ``notes`` say how far the values can be trusted."""

    configuration: JudgeConfiguration
    shaping: RewardShaping
    calibration: Calibration | None = None
    decided: str = ""
    notes: tuple[str, ...] = ()

    @cached_property
    def version(self) -> str:
        """16 hexadecimal digits that change with the judge, its calibration or the shaping."""
        content = {
            "judge": self.configuration.model_dump(mode="json"),
            "calibration": self.calibration and self.calibration.map.model_dump(mode="json"),
            "shaping": self.shaping.model_dump(mode="json"),
            "decision": self.decided,
        }
        return sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]

    @cached_property
    def fitted(self) -> FittedMap | None:
        return None if self.calibration is None else self.calibration.map.fitted()

    @property
    def base_rate(self) -> float | None:
        """Share of successes among the trajectories that the calibration was measured on; None
        where it was measured on none."""
        if self.calibration is None:
            return None
        bins = self.calibration.raw.bins
        count = sum(one.n for one in bins)
        return sum(one.n * one.rate for one in bins) / count if count else None

    @property
    def neutral_value(self) -> float | None:
        """The value that stands for an abstention where a trainer takes numbers alone."""
        rate, shaping = self.base_rate, self.shaping
        if rate is None or self.calibration is None:
            return None
        bins = self.calibration.raw.bins
        own = [one.accepted for one in bins if one.accepted is not None]
        scores = [(one.mean_score, one.n) for one in bins]
        share = neutral_share(shaping, rate, scores, own if len(own) == len(bins) else None)
        return shaping.low + (shaping.high - shaping.low) * share

    def __call__(self, judgment: Judgment, *, seconds: float = 0.0) -> Reward:
        """Return the judgment's reward; the judge took ``seconds``."""
        value = shaped(judgment, self.fitted, self.shaping)
        costs = [call.cost for call in judgment.calls]
        known = [cost for cost in costs if cost is not None]
        return Reward(
            key=judgment.key,
            verdict=judgment.success,
            status=judgment.status,
            detail=judgment.detail,
            judge=judgment.judge,
            version=self.version,
            cost=sum(known) if len(known) == len(costs) else None,
            seconds=seconds,
            cached=bool(costs) and all(call.cached for call in judgment.calls),
            **value._asdict(),
        )

    def abstention(
        self, key: TrajectoryKey, abstained: Abstention, detail: str, seconds: float
    ) -> Reward:
        """Return the reward of a trajectory of which there is no judgment."""
        return Reward(
            key=key,
            value=None,
            abstained=abstained,
            detail=detail,
            judge=self.configuration.judge,
            version=self.version,
            seconds=seconds,
        )


def reward_function(
    config: RewardConfig, judge: str, manifest: Mapping[str, Any]
) -> RewardFunction:
    """Make the function of a judge, of which ``manifest`` says what a run's would.

    Raises UserError for a calibration or a decision that was made for another judge.
    """
    configuration = configuration_of_run(judge, manifest)
    shaping, notes, decided = config.shaping, list[str](), ""
    calibration = None
    if config.calibration is not None:
        calibration = read_calibration(config.calibration, judge)
        notes += _check_calibration(config.calibration, calibration, configuration)
    elif shaping.form in ("identity", "logit"):
        notes.append("no calibration: values are the judge's own scores, not probabilities")
    if config.decision is not None:
        decision = read_decision(config.decision)
        shaping, more = _decided(config, decision, configuration)
        notes, decided = [*notes, *more], decision.plan_hash
    return RewardFunction(configuration, shaping, calibration, decided, tuple(notes))


def _check_calibration(
    path: Path, calibration: Calibration, configuration: JudgeConfiguration
) -> list[str]:
    if calibration.configuration is None:
        return [f"{path} does not record how its judge was configured: it may be another"]
    if different := list(differences(calibration.configuration, configuration)):
        raise UserError(
            f"{path}: was fitted to another judge of the name {configuration.judge}: this one has "
            f"{'; '.join(different)}: fit it anew with  trajudge score --calibration auto"
        )
    return []


def _decided(
    config: RewardConfig, decision: Decision, configuration: JudgeConfiguration
) -> tuple[RewardShaping, list[str]]:
    """Take the decision's threshold, and return what the user has to know of it."""
    source = config.decision or Path()
    notes = []
    if decision.chosen is None and config.unqualified and decision.nearest is not None:
        nearest = decision.findings[decision.nearest]
        rule, threshold = nearest.rule, nearest.threshold
        notes.append(f"{source}: no judge qualified; {nearest.name} came nearest: no guarantee")
    else:
        choice = filter_of(decision, source)
        rule, threshold = choice.rule, choice.threshold
        notes += [choice.warning] if choice.warning else []
    if rule.kind != "judge" or rule.judges[0] != configuration.judge:
        raise UserError(
            f"{source}: decided for {' + '.join(rule.judges)}, not for {configuration.judge}: "
            "name that judge and its model; a panel as --judge panel"
        )
    notes += check_judges(
        decision,
        rule,
        {rule.judges[0]: configuration},
        source=source,
        assume_same=config.assume_same_judge,
    )
    try:
        threshold_or_verdict = None if rule.use == "verdict" else threshold
        changed = {**config.shaping.model_dump(), "threshold": threshold_or_verdict}
        return RewardShaping.model_validate(changed), notes
    except ValidationError as error:
        raise UserError(
            f"{source}: its threshold {threshold:g} is below reject_below "
            f"{config.shaping.reject_below:g}: lower that"
        ) from error
