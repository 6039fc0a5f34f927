"""Performance profiles and exceedance curves: how much of the suite is above a line.

Sources: Statistical Precipice, section 6.2 ("at least the success rate tau", so ties count) and
figure 4; Agarwal et al. 2021 count strictly above, which differs at every rate k / R.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from trajudge.eval.stats.interval import Floats, Interval
from trajudge.eval.stats.intervals.cluster_bootstrap import percentile_interval

TIE = 1e-12
"""Rates this close to a threshold are equal to it: 3 / 10 computed two ways must not differ."""


def performance_profile(rates: ArrayLike, thresholds: ArrayLike) -> Floats:
    """Share of the apps (..., A) with rate >= tau, for every tau (T,): (..., T)."""
    ordered = np.asarray(rates, dtype=float)[..., None, :]
    return np.asarray((ordered >= np.asarray(thresholds)[:, None] - TIE).mean(axis=-1))


def profile_band(
    rates: ArrayLike, replicates: ArrayLike, thresholds: ArrayLike, confidence: float = 0.95
) -> Interval:
    """Compute the profile and its pointwise bootstrap ends (T,) from app-rate replicates (B, A)."""
    profiles = performance_profile(replicates, thresholds)
    return percentile_interval(
        performance_profile(rates, thresholds), np.ascontiguousarray(profiles.T), confidence
    )


def exceedance_curve(shifts: ArrayLike, thresholds: ArrayLike) -> Floats:
    """Share of the shifts (P,) with |shift| > threshold (T,): (T,); ``nan`` without a shift."""
    sizes = np.abs(np.asarray(shifts, dtype=float))
    if not sizes.size:
        return np.full(np.shape(thresholds), np.nan)
    return np.asarray((sizes > np.asarray(thresholds)[:, None] + TIE).mean(axis=1))
