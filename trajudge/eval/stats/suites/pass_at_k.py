"""pass@k, pass^k, and why pass@k on a static benchmark is what a blind replay scores.

Sources: Chen et al. 2021 for the unbiased estimator; Statistical Precipice, remark 1 and
section 9, for the replay policy: it stores one success out of k rollouts and repeats it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from trajudge.eval.stats.interval import Floats, Ints


@dataclass(frozen=True)
class Replay:
    """Remark 1 in numbers: single attempt <= pass@k = the replay policy's expected rate."""

    single: float
    pass_at_k: float
    replayed: float
    standard_error: float


def pass_at_k(successes: ArrayLike, trials: ArrayLike, k: int) -> Floats:
    """Unbiased P(at least one success in k attempts), per task; ``nan`` where trials < k."""
    c, n = _counts(successes, trials, k)
    return np.asarray(np.where(n < k, np.nan, 1 - _all_drawn_from(n - c, n, k)))


def pass_hat_k(successes: ArrayLike, trials: ArrayLike, k: int) -> Floats:
    """Unbiased P(success in all of k attempts), written pass^k; ``nan`` where trials < k."""
    c, n = _counts(successes, trials, k)
    return np.asarray(np.where(n < k, np.nan, _all_drawn_from(c, n, k)))


def replay_equivalence(
    rates: ArrayLike, k: int, rng: np.random.Generator, n_simulations: int = 1000
) -> Replay:
    """Simulate the replay policy on tasks (N,) that a source agent solves at ``rates``."""
    p = np.asarray(rates, dtype=float)
    stored = rng.binomial(k, p, size=(n_simulations, len(p))) > 0
    scores = stored.mean(axis=1)  # a stored success succeeds again: the start state is fixed
    error = float(scores.std(ddof=1) / n_simulations**0.5)
    return Replay(float(p.mean()), float((1 - (1 - p) ** k).mean()), float(scores.mean()), error)


def replay_success(
    successes: ArrayLike, trials: ArrayLike, k: int, rng: np.random.Generator, n_simulations: int
) -> Floats:
    """Replay scores (n_simulations,) when k of each task's recorded rollouts are kept at random.

    Its expectation is the mean of ``pass_at_k``. Raises ValueError where trials < k.
    """
    c, n = _counts(successes, trials, k)
    if (n < k).any():
        raise ValueError(f"some task has fewer than k = {k} rollouts")
    kept = rng.hypergeometric(c, n - c, k, size=(n_simulations, *c.shape))
    return np.asarray((kept > 0).mean(axis=-1))


def _counts(successes: ArrayLike, trials: ArrayLike, k: int) -> tuple[Ints, Ints]:
    c, n = np.broadcast_arrays(
        np.asarray(successes, dtype=np.int64), np.asarray(trials, dtype=np.int64)
    )
    if k < 1 or not ((c >= 0) & (c <= n)).all():
        raise ValueError("k must be at least 1, and successes between 0 and trials")
    return c, n


def _all_drawn_from(marked: Ints, n: Ints, k: int) -> Floats:
    """P(all of k drawn without replacement out of n are marked), as a product of k factors."""
    chance = np.ones(marked.shape)
    for drawn in range(k):
        chance *= np.maximum(marked - drawn, 0) / np.maximum(n - drawn, 1)
    return chance
