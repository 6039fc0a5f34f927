"""Compatibility: the resampler that shares one index vector per dimension within an app.

Statistical Precipice, section 4.3, describes nested draws (``stats.suites``), but
the widths of its Table 3 come out only when scenarios, axis levels and rollouts are each drawn
once per app and crossed, as ``numpy.ix_`` does. Weights then multiply and intervals widen. Use
it to compare with those published widths, and for nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trajudge.stats.intervals import Floats, Ints, one_thread, stream, stream_key
from trajudge.stats.suites import Levels


def crossed_replicates(
    apps: Sequence[Ints], rng: np.random.Generator, n_resamples: int, levels: Levels | None = None
) -> Floats:
    """Replicates (B, A) of app rates from full arrays of 0/1 outcomes, (S, L1, ..., LX, R) each."""
    key = stream_key(rng)
    chosen = levels or Levels()
    with one_thread():
        rates = [
            _app_replicates(outcomes, stream(key, part), n_resamples, chosen)
            for part, outcomes in enumerate(apps)
        ]
    return np.stack(rates, axis=1)


def _app_replicates(outcomes: Ints, rng: np.random.Generator, n: int, levels: Levels) -> Floats:
    switches = (levels.scenarios, *levels.axis_switches(outcomes.ndim - 2), levels.rollouts)
    left = outcomes.astype(float)[..., None]  # the replicates' axis, last throughout
    for size, resampled in zip(reversed(outcomes.shape), reversed(switches), strict=True):
        left = left.reshape(-1, size, left.shape[-1])
        if not resampled:
            left = left.mean(axis=1)
            continue
        drawn = rng.integers(0, size, size=(n, size)) + size * np.arange(n)[:, None]
        weights = np.bincount(drawn.ravel(), minlength=n * size).reshape(n, size) / size
        left = np.einsum("jsb,bs->jb", np.broadcast_to(left, (len(left), size, n)), weights)
    return np.broadcast_to(left.ravel(), (n,)).copy()
