"""Profiles count ties in; exceedance counts them out."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from trajudge.stats.suites import exceedance_curve, performance_profile, profile_band

RATES = st.lists(st.integers(0, 10), min_size=1, max_size=20)


@given(RATES, RATES)
def test_profile_is_the_share_at_least_tau(rates: list[int], taus: list[int]) -> None:
    ours = performance_profile(np.array(rates) * 0.1, np.array(taus) / 10)
    assert ours.tolist() == [np.mean([r >= tau for r in rates]) for tau in taus]


@given(RATES, RATES)
def test_exceedance_is_the_share_above(shifts: list[int], lines: list[int]) -> None:
    ours = exceedance_curve(-np.array(shifts) * 0.1, np.array(lines) / 10)
    assert ours.tolist() == [np.mean([s > line for s in shifts]) for line in lines]


def test_a_band_encloses_the_profile_of_its_replicates() -> None:
    rng = np.random.default_rng(0)
    replicates = rng.random((500, 6))
    band = profile_band(replicates.mean(axis=0), replicates, np.linspace(0, 1, 11))
    assert band.low.shape == (11,)
    assert (band.low <= band.high).all()
    assert band.low[0] == band.high[0] == 1


def test_no_pair_no_curve() -> None:
    assert np.isnan(exceedance_curve([], [0.1, 0.2])).all()
