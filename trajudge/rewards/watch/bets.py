"""Tests that may be looked at after every observation: the wealth of a player who bets on it.

Observations lie in [0, 1]. Under the null, that their mean given the past is at most ``bound``, the
wealth exceeds 1 / alpha at any time with probability at most alpha (Ville's inequality). The wealth
is the mean over players who stake different shares (see ``eval.accept.recertify``).
"""

from __future__ import annotations

import numpy as np

_STAKES = np.linspace(0.05, 0.95, 19)
_MOST = 1e15  # evidence for a change: more of it would only make the way back longer


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


class ChangeDetector:
    """The evidence that the mean rose above ``bound`` at some time: the summed wealth of players of
    whom one begins with each observation (Shin, Ramdas and Rinaldo 2022, the Shiryaev-Roberts
    e-detector). While nothing changes, an evidence of A is reached after A observations or more in
    the mean; it falls again once the mean does."""

    def __init__(self, bound: float) -> None:
        self.bound = bound
        self.evidence = 0.0
        self._wealth = np.zeros(len(_STAKES))

    def add(self, observation: float) -> float:
        """Bet on an observation; return the evidence now."""
        factors = 1 + _STAKES / self.bound * (observation - self.bound)
        self._wealth = np.minimum((self._wealth + 1) * factors, _MOST)
        self.evidence = float(self._wealth.mean())
        return self.evidence
