"""Intervals of rates and differences, over runs and over tasks, against other packages."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.worlds.proportions import (
    average_coverage,
    bimodal_prior,
    wald,
    worst_coverage,
)
from trajudge.stats import intervals as binomial
from trajudge.stats.intervals import (
    Ints,
    between_clusters,
    clopper_pearson,
    clustered_agreement,
    clustered_differences,
    clustered_limits,
    clustered_rates,
    degrees_of_freedom,
    rates_by_cluster,
    wilson,
)

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
    if kind == "1 to 20":
        return rng.integers(1, 21, shape)
    if kind == "1 or 12":
        return rng.choice([1, 1, 1, 12], shape)
    sizes = np.full(shape[1], 4) if kind == "4" else np.geomspace(2, 60, shape[1]).astype(np.int64)
    return np.tile(sizes, (shape[0], 1))


@pytest.mark.parametrize("runs", ["4", "1 to 20", "1 or 12", "sites of 2 to 60"])
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


@pytest.mark.parametrize("share", [0.8, 1.0])
def test_rates_cover_where_tasks_succeed_or_fail_throughout(share: float) -> None:
    """That share of the tasks has one outcome in all runs, which no beta-binomial rate has."""
    draws, shares = 1_000, []
    for cell, (tasks, runs, truth) in enumerate(
        product((8, 16, 40), ("4", "1 to 20", "1 or 12"), (0.1, 0.3, 0.5, 0.9))
    ):
        rng = np.random.default_rng([cell, round(10 * share)])
        trials = runs_of(runs, (draws, tasks), rng)
        throughout = rng.random(trials.shape) < share
        each = np.where(throughout, rng.random(trials.shape) < truth, truth)
        interval = clustered_rates(rng.binomial(trials, each), trials, [tasks]).interval
        shares.append(interval.covers(truth).mean())
    assert np.mean(shares) >= 0.94
    assert min(shares) >= 0.91


def test_of_few_tasks_the_interval_is_narrower_than_korn_and_graubards() -> None:
    """16 tasks of 4 runs, 90 % of them successes, correlation 0.3: theirs, from the estimated
    design effect and both quantiles of Student (1998), covers as often and is wider."""
    rng, draws = np.random.default_rng(5), 2_000
    hits = rng.binomial(4, rng.beta(0.9 * 7 / 3, 0.1 * 7 / 3, (draws, 16)))
    trials = np.full(hits.shape, 4.0)
    rate = hits.mean(axis=1) / 4
    variance = between_clusters(hits - 4 * rate[:, None], np.array([16])) / 64**2
    with np.errstate(divide="ignore", invalid="ignore"):
        effective = np.fmin(rate * (1 - rate) / variance, 64) * (1.998 / 2.131) ** 2
    theirs = clopper_pearson(rate * np.fmin(effective, 64), np.fmin(effective, 64))
    ours = clustered_rates(hits, trials, [16]).interval
    assert ours.covers(0.9).mean() >= 0.94
    assert ours.width.mean() < 0.96 * theirs.width.mean()


def test_weighted_rates_cover_and_equal_weights_are_none() -> None:
    """30 tasks of 4 runs; what succeeds is drawn half as often, weighted by one over that."""
    rng, covered = np.random.default_rng(6), []
    for _ in range(400):
        success = rng.random((30, 4)) < rng.beta(1, 1, (30, 1))
        chance = np.where(success, 0.45, 0.9)
        drawn = rng.random((30, 4)) < chance
        task = np.nonzero(drawn)[0]
        found = rates_by_cluster(success[drawn], 1.0, task, weights=1 / chance[drawn]).interval
        covered.append(bool(found.covers(0.5)[0]))
    assert np.mean(covered) >= 0.95 - 3 * 0.011
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


def test_rates_cover_in_many_small_strata_and_are_not_all_of_the_line() -> None:
    """Seven applications with a task run many times and one run once, as in the bundled sample,
    whose rates differ; a judge accepts a seventh of the runs."""
    rng, draws = np.random.default_rng(3), 4000
    runs = np.array([16, 15, 1, 1, 16, 1, *[15, 1] * 5])
    sizes = np.array([4, 2, 2, 2, 2, 2, 2])
    rate = np.repeat([0.9, 0.3, 0.6, 0.5, 0.8, 0.4, 0.7], sizes)
    accepted = rng.binomial(np.broadcast_to(runs, (draws, 16)), 1 / 7)
    right = rng.binomial(accepted, rng.beta(2 * rate, 2 * (1 - rate), (draws, 16)))
    interval = clustered_rates(right, accepted, sizes).interval
    truth = (runs * rate).sum() / runs.sum()
    assert ((interval.low <= truth) & (truth <= interval.high)).mean() >= 0.95
    assert interval.width.mean() < 0.75


def test_kappa_is_bounded_where_the_tasks_bound_it() -> None:
    counts = RNG.multinomial(4, [0.3, 0.1, 0.1, 0.5], 80)
    kappa, mcc = clustered_agreement(counts, [80])
    for interval in (kappa, mcc):
        assert 0 < interval.low < interval.estimate < interval.high < 1
    few, _ = clustered_agreement(counts[:2], [2])
    assert np.isnan(few.low)


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


@pytest.mark.parametrize("tasks", [2, 3, 4, 8])
def test_few_tasks_show_no_difference_where_there_is_none(tasks: int) -> None:
    """Two rates with one truth, of tasks that succeed with probabilities that are uniform, 5 runs
    each. Of two tasks 21 % had a p-value below 0.001, of three 6 %, of four 2 %: their correlation
    was then close to 1, where the limits stay in place however sure they have to be."""
    rng = np.random.default_rng(0)
    truth = rng.random((1_000, tasks, 1))
    hits = (rng.random((2, 1_000, tasks, 5)) < truth).sum(axis=-1)
    found = clustered_differences(hits, np.full(hits.shape, 5), [tasks])
    known = ~np.isnan(found.interval.low)
    assert known.mean() > 0.5
    assert (found.p_value[known] < 0.001).mean() <= 0.004
    excludes = (found.interval.low[known] > 0) | (found.interval.high[known] < 0)
    assert excludes.mean() <= 0.06


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


def test_two_judges_that_are_all_but_one_keep_a_narrow_interval_of_thirty_tasks() -> None:
    """They differ in 1 % of the successes and 3 % of the failures. The mean width is 0.064 without
    a cap of the correlation, and was 0.072 with (f - 1) / f."""
    rng = np.random.default_rng(7)
    first = rng.random((1_000, 30, 5)) < rng.beta(3, 1, (1_000, 30, 1))
    changed = rng.random(first.shape) < np.where(first, 0.01, 0.03)
    hits = np.stack([first, first ^ changed]).sum(axis=-1)
    limits = clustered_differences(hits, np.full(hits.shape, 5), [30]).interval
    assert (limits.high - limits.low).mean() < 0.067
    assert ((limits.low <= 0) & (limits.high >= 0)).mean() > 0.95


BUDGETS = (1, 3, 5, 10, 20)


def test_wald_covers_a_quarter_at_three_rollouts_and_wilson_ninety_five_percent() -> None:
    prior = bimodal_prior(3)
    assert average_coverage(wald, 3, prior) == pytest.approx(0.25, abs=0.01)
    for budget in BUDGETS:
        assert average_coverage(wilson, budget, prior) == pytest.approx(0.95, abs=0.01)


def test_average_is_not_worst_case() -> None:
    assert [round(worst_coverage(wilson, r), 3) for r in (1, 3, 20)] == [0.793, 0.827, 0.837]
    assert all(worst_coverage(clopper_pearson, r) >= 0.95 for r in (1, 3, 20))
