"""Uniform indices, and how often each comes up: the random numbers that resampling needs.

A small index needs few bits, so several are read as the digits of one large uniform integer:
a uniform integer below ``bound ** d`` has ``d`` independent uniform digits in base ``bound``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.unsignedinteger]
Counts = NDArray[np.float32]

DIGITS, BITS = 8, 56
"""Most digits read from a word, and the bits they may fill: 64-bit words are then redrawn at
most once in 256 times to stay uniform."""


def uniform_indices(bound: int, size: int, rng: np.random.Generator) -> Indices:
    """``size`` independent integers below ``bound``, (size,), exactly uniform."""
    digits = 1
    while digits < DIGITS and bound ** (2 * digits) <= 2**BITS:
        digits *= 2
    words: Indices = rng.integers(0, bound**digits, size=-(-size // digits), dtype=np.uint64)
    while digits > 1:
        digits //= 2
        words = _halves(words, bound**digits)
    return words[:size]


class Multiplicities:
    """How often each value comes up when blocks of values are resampled, ``n`` times over.

    Within each block of ``size`` values, ``size`` are drawn with replacement: a multinomial row.
    Indices are drawn and counted, which is many times faster than ``rng.multinomial``. Buffers
    are kept from draw to draw: asking the system for fresh pages costs as much as the draws.
    """

    def __init__(self, sizes: Sequence[int], n: int) -> None:
        self.sizes = tuple(sizes)
        self._drawn = np.empty((max(self.sizes, default=0), n), dtype=np.int64)
        self._counts = np.empty((n, sum(self.sizes)), dtype=np.float32)

    def draw(self, rng: np.random.Generator) -> Counts:
        """Draw counts (n, sum(sizes)), which are valid until the next draw."""
        n, width = self._counts.shape
        flat, place = self._counts.reshape(-1), np.arange(n) * width
        flat.fill(0)
        for size in self.sizes:
            block = self._drawn[:size]
            indices = uniform_indices(size, size * n, rng).reshape(size, n)
            np.add.at(flat, np.add(indices, place, out=block).reshape(-1), np.float32(1))
            place += size
        return self._counts


def _halves(words: Indices, base: int) -> Indices:
    """High and low halves of ``words`` (W,) in base ``base``, (2W,), in the narrowest type."""
    wide = words.dtype.type(base)
    high = words // wide
    halves = np.empty(2 * len(words), dtype=np.min_scalar_type(base - 1))
    halves[: len(words)] = high
    halves[len(words) :] = words - high * wide
    return halves
