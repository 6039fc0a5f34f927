"""The two intervals of the rules' commands: Wilson's of a share, Student's of a mean over units."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from statistics import stdev


def wilson(successes: int, trials: int) -> tuple[float | None, float | None]:
    """Wilson's 95 % limits of a share, as if the trials were independent; None without a trial."""
    if trials == 0:
        return None, None
    from scipy.stats import binomtest  # noqa: PLC0415 - slow to import

    limits = binomtest(successes, trials).proportion_ci(method="wilson")
    return float(limits.low), float(limits.high)


def t_half_width(values: Sequence[float]) -> float | None:
    """t(0.975, n - 1) · s / √n over n units; None for fewer than two, whose spread is not seen."""
    if len(values) < 2:
        return None
    from scipy.stats import t  # noqa: PLC0415 - slow to import

    return float(t.ppf(0.975, len(values) - 1)) * stdev(values) / sqrt(len(values))
