"""The one shape in which every estimator answers: an estimate, its interval, and what to know.

``scipy.special`` is named in full here and elsewhere: scipy imports it when it is first used, and
importing it takes as long as all that a command needs to judge.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Interval:
    """A two-sided interval, or an array of them; ``nan`` where undefined.

    ``estimate``, ``low`` and ``high`` have one shape. ``notes`` says in plain sentences why a
    value is undefined or what limits it.
    """

    estimate: Floats
    low: Floats
    high: Floats
    confidence: float = 0.95
    notes: tuple[str, ...] = ()

    @property
    def width(self) -> Floats:
        """``high - low``, same shape."""
        return np.asarray(self.high - self.low)

    def covers(self, truth: Floats | float) -> Bools:
        """Tell whether ``truth`` lies inside, ends included; False where undefined."""
        return np.asarray((self.low <= truth) & (truth <= self.high))


def check_confidence(confidence: float) -> float:
    """Check the level and return the tail area on each side. Raises ValueError outside (0, 1)."""
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1, not {confidence!r}")
    return (1 - confidence) / 2


def normal_quantile(confidence: float) -> float:
    """Two-sided standard normal quantile, 1.96 at 95 %."""
    return float(-scipy.special.ndtri(check_confidence(confidence)))


def t_quantile(confidence: float, df: Floats | float) -> Floats:
    """Two-sided Student quantile at ``df`` degrees of freedom; ``nan`` where df <= 0."""
    df = np.asarray(df, dtype=float)
    upper = 1 - check_confidence(confidence)
    return np.asarray(scipy.special.stdtrit(np.where(df > 0, df, np.nan), upper))
