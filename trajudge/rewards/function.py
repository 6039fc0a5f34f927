"""The function from a judgment to its reward, and the version by which rewards are told apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson
from pydantic import ValidationError

from trajudge.eval.accept.accept import check_judges, filter_of
from trajudge.eval.analysis.calibration import Calibration, read_calibration
from trajudge.eval.select.binding import JudgeConfiguration, configuration_of_run, differences
from trajudge.eval.select.decision import Decision, read_decision
from trajudge.judges.model import Judgment
from trajudge.rewards.reward import Abstention, Reward
from trajudge.rewards.settings import RewardConfig, RewardShaping
from trajudge.rewards.shaping import neutral_share, shaped
from trajudge.stats.calibration import FittedMap
from trajudge.trajectories.model import TrajectoryKey
from trajudge.util.errors import UserError


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
