"""How many labels decide whether a rate meets its target: the exact binomial size of a test."""

from __future__ import annotations

import math

import numpy as np
import scipy

_MOST = 200_000


def labels_needed(
    target: float, truth: float, *, alpha: float = 0.05, power: float = 0.8
) -> int | None:
    """Find the smallest number of independent labels that shows, with probability ``power``, on
    which side of ``target`` a true rate ``truth`` lies, one-sided at ``alpha``.

    None where the two are too close for any number within reason. Multiply by the design effect
    where several trajectories of a task are labelled.
    """
    from scipy.stats import binom  # noqa: PLC0415 - slow to import

    if truth < target:
        return labels_needed(1 - target, 1 - truth, alpha=alpha, power=power)
    largest = _about(target, truth, alpha, power)
    if largest is None:
        return None
    n = np.arange(1, largest + 1)
    # The fewest hits among n that reject the target, less one.
    critical = binom.isf(alpha, n, target)
    reached = binom.sf(critical, n, truth) >= power
    return int(n[reached.argmax()]) if reached.any() else None


def _about(target: float, truth: float, alpha: float, power: float) -> int | None:
    """Take twice the normal approximation, and enough for a truth of 1."""
    if not truth > target:
        return None
    spread = -scipy.special.ndtri(alpha) * math.sqrt(target * (1 - target))
    spread += max(scipy.special.ndtri(power), 0.0) * math.sqrt(truth * (1 - truth))
    n = 2 * (spread / (truth - target)) ** 2 + 3 * math.log(alpha) / math.log(target) + 50
    return math.ceil(n) if n <= _MOST else None
