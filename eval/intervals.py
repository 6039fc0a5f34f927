"""Confidence intervals for proportions."""

from __future__ import annotations

from math import sqrt
from statistics import NormalDist
from typing import NamedTuple


class Interval(NamedTuple):
    """Two-sided confidence limits, fractions."""

    low: float
    high: float


def wilson(successes: int, trials: int, confidence: float = 0.95) -> Interval | None:
    """Score interval of a binomial proportion (Wilson 1927); None without a trial.

    Keeps its coverage with few trials and at 0 and 1, where the textbook (Wald) interval
    collapses to a point.
    """
    if not 0 <= successes <= trials:
        raise ValueError(f"{successes} successes in {trials} trials")
    if trials == 0:
        return None
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    share = successes / trials
    centre = share + z * z / (2 * trials)
    spread = z * sqrt(share * (1 - share) / trials + (z / (2 * trials)) ** 2)
    scale = 1 + z * z / trials
    # Rounding may leave the exact limits 0 and 1 by an ulp.
    return Interval(
        0.0 if successes == 0 else (centre - spread) / scale,
        1.0 if successes == trials else (centre + spread) / scale,
    )
