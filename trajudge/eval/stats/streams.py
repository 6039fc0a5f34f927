"""Random streams keyed by (seed, part, chunk), so that digits do not depend on scheduling."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Key = NDArray[np.uint64]


def stream_key(rng: np.random.Generator) -> Key:
    """128 bits drawn from the caller's generator: the only time that it is touched."""
    return rng.integers(0, 2**64, size=2, dtype=np.uint64)


def stream(key: Key, part: int = 0, chunk: int = 0) -> np.random.Generator:
    """Open the stream of one part (an app, a stage) and one chunk of replicates.

    numpy's seed sequence keeps streams with different (part, chunk) apart; SFC64 is its quickest
    generator, which tells where replicates are mostly random numbers.
    """
    seed = np.random.SeedSequence(key.tolist(), spawn_key=(part, chunk))
    return np.random.Generator(np.random.SFC64(seed))


def chunk_size(cells: int, budget: int = 2**17) -> int:
    """Replicates worked on at once, 16 to 1,000: bounded memory, a function of the data alone."""
    return max(16, min(1000, budget // max(cells, 1)))
