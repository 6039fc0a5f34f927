"""Intervals of rates and differences, over runs and over tasks, against other packages."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from trajudge.stats import intervals as binomial
from trajudge.stats.intervals import (
    Ints,
    between_clusters,
    clustered_agreement,
    clustered_differences,
    clustered_limits,
    clustered_rates,
    degrees_of_freedom,
    rates_by_cluster,
    wilson,
)
from trajudge.stats.quantiles import beta_quantile, student_quantile

METHODS = {"wilson": binomial.wilson, "beta": binomial.clopper_pearson}


@pytest.mark.parametrize("df", [0.3, 1, 1.5, 7, 100, 199, 201, 2e4, 99_999, 100_001, 1e13])
@pytest.mark.parametrize("p", [0.02, 0.3, 0.5, 0.51, 0.75, 0.975, 1 - 1e-6, 1 - 5e-10])
def test_students_quantile_is_scipys(df: float, p: float) -> None:
    expected = special.stdtrit(df, p)
    np.testing.assert_allclose(student_quantile(df, p), expected, rtol=2e-12, atol=1e-15)


@pytest.mark.parametrize("a", [0.02, 0.5, 1, 3.7, 40, 1000, 80_000])
@pytest.mark.parametrize("b", [0.02, 1, 2.2, 17, 300, 50_000])
@pytest.mark.parametrize("p", [0.0005, 0.025, 0.5, 0.975, 0.9999])
def test_the_quantile_of_a_beta_distribution_is_scipys(a: float, b: float, p: float) -> None:
    expected = special.betaincinv(a, b, p)
    np.testing.assert_allclose(beta_quantile(a, b, p), expected, rtol=1e-9, atol=1e-12)


def test_a_quantile_is_undefined_without_degrees_of_freedom_or_a_parameter() -> None:
    of_student = student_quantile([0, -1, np.nan, 2], np.array([[0.975], [1]]))
    assert np.isnan(of_student).tolist() == [[True, True, True, False], [True] * 4]
    assert np.isnan(beta_quantile([np.nan, 1, 1], [1, np.nan, 1], 0.5)).tolist() == [1, 1, 0]


def test_many_quantiles_are_those_of_few() -> None:
    many = np.linspace(1, 50, 65)
    few = [student_quantile(part, 0.9) for part in np.split(many, 5)]
    np.testing.assert_allclose(student_quantile(many, 0.9), np.concatenate(few), rtol=1e-12)


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


def test_rates_say_why_they_have_no_interval() -> None:
    def notes(trials: list[float]) -> tuple[str, ...]:
        return clustered_rates([0.0] * len(trials), trials, [len(trials)]).interval.notes

    assert notes([1, 1]) == ()
    assert notes([0, 0]) == (binomial.NO_TRIALS,)
    assert notes([2, 0]) == (binomial.ONE_TASK,)


@pytest.mark.parametrize(("k", "n"), [(-1, 3), (4, 3), (float("nan"), 3)])
def test_impossible_counts_are_refused(k: float, n: float) -> None:
    with pytest.raises(ValueError, match="between 0 and trials"):
        binomial.wilson(k, n)


def test_confidence_outside_zero_and_one_is_refused() -> None:
    with pytest.raises(ValueError, match="confidence"):
        binomial.wilson(1, 2, 95)


NEEDED = "statsmodels, the reference here, is not installed"
RNG = np.random.default_rng(11)
TASK = np.repeat(np.arange(60), RNG.integers(1, 7, 60))
RATE = RNG.beta(2, 1, 60)
HIT = (RNG.random(len(TASK)) < RATE[TASK]).astype(float)


@pytest.mark.slow
def test_the_variance_is_statsmodels_cluster_robust_one() -> None:
    api = pytest.importorskip("statsmodels.api", reason=NEEDED)
    fit = api.OLS(HIT, np.ones(len(HIT))).fit(
        cov_type="cluster", cov_kwds={"groups": TASK, "use_correction": False}
    )
    hits, trials = np.bincount(TASK, HIT), np.bincount(TASK).astype(float)
    mean = HIT.mean()
    variance = between_clusters(hits - mean * trials, np.array([60])) / len(HIT) ** 2
    # statsmodels without its correction lacks the factor C / (C - 1).
    assert variance == pytest.approx(fit.bse[0] ** 2 * 60 / 59)
    naive = mean * (1 - mean) / len(HIT)
    found = rates_by_cluster(HIT, np.ones(()), TASK)
    assert found.design_effect[0] == pytest.approx(variance / naive, rel=0.05)
    # Weights that are all but equal take the linearised variance itself.
    weighted = rates_by_cluster(HIT, 1.0, TASK, weights=1 + 1e-8 * np.arange(len(HIT)))
    assert weighted.design_effect[0] == pytest.approx(variance / naive, rel=0.03)


@pytest.mark.parametrize(("hits", "tasks"), [(3, 3), (0, 5), (7, 10), (1200, 4000)])
def test_one_trajectory_a_task_gives_the_exact_binomial_interval(hits: int, tasks: int) -> None:
    proportion = pytest.importorskip("statsmodels.stats.proportion", reason=NEEDED)
    found = rates_by_cluster(np.arange(tasks) < hits, np.ones(()), np.arange(tasks)).interval
    expected = proportion.proportion_confint(hits, tasks, method="beta")
    assert (found.low[0], found.high[0]) == pytest.approx(expected, abs=1e-9)


def test_three_of_three_tasks_show_at_least_29_percent() -> None:
    low, high = clustered_limits([True] * 3, range(3))
    assert low == pytest.approx(0.2924, abs=5e-5)
    assert high == 1


def test_four_equal_trajectories_of_a_task_are_one() -> None:
    once = np.arange(50) % 3 == 0
    one = wilson(once.sum(), 50)
    four = rates_by_cluster(np.repeat(once, 4), np.ones(()), np.repeat(np.arange(50), 4))
    assert four.design_effect[0] == pytest.approx(4, rel=0.03)
    # Student's quantile of 49 degrees is 2.5 % above the normal one, a variance over 49 1 %.
    assert four.interval.width[0] == pytest.approx(float(one.width) * 1.033, rel=0.005)


def test_a_part_of_a_hit_counts_as_that_part() -> None:
    """The correlation lies between those of the whole hits next to it."""
    trials = np.full(12, 4.0)
    whole = np.r_[np.zeros(6), np.full(6, 4.0)]
    effects = [
        clustered_rates(np.abs(whole - part), trials, [12]).design_effect
        for part in (0.0, 0.5, 1.0)
    ]
    assert effects[0] > effects[1] > effects[2]


def runs_of(kind: str, shape: tuple[int, int], rng: np.random.Generator) -> Ints:
    return rng.choice([1, 1, 1, 12] if kind == "1 or 12" else [4], shape)


@pytest.mark.parametrize("runs", ["4", "1 or 12"])
def test_rates_cover_where_tasks_are_few_or_uneven(runs: str) -> None:
    """Beta-binomial tasks: mean at least 94 %, no cell below 91 %, but for Monte Carlo error."""
    draws, shares = 1_000, []
    for cell, (tasks, truth, rho) in enumerate(
        product((4, 8, 16, 40), (0.05, 0.3, 0.9), (0.0, 0.3, 0.7))
    ):
        rng = np.random.default_rng([cell, len(runs)])
        trials = runs_of(runs, (draws, tasks), rng)
        each = np.full(trials.shape, truth)
        if rho:
            each = rng.beta(truth * (1 / rho - 1), (1 - truth) * (1 / rho - 1), trials.shape)
        interval = clustered_rates(rng.binomial(trials, each), trials, [tasks]).interval
        shares.append(interval.covers(truth).mean())
    assert np.mean(shares) >= 0.94
    assert min(shares) >= 0.91 - 3 * (0.91 * 0.09 / draws) ** 0.5


# Whether these cover is measured by ``python -m benchmarks.coverage``; an edit of any part of the
# formulas moves one of them. Hits and trials of tasks, sizes of strata, and the limits.
@pytest.mark.parametrize(
    ("hits", "trials", "sizes", "low", "high"),
    [
        ([4, 3, 4, 0, 2, 4, 1, 3], [4] * 8, [8], 0.36529822, 0.86362091),
        ([4, 0, 4, 4, 0, 4, 4, 4, 0, 4], [4] * 10, [10], 0.34429061, 0.91204206),
        ([1, 0, 1, 9, 1, 15, 0, 2], [1, 1, 1, 12, 1, 20, 1, 4], [8], 0.39699608, 0.89869206),
        ([3, 3, 3, 3], [3] * 4, [4], 0.56674384, 1),
        ([1] * 20 + [0] * 4 + [30], [1] * 24 + [40], [25], 0.19217312, 0.98169098),
        (
            [4, 2, 0, 3, 1, 0, 2, 2, 0, 1],
            [4, 4, 4, 4, 8, 1, 8, 1, 8, 1],
            [4, 2, 2, 2],
            *(0.12229631, 0.67316908),
        ),
    ],
)
def test_limits_of_a_rate(
    hits: list[float], trials: list[float], sizes: list[int], low: float, high: float
) -> None:
    interval = clustered_rates(hits, trials, sizes).interval
    assert (interval.low[()], interval.high[()]) == pytest.approx((low, high))
    assert interval.estimate[()] == pytest.approx(sum(hits) / sum(trials))


@pytest.mark.parametrize(
    ("hits", "trials", "sizes", "expected"),
    [
        (
            [[4, 3, 4, 2, 3, 4, 1, 3], [3, 1, 4, 0, 2, 2, 1, 1]],
            [[4] * 8] * 2,
            [8],
            (0.3125, 0.1150711, 0.46945396, 0.0040474),
        ),
        (
            [[5, 5, 4, 3, 0, 5, 2, 5, 1, 5], [5, 5, 4, 3, 0, 5, 1, 5, 1, 5]],
            [[5] * 10] * 2,
            [10],
            (0.02, -0.1022006, 0.1565382, 0.629036),
        ),
        ([[5, 1, 3], [4, 1, 1]], [[5] * 3] * 2, [3], (0.2, -0.3251884, 0.5652665, 0.4747365)),
        (
            [[3, 1, 0, 6, 2], [1, 0, 1, 2, 4]],
            [[4, 1, 2, 8, 2], [2, 3, 2, 8, 6]],
            [5],
            (0.32493, -0.3369106, 0.7122793, 0.2670859),
        ),
        (
            [[4, 2, 0, 3, 1, 0, 2, 2], [3, 2, 1, 0, 1, 1, 0, 2]],
            [[4] * 8] * 2,
            [4, 2, 2],
            (0.125, -0.1968233, 0.4126558, 0.3983226),
        ),
    ],
)
def test_limits_of_a_difference(
    hits: list[list[float]],
    trials: list[list[float]],
    sizes: list[int],
    expected: tuple[float, ...],
) -> None:
    found = clustered_differences(hits, trials, sizes)
    made = (*(getattr(found.interval, name) for name in ("estimate", "low", "high")), found.p_value)
    assert [float(each) for each in made] == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize(
    ("sizes", "kappa", "mcc"),
    [
        ([12], (0.2532303, 0.7436324), (0.2553874, 0.7423010)),
        ([7, 5], (0.2359736, 0.7603211), (0.2380312, 0.7587943)),
    ],
)
def test_limits_of_agreement(
    sizes: list[int], kappa: tuple[float, float], mcc: tuple[float, float]
) -> None:
    cells = "2101 0013 3001 1201 0112 2011 0004 3100 1012 0103 4000 1111"
    counts = np.array([[*map(int, task)] for task in cells.split()])
    for interval, limits in zip(clustered_agreement(counts, sizes), (kappa, mcc), strict=True):
        assert (interval.low, interval.high) == pytest.approx(limits, rel=1e-5)
    few, _ = clustered_agreement(counts[:2], [2])
    assert np.isnan(few.low)


def test_weights_of_runs() -> None:
    hits, task = [1, 0, 1, 1, 0, 1, 1, 1, 0, 1, 1, 0], [0, 0, 0, 1, 1, 2, 2, 2, 3, 3, 4, 4]
    weights = [1, 2, 1, 1, 1, 3, 1, 1, 2, 1, 1, 1]
    found = rates_by_cluster(hits, 1.0, task, weights=weights).interval
    assert found.estimate == pytest.approx(10 / 16)
    assert (found.low[0], found.high[0]) == pytest.approx((0.21498369, 0.91025836))
    same = rates_by_cluster(HIT, 1.0, TASK, weights=np.full(len(HIT), 7.0)).interval
    assert same.low == rates_by_cluster(HIT, 1.0, TASK).interval.low
    with pytest.raises(ValueError, match="weights must be positive"):
        rates_by_cluster(HIT, 1.0, TASK, weights=np.zeros(len(HIT)))


def test_one_task_tells_nothing_of_the_next() -> None:
    found = clustered_rates([[3.0], [0.0]], [[4.0], [0.0]], [1])
    assert np.isnan(found.interval.low).all()
    assert any("one task only" in note for note in found.interval.notes)


def test_a_few_large_tasks_count_as_few() -> None:
    even, ragged = np.ones(40), np.r_[np.ones(40), np.full(8, 12.0)]
    assert degrees_of_freedom(ragged, np.array([48])) < 16
    assert degrees_of_freedom(even, np.array([40])) == 39


def test_strata_of_one_task_are_taken_together() -> None:
    together = clustered_rates([1.0, 2, 3, 2], [4.0, 4, 4, 4], [1, 1, 1, 1])
    apart = clustered_rates([1.0, 2, 3, 2], [4.0, 4, 4, 4], [4])
    assert together.interval.low == apart.interval.low


def test_strata_in_which_one_task_has_trials_share_one_mean() -> None:
    """Nothing in such a stratum is measured around its own mean, so that none is paid for it."""
    trials = np.array([4.0, 0, 4, 0, 4, 0, 4, 0])
    assert degrees_of_freedom(trials, np.array([2, 2, 2, 2])) == 3
    assert degrees_of_freedom(np.full(8, 4.0), np.array([2, 2, 2, 2])) == 4
    assert degrees_of_freedom(trials, np.array([1, 1, 2, 1, 1, 2])) == 3


def test_limits_as_numbers_know_who_succeeds_together() -> None:
    hits = [True] * 12 + [False] * 12
    alone = clustered_limits(hits, range(24))
    together = clustered_limits(hits, [place // 6 for place in range(24)])
    assert alone[0] == pytest.approx(rates_by_cluster(hits, 1.0, np.arange(24)).interval.low[0])
    assert together[0] is not None
    assert alone[0] is not None
    assert together[0] < alone[0] - 0.1
    assert clustered_limits([True, False], ["a", "a"]) == (None, None)
    assert clustered_limits([True, False], ["a", "a"], ["x", "y"]) != (None, None)
    assert clustered_limits([], []) == (None, None)


def test_a_difference_of_many_tasks_is_as_it_was() -> None:
    """The cap of the correlation binds where the two rates are all but one."""
    rng = np.random.default_rng(1)
    truth = rng.random((200, 1))
    hits = (rng.random((2, 200, 5)) < np.stack([truth, truth * 0.8])).sum(axis=-1)
    found = clustered_differences(hits, np.full(hits.shape, 5), [200])
    rates = hits.sum(axis=-1) / 1_000
    assert float(found.interval.estimate) == pytest.approx(rates[0] - rates[1])
    spread = (hits[0] - hits[1]).std(ddof=1) / 5 / 200**0.5
    width = float(found.interval.high - found.interval.low)
    assert width == pytest.approx(2 * 1.972 * spread, rel=0.05)
    assert float(found.p_value) < 0.001
