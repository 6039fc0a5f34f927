"""Map a judgment to a reward: value, penalties, calibration, decision, version, neutral value.

Penalties never rank a success below a failure. For an accepted trajectory they subtract a share of
the distance from its value down to the boundary; for a rejected one, of the distance down to the
lowest value.

Trainers that skip None need no neutral values. For trainers that accept only numbers, a member of a
group without a value gets the mean of the others: its advantage is 0, and the mean of the group
stays the same. A failed judge never results in a low value.
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
"""Why a reward has no value; ``""`` if it has one.

``failed``: the judge failed. ``late``: no verdict by the deadline. ``unknown``: no trajectory was
pushed under the id. ``uncertain``: the score is inside the gate. ``drift``: the watch stopped the
rewards. ``over_budget``: the call would exceed the budget.
"""


class Reward(Record):
    """The reward of a trajectory.

    ``value`` is None if and only if the judge ``abstained``. ``probability`` is the calibrated
    probability of success, None without a calibration. ``penalties``, by name, are already
    subtracted from ``value``. ``status`` is the judgment's, None if there is no judgment. Equal
    trajectories with equal ``version`` have equal values. ``cost`` is in US dollars (None:
    unknown), ``seconds`` is the time from the request to the reward.
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
            raise ValueError("value is None if and only if the judge abstained")
        return self


PENALTIES = ("side_effect", "repetition")
MOST_LOG_ODDS = 4.0


class ShapedValue(NamedTuple):
    """The fields of ``Reward`` that the shaping determines."""

    value: float | None
    probability: float | None
    penalties: dict[str, float]
    abstained: Abstention


def shape_judgment(
    judgment: Judgment, fitted: FittedMap | None, shaping: RewardShaping
) -> ShapedValue:
    """Compute the value of a judgment; a judgment without a score abstains as "failed"."""
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
        base = _map_probability(score if probability is None else probability, shaping.form)
        boundary = _map_probability(
            threshold if fitted is None else float(fitted(threshold)), shaping.form
        )
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
    """Return the neutral value, in [0, 1], before it is scaled to the range of the shaping.

    ``base_rate`` is the share of successes among the calibration's trajectories. ``scores`` are
    pairs of a score and the number of trajectories with it, ``own`` the numbers of these that the
    judge's own verdict accepted (None: not recorded).

    For the forms ``verdict`` and ``gate`` it is the mean value: the share of accepted trajectories
    among those with a value. A lenient judge accepts more trajectories than succeed, so that the
    base rate would penalise an abstention.
    """
    if shaping.form not in ("verdict", "gate"):
        return _map_probability(base_rate, shaping.form)
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


def _map_probability(probability: float, form: RewardForm) -> float:
    """Return the probability, or for ``logit`` its clipped log-odds scaled to [0, 1]."""
    if form != "logit" or probability in (0, 1):
        return probability
    log_odds = math.log(probability / (1 - probability))
    return 0.5 + max(-MOST_LOG_ODDS, min(MOST_LOG_ODDS, log_odds)) / (2 * MOST_LOG_ODDS)


class Abstained(Exception):
    """The reward has no value, and no neutral value is available."""


def neutral_values(rewards: Sequence[Reward], *, base_rate: float | None = None) -> list[float]:
    """Return the values of the N rewards of one group, in order; abstentions get the group's mean.

    ``base_rate`` is used if no reward of the group has a value. Raises Abstained if it is needed
    and None.
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
    """Return the trajectory's name and the reason for which its reward has no value."""
    name = reward.key if reward.key.benchmark else reward.key.task_id
    return f"{name}: {reward.abstained} ({reward.detail or reward.status})"


@dataclass(frozen=True)
class RewardFunction:
    """Maps judgments of one judge to rewards.

    ``configuration`` is the judge's. ``decided`` is the hash of the plan of the decision that set
    the threshold, "" without a decision. ``notes`` are caveats for the user.
    """

    configuration: JudgeConfiguration
    shaping: RewardShaping
    calibration: Calibration | None = None
    decided: str = ""
    notes: tuple[str, ...] = ()

    @cached_property
    def version(self) -> str:
        """A hash (16 hexadecimal digits) of judge, calibration, shaping and decision."""
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
        """Share of successes among the trajectories that the calibration was evaluated on; None
        without any."""
        if self.calibration is None:
            return None
        bins = self.calibration.raw.bins
        count = sum(one.n for one in bins)
        return sum(one.n * one.rate for one in bins) / count if count else None

    @property
    def neutral_value(self) -> float | None:
        """The value of an abstention for trainers that accept only numbers."""
        rate, shaping = self.base_rate, self.shaping
        if rate is None or self.calibration is None:
            return None
        bins = self.calibration.raw.bins
        own = [one.accepted for one in bins if one.accepted is not None]
        scores = [(one.mean_score, one.n) for one in bins]
        share = neutral_share(shaping, rate, scores, own if len(own) == len(bins) else None)
        return shaping.low + (shaping.high - shaping.low) * share

    def __call__(self, judgment: Judgment, *, seconds: float = 0.0) -> Reward:
        """Return the reward of a judgment that took ``seconds``."""
        value = shape_judgment(judgment, self.fitted, self.shaping)
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
        """Return the reward of a trajectory that has no judgment."""
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
    """Return the reward function of a judge with the given run ``manifest``.

    Raises UserError if the calibration or the decision belongs to another judge.
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
        return [f"{path} does not record its judge's configuration: it may differ"]
    if different := list(differences(calibration.configuration, configuration)):
        raise UserError(
            f"{path}: was fitted to a different configuration of {configuration.judge}: this one "
            f"has {'; '.join(different)}: fit it again with  trajudge score --calibration auto"
        )
    return []


def _decided(
    config: RewardConfig, decision: Decision, configuration: JudgeConfiguration
) -> tuple[RewardShaping, list[str]]:
    """Return the shaping with the decision's threshold, and notes for the user."""
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
