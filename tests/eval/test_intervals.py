"""Wilson's interval, against scipy's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from eval.intervals import wilson

SAMPLES = st.integers(1, 2000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@given(SAMPLES, st.sampled_from([0.9, 0.95, 0.99]))
def test_it_is_scipys(sample: tuple[int, int], confidence: float) -> None:
    successes, trials = sample
    theirs = binomtest(successes, trials).proportion_ci(confidence, method="wilson")
    ours = wilson(successes, trials, confidence)
    assert ours is not None
    assert tuple(ours) == pytest.approx((theirs.low, theirs.high), abs=1e-12)
    assert 0 <= ours.low <= successes / trials <= ours.high <= 1


def test_it_does_not_collapse_where_everything_succeeded() -> None:
    found = wilson(3, 3)
    assert found is not None
    assert (round(found.low, 4), found.high) == (0.4385, 1.0)


def test_no_trial_gives_no_interval_and_nonsense_is_refused() -> None:
    assert wilson(0, 0) is None
    with pytest.raises(ValueError, match="4 successes in 3 trials"):
        wilson(4, 3)
