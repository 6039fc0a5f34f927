"""Binomial intervals against statsmodels, their definitions, and their edges."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trajudge.stats import intervals as binomial

METHODS = {"wilson": binomial.wilson, "beta": binomial.clopper_pearson}


@pytest.mark.parametrize("name", METHODS)
def test_agrees_with_statsmodels(name: str) -> None:
    proportion = pytest.importorskip(
        "statsmodels.stats.proportion", reason="statsmodels, the reference here, is not installed"
    )
    for trials in (1, 3, 20, 351):
        inner = np.arange(1, trials)  # ends differ by convention and are tested below
        ours = METHODS[name](inner, trials, 0.9)
        low, high = proportion.proportion_confint(inner, trials, 0.1, name)
        np.testing.assert_allclose(np.clip(ours.low, 0, 1), np.asarray(low), atol=1e-10)
        np.testing.assert_allclose(np.clip(ours.high, 0, 1), np.asarray(high), atol=1e-10)


def test_a_published_precision() -> None:
    """GPT-4o on AgentRewardBench: 245 of 351 accepted are right, 69.8 % [64.8, 74.4]."""
    interval = binomial.wilson(245, 351)
    percent = [round(100 * float(x), 1) for x in (interval.estimate, interval.low, interval.high)]
    assert percent == [69.8, 64.8, 74.4]


@given(st.integers(1, 500), st.floats(0.5, 0.999), st.data())
def test_every_interval_is_ordered_and_symmetric(
    trials: int, confidence: float, data: st.DataObject
) -> None:
    k = data.draw(st.integers(0, trials))
    for method in METHODS.values():
        interval, mirror = method(k, trials, confidence), method(trials - k, trials, confidence)
        assert interval.low <= interval.estimate + 1e-12
        assert interval.estimate <= interval.high + 1e-12
        assert interval.low == pytest.approx(1 - mirror.high, abs=1e-8)
        assert 0 <= interval.low <= interval.high <= 1


@given(st.integers(1, 100))
def test_clopper_pearson_ends_are_where_the_tail_test_just_rejects(trials: int) -> None:
    interval = binomial.clopper_pearson(np.arange(1, trials), trials)
    from scipy.stats import binom

    k = np.arange(1, trials)
    np.testing.assert_allclose(binom.sf(k - 1, trials, interval.low), 0.025, rtol=1e-6)
    np.testing.assert_allclose(binom.cdf(k, trials, interval.high), 0.025, rtol=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_all_failed_still_says_something_and_starts_at_zero(method: str) -> None:
    interval = METHODS[method](0, 3, 0.95)
    assert interval.low == 0 < interval.high < 1


def test_no_trials_is_undefined_and_explained() -> None:
    interval = binomial.wilson([0, 1], [0, 2])
    assert np.isnan([interval.estimate[0], interval.low[0], interval.high[0]]).all()
    assert not np.isnan(interval.low[1])
    assert interval.notes == (binomial.NO_TRIALS,)
    assert binomial.wilson([], []).estimate.shape == (0,)


@pytest.mark.parametrize(("k", "n"), [(-1, 3), (4, 3), (float("nan"), 3)])
def test_impossible_counts_are_refused(k: float, n: float) -> None:
    with pytest.raises(ValueError, match="between 0 and trials"):
        binomial.wilson(k, n)


def test_confidence_outside_zero_and_one_is_refused() -> None:
    with pytest.raises(ValueError, match="confidence"):
        binomial.wilson(1, 2, 95)
