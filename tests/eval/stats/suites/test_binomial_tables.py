"""Binomials by lookup against scipy's: the tables themselves, and what is drawn from them."""

from __future__ import annotations

import numpy as np
import pytest

from trajudge.stats.suites import BUCKETS, SPLIT, BinomialTables, binomial_tables


def tables(rollouts: int = 20, most_copies: int = 702) -> BinomialTables:
    found = binomial_tables(rollouts, most_copies)
    assert found is not None
    return found


@pytest.mark.parametrize("rollouts", [2, 3, 20, 33])
def test_the_laws_are_scipys(rollouts: int) -> None:
    from scipy import stats

    for place, digit in enumerate(tables(rollouts, 300).digits):
        for row, (first, ends) in enumerate(zip(digit.first, digit.ends, strict=True)):
            k, value = divmod(row, digit.values)
            law = stats.binom(rollouts * value * 16**place, (k + 1) / rollouts)
            expected = law.cdf(first + np.arange(len(ends)))
            np.testing.assert_allclose(ends - row, expected, atol=2e-13)


def test_a_bucket_given_at_once_lies_within_one_outcome() -> None:
    for digit in tables().digits:
        for row, (outcomes, ends) in enumerate(zip(digit.outcomes, digit.ends, strict=True)):
            cumulative = np.r_[0, (ends - row) * BUCKETS]
            bucket = np.flatnonzero(outcomes < SPLIT)
            place = outcomes[bucket] - digit.first[row]
            assert (cumulative[place] <= bucket + 1e-6).all()
            assert (cumulative[place + 1] >= bucket + 1 - 1e-6).all()


@pytest.mark.parametrize(
    ("rollouts", "copies", "k"),
    [(20, 1, 1), (20, 3, 17), (20, 16, 10), (20, 31, 5), (20, 300, 13), (20, 702, 19), (3, 40, 2)],
)
def test_draws_have_the_binomial_law(rollouts: int, copies: int, k: int) -> None:
    from scipy import stats

    n = 200_000
    drawn = tables(rollouts).successes(
        np.full((1, n), copies, dtype=np.uint16), np.array([k]), np.random.default_rng(copies)
    )
    expected = n * stats.binom.pmf(
        np.arange(rollouts * copies + 1), rollouts * copies, k / rollouts
    )
    found = np.bincount(drawn, minlength=len(expected))
    often = expected > 10
    rest = [found[~often].sum()], [expected[~often].sum()]
    found, expected = (np.r_[a[often], b] for a, b in zip((found, expected), rest, strict=True))
    assert stats.chisquare(found, expected * n / expected.sum()).pvalue > 1e-3


def test_cells_of_all_kinds_are_summed_each_with_its_own_copies() -> None:
    rng = np.random.default_rng(3)
    k = np.arange(1, 20)
    copies = np.broadcast_to(rng.integers(0, 90, (19, 1)), (19, 100_000)).astype(np.uint16)
    drawn = tables().successes(copies, k, rng)
    mean = (copies[:, 0] * k).sum()
    variance = (copies[:, 0] * k * (20 - k) / 20).sum()
    assert drawn.mean() == pytest.approx(mean, abs=4 * (variance / 100_000) ** 0.5)
    assert drawn.var() == pytest.approx(variance, rel=0.02)


def test_no_copies_have_no_successes() -> None:
    none = np.zeros((19, 5), dtype=np.uint16)
    assert tables().successes(none, np.arange(1, 20), np.random.default_rng(0)).tolist() == [0] * 5


def test_tables_that_would_be_too_large_are_not_made() -> None:
    assert binomial_tables(65, 10) is None
    assert binomial_tables(20, 2000) is None
    assert tables(1, 100).digits == ()
