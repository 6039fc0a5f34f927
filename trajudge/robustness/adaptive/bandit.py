"""Thompson sampling over what an attack says, where it stands and by which technique.

Each arm has a Beta posterior of its own, whose prior takes the weight of one query and the mean of
what its parts (family, carrier, technique) did elsewhere: an attack that works by one technique is
tried by the others, and a technique that never works is left (Russo et al. 2018, section 7.2, on
such priors).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

_LEAST = 1e-6  # of a Beta distribution's parameters


class Arm(NamedTuple):
    """One attack, and the ``parts`` that it shares with others."""

    name: str
    parts: tuple[str, ...]


class ThompsonBandit:
    """Chooses among ``arms`` and learns from rewards in [0, 1]."""

    def __init__(self, arms: Sequence[Arm]) -> None:
        self.arms = tuple(arms)
        names = sorted({part for arm in arms for part in arm.parts})
        places = {name: place for place, name in enumerate(names)}
        self._parts = np.array([[places[part] for part in arm.parts] for arm in arms])
        self._won, self._lost = np.zeros((2, len(arms)))
        self._part_won, self._part_tried = np.zeros((2, len(names)))

    def choose(self, rng: Generator, tried: Collection[int] = ()) -> int:
        """Draw the place of an arm that was not ``tried``. Raises ValueError if all were."""
        if len(tried) >= len(self.arms):
            raise ValueError("every arm was tried")
        prior = self._prior()
        drawn = rng.beta(
            np.maximum(self._won + prior, _LEAST), np.maximum(self._lost + 1 - prior, _LEAST)
        )
        # Where the draws of many arms that never worked are all 0, none of them is the first.
        drawn += 1e-9 * rng.random(len(drawn))
        drawn[list(tried)] = -1.0
        return int(drawn.argmax())

    def learn(self, arm: int, reward: float) -> None:
        """Take down what came of an arm."""
        self._won[arm] += reward
        self._lost[arm] += 1 - reward
        self._part_won[self._parts[arm]] += reward
        self._part_tried[self._parts[arm]] += 1

    def _prior(self) -> NDArray[np.float64]:
        """Return each arm's prior mean (A,): the geometric mean over its parts, each drawn towards
        that of all queries by the weight of one."""
        tried = self._won.sum() + self._lost.sum()
        everywhere = (self._won.sum() + 0.5) / (tried + 1)
        means = (self._part_won + everywhere) / (self._part_tried + 1)
        return np.asarray(np.exp(np.log(means[self._parts]).mean(axis=1)))


class UniformChoice:
    """Chooses as the bandit does, and learns nothing: what it is compared with."""

    def __init__(self, arms: Sequence[Arm]) -> None:
        self.arms = tuple(arms)

    def choose(self, rng: Generator, tried: Collection[int] = ()) -> int:
        """Draw the place of an arm that was not ``tried``, each with the same chance."""
        left = np.setdiff1d(np.arange(len(self.arms)), list(tried))
        return int(rng.choice(left))

    def learn(self, arm: int, reward: float) -> None:
        """Forget it."""
