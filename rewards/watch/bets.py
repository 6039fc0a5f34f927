"""A test that may be looked at after every observation: the wealth of a player who bets on it.

Observations lie in [0, 1]. Under the null, that their mean given the past is at most ``bound``, the
wealth exceeds 1 / alpha at any time with probability at most alpha (Ville's inequality). The wealth
is the mean over players who stake different shares (see ``eval.acceptance.betting``).
"""

from __future__ import annotations

import numpy as np

_STAKES = np.linspace(0.05, 0.95, 19)


class RunningBet:
    """The wealth after the observations so far, and the largest that it was."""

    def __init__(self, bound: float) -> None:
        self.bound = bound
        self.seen = 0
        self.largest = 1.0
        self._logs = np.zeros(len(_STAKES))

    def add(self, observation: float) -> float:
        """Bet on an observation; return the largest wealth so far."""
        self.seen += 1
        self._logs += np.log1p(_STAKES / self.bound * (observation - self.bound))
        top = float(self._logs.max())
        wealth = np.exp(min(top, 600.0)) * float(np.exp(self._logs - top).mean())
        self.largest = max(self.largest, float(wealth))
        return self.largest
