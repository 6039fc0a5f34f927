"""From a judgment to a value: the form of the reward, and what is taken off it.

Penalties never turn the order of success and failure: of an accepted trajectory they take a share
of what it lies above the boundary, of a rejected one a share of what it lies above the least value.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from trajudge.eval.select.scores import accepts_score, judged_score
from trajudge.judges.model import Judgment
from trajudge.rewards.reward import Abstention
from trajudge.rewards.settings import BOUNDARY, RewardForm, RewardShaping
from trajudge.stats.calibration import FittedMap

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
