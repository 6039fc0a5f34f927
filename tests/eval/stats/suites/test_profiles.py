"""Profiles count ties in."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from trajudge.stats.suites import performance_profile

RATES = st.lists(st.integers(0, 10), min_size=1, max_size=20)


@given(RATES, RATES)
def test_profile_is_the_share_at_least_tau(rates: list[int], taus: list[int]) -> None:
    ours = performance_profile(np.array(rates) * 0.1, np.array(taus) / 10)
    assert ours.tolist() == [np.mean([r >= tau for r in rates]) for tau in taus]
