"""Exact binomials by lookup: Binomial(R * copies, k / R) for any number of copies.

The number of copies is written in base 16, and every digit adds a binomial of its own, so a few
hundred laws serve all numbers of copies. Each law is inverted by a guide table (Chen and Asau
1974): a bucket of probability that lies within one outcome gives it at once, the others are
searched. Probabilities are right to a rounding of 1e-13. Several times as fast as
``rng.binomial``, whose time grows with the mean up to 30.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trajudge.eval.stats.indices import Counts, uniform_indices
from trajudge.eval.stats.interval import Floats, Ints

BUCKETS = 2**10
BASE = 16
MAX_ROLLOUTS = 64
SPLIT = 2**15
"""Flag of buckets that hold more than one outcome: the rest of the entry is the first of them."""

NATS = 40.0
"""Outcomes further out than Bernstein's bound at exp(-NATS) are left out: less than a rounding."""


@dataclass(frozen=True, eq=False)
class _Digit:
    """The laws of one digit: rows are (k, value of the digit) pairs in that order.

    ``outcomes`` (rows, BUCKETS); ``ends`` (rows, W) is the row's number plus the cumulative
    probability of ``first`` (rows,) and of the outcomes after it.
    """

    values: int
    outcomes: NDArray[np.uint16]
    ends: Floats
    first: Ints

    def draw(self, law: Ints, value: NDArray[np.uint16], rng: np.random.Generator) -> Counts:
        """One outcome (U, n) for each value of the digit (U, n), under the laws of k (U,)."""
        bucket = uniform_indices(BUCKETS, value.size, rng).reshape(value.shape)
        place = (value * BUCKETS + bucket) + (law * self.values * BUCKETS)[:, None]
        drawn = self.outcomes.reshape(-1).take(place)
        split = np.flatnonzero(drawn >= SPLIT)
        row, inside = np.divmod(place.reshape(-1)[split], BUCKETS)
        sought = row + (inside + rng.random(len(split))) / BUCKETS
        below = np.nextafter(row + 1.0, 0)  # rounding must not reach the next row
        index = np.searchsorted(self.ends.reshape(-1), np.minimum(sought, below), side="right")
        drawn.reshape(-1)[split] = index - row * self.ends.shape[1] + self.first[row]
        return drawn.astype(np.float32)


@dataclass(frozen=True, eq=False)
class BinomialTables:
    """Laws of Binomial(R * copies, k / R) for every k up to R / 2; larger k mirror them."""

    rollouts: int
    digits: tuple[_Digit, ...]

    def successes(self, copies: NDArray[np.uint16], k: Ints, rng: np.random.Generator) -> Ints:
        """Successes of ``copies`` (U, n) of cells with ``k`` (U,) successes each, summed, (n,)."""
        mirrored = k > self.rollouts // 2
        law = np.where(mirrored, self.rollouts - k, k) - 1
        total = self.rollouts * copies[mirrored].sum(axis=0, dtype=np.int64)
        sign = np.where(mirrored, -1, 1).astype(np.float32)
        for place, digit in enumerate(self.digits):
            value = (copies // BASE**place) & (BASE - 1)
            if value.any():
                total += (sign @ digit.draw(law, value, rng)).astype(np.int64)
        return np.asarray(total)


def binomial_tables(rollouts: int, most_copies: int) -> BinomialTables | None:
    """Tables for up to ``most_copies``, or None where they would be too large."""
    if rollouts > MAX_ROLLOUTS or rollouts * most_copies >= SPLIT:
        return None
    units = [BASE**place for place in range(4) if BASE**place <= most_copies and rollouts > 1]
    digits = (_digit(rollouts, unit, min(BASE - 1, most_copies // unit)) for unit in units)
    return BinomialTables(rollouts, tuple(digits))


def _digit(rollouts: int, unit: int, largest: int) -> _Digit:
    """Laws of Binomial(R * unit * d, k / R): k from 1 to R / 2, d from 0 to ``largest``."""
    k = np.arange(1, rollouts // 2 + 1)
    tries = np.tile(rollouts * unit * np.arange(largest + 1), len(k))
    chance = np.repeat(k / rollouts, largest + 1)
    ends, first = _cumulative(tries, chance)
    rows = np.arange(len(tries))[:, None]
    scaled = ends * BUCKETS
    edge = np.ceil(scaled).astype(np.int64)
    counts = np.bincount(
        (edge + rows * (BUCKETS + 1)).reshape(-1), minlength=len(tries) * (BUCKETS + 1)
    )
    start = counts.reshape(len(tries), -1)[:, :BUCKETS].astype(np.uint16)
    start[:, 0] += first.astype(np.uint16)
    outcomes = np.cumsum(start, axis=1, dtype=np.uint16)
    row, place = np.nonzero(edge > scaled)
    outcomes[row, edge[row, place] - 1] |= SPLIT
    return _Digit(largest + 1, outcomes, ends + rows, first)


def _cumulative(tries: Ints, chance: Floats) -> tuple[Floats, Ints]:
    """P(X <= first + w) for each law (rows, W), and ``first`` (rows,)."""
    mean, variance = tries * chance, tries * chance * (1 - chance)
    reach = NATS / 3 + np.sqrt((NATS / 3) ** 2 + 2 * NATS * variance)
    first = np.maximum(np.floor(mean - reach), 0).astype(np.int64)
    last = np.minimum(np.ceil(mean + reach).astype(np.int64), tries)
    outcome = first[:, None] + np.arange((last - first).max())
    odds = (chance / (1 - chance))[:, None]
    log_p = np.zeros((len(tries), outcome.shape[1] + 1))  # up to a constant
    with np.errstate(divide="ignore"):  # past the last outcome
        ratio = np.maximum(tries[:, None] - outcome, 0) * odds / (outcome + 1)
        np.cumsum(np.log(ratio), axis=1, out=log_p[:, 1:])
    cumulative = np.cumsum(np.exp(log_p), axis=1)
    return cumulative / cumulative[:, -1:], first
