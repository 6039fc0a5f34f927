"""Tests of a rate against a bound, with tasks as clusters."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import ArrayLike

from trajudge.eval.labelling.designs import KnownVerdicts, draw, inclusion_probabilities
from trajudge.eval.labelling.frame import vote_share
from trajudge.eval.labelling.settings import Strategy
from trajudge.eval.select.rates import (
    RateSums,
    binomial_p,
    cluster_sums,
    design_effects,
    lower_limits,
    p_values,
    rate_sums,
    upper_limits,
)


def sums(hits: ArrayLike, trials: ArrayLike, task: ArrayLike, benchmark: ArrayLike) -> RateSums:
    return rate_sums(cluster_sums(np.c_[hits], np.c_[trials], task, benchmark))


def brute_force(
    hits: np.ndarray,
    trials: np.ndarray,
    task: np.ndarray,
    benchmark: np.ndarray,
    *,
    bound: float,
    picked: float,
) -> float:
    """The specification, in loops; ``picked`` hits of one trial a task."""
    from scipy import stats

    total, variance, strata, spread = 0.0, 0.0, 0, False
    sizes: list[int] = []
    all_excess: list[float] = []
    failing = 0
    for name in sorted(set(benchmark)):
        tasks = sorted(set(task[benchmark == name]))
        excess = []
        for each in tasks:
            here = (benchmark == name) & (task == each)
            sizes.append(int(trials[here].sum()))
            excess.append(hits[here].sum() - bound * sizes[-1])
            failing += int(sizes[-1] > 1 and not hits[here].any())
        active = sum(size > 0 for size in sizes[-len(tasks) :])
        strata, spread = strata + (active > 0), spread or active > 1
        total += sum(excess)
        m = len(tasks)
        middle = sum(excess) / m if m > 1 else 0.0
        variance += (m / (m - 1) if m > 1 else 1) * sum((e - middle) ** 2 for e in excess)
        all_excess += excess
    n, k = int(trials.sum()), int(hits.sum())
    exact = float(stats.binom.sf(k - 1, n, bound))
    if not spread:
        return 1.0
    if max(sizes) <= 1:
        return exact
    tasks_tried, effective = sum(size > 0 for size in sizes), n**2 / sum(s**2 for s in sizes)
    of_each = float(stats.binom.sf(picked - 1, tasks_tried, bound))
    if tasks_tried < 20 and len({size for size in sizes if size}) == 1:
        return of_each
    df = max(effective - strata, 1)
    middle = sum(all_excess) / len(all_excess)
    third = sum((e - middle) ** 3 for e in all_excess)
    size = sum(each**2 for each in sizes) / n
    failed, share = -bound * (size * (size - 1)) ** 0.5, 1 / 3 / (1 + failing)
    total += share * failed
    variance += share * failed**2
    third += share * failed**3
    t, g = total / variance**0.5, max(-0.5, min(0.5, third / variance**1.5))
    t += g * t**2 / 3 + g**2 * t**3 / 27 + g / 6
    uneven = max(1, tasks_tried / (1.25 * effective)) ** 3
    clustered = min(1, uneven * float(stats.t.sf(t, df)))
    unseen = min(bound * n / k, 1) ** effective if k else 1.0
    all_runs = max(exact, clustered, unseen)
    return min(all_runs, max(of_each, clustered / 1.25)) if tasks_tried < 20 else all_runs


@pytest.mark.parametrize("seed", range(30))
def test_p_values_are_those_of_the_specification(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 120))
    task, benchmark = rng.integers(0, 12, n), rng.choice(["a", "b", "c"], n)
    trials = rng.random(n) < 0.7
    hits = trials & (rng.random(n) < 0.85)
    for bound in (0.3, 0.7, 0.9):
        rates = sums(hits, trials, task, benchmark)
        expected = brute_force(
            hits, trials, task, benchmark, bound=bound, picked=float(rates.picked[0])
        )
        assert p_values(rates, bound)[0] == pytest.approx(expected)


def test_the_run_of_each_task_is_drawn_among_its_trials_without_a_look_at_hits() -> None:
    rng = np.random.default_rng(0)
    task = np.repeat(np.arange(12), 5)
    trials = rng.random(60) < 0.6
    hits = trials & (rng.random(60) < 0.5)
    found = [
        cluster_sums(np.c_[hits], np.c_[trials], task, task * 0, seed=seed) for seed in range(2_000)
    ]
    share = [hits[(task == one) & trials].mean() for one in range(12) if trials[task == one].any()]
    picked = np.array([each.picked[0] for each in found if each.picked is not None])
    assert picked.mean() == pytest.approx(sum(share), abs=0.1)
    # The other labels on the same trials take the same runs.
    other = cluster_sums(np.c_[trials & ~hits], np.c_[trials], task, task * 0, seed=0).picked
    assert other is not None
    assert other[0] + picked[0] == len(share)


def test_few_even_tasks_are_tested_on_one_run_of_each() -> None:
    """19 tasks of two runs without a miss: 0.8 ^ 19; from 20 on the cluster-robust test."""
    few, more = (
        sums([1] * 2 * m, [1] * 2 * m, np.arange(2 * m) // 2, ["a"] * 2 * m) for m in (19, 20)
    )
    assert p_values(few, 0.8)[0] == pytest.approx(0.8**19)
    assert p_values(more, 0.8)[0] == pytest.approx(0.8**20)  # no failing task was drawn


@pytest.mark.parametrize("sizes", [[3] * 24, [1, 2, 3, 4, 5, 6] * 4])
def test_no_test_rejects_more_often_than_failing_tasks_stay_unseen(sizes: list[int]) -> None:
    """All runs of 24 tasks are right: at .9 so they are in a world where .1 of the tasks fail."""
    task = np.repeat(np.arange(24), sizes)
    found = p_values(sums(np.ones(len(task)), np.ones(len(task)), task, ["a"] * len(task)), 0.9)[0]
    assert found >= 0.9**24 > 0.05


@pytest.mark.parametrize("big", [2, 3])
def test_small_tasks_that_succeed_more_often_pass_no_judge_that_is_at_the_target(big: int) -> None:
    """Half of 16 tasks have one accepted run, which is right, the others ``big`` wrong ones: the
    rate of accepted runs is 1 / (1 + big), that of tasks 1 / 2."""
    rng = np.random.default_rng(big)
    passed = 0
    for seed in range(400):
        small = rng.random(16) < 0.5
        sizes = np.where(small, 1, big)
        hits = np.repeat(small, sizes)
        task = np.repeat(np.arange(16), sizes)
        trials = np.ones(len(hits), dtype=bool)
        drawn = cluster_sums(np.c_[hits], np.c_[trials], task, task * 0, seed=seed)
        passed += bool(p_values(rate_sums(drawn), 1 / (1 + big))[0] <= 0.05)
    assert passed / 400 <= 0.05 + 3 * (0.05 * 0.95 / 400) ** 0.5


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["stratified", "disagreement", "low-confidence", "ppi"])
def test_labels_of_a_queue_pass_no_judge_at_the_target_more_often_than_they_may(
    strategy: Strategy,
) -> None:
    """150 tasks of 4 runs, 100 labels drawn by the votes of four judges; the first judge lies at
    the target. Without weights the labels of ``ppi`` and ``cascade`` pass it in up to 9 %."""
    rng, passed, worlds = np.random.default_rng(1), 0, 600
    task, tpr, fpr, rate = np.repeat(np.arange(150), 4), 0.8, 0.11, 0.27
    target = rate * tpr / (rate * tpr + (1 - rate) * fpr)
    for _ in range(worlds):
        success = rng.random(600) < rng.beta(0.27 * 7 / 3, 0.73 * 7 / 3, 150)[task]
        said = rng.random((600, 4)) < np.where(success, tpr, fpr)[:, None]
        votes = said.astype(float)
        strata = (said.mean(axis=1) >= 0.5).astype(np.int64)
        known = KnownVerdicts(vote_share(votes), votes, said, np.full(600, np.nan), strata)
        chances = inclusion_probabilities(strategy, 100, known)
        drawn = draw(chances, strata, rng)
        accepted = said[drawn, :1]
        found = cluster_sums(
            accepted & success[drawn, None],
            accepted,
            task[drawn],
            task[drawn] * 0,
            weights=1 / chances[drawn],
        )
        passed += int(p_values(rate_sums(found), target)[0] <= 0.05)
    assert passed / worlds <= 0.055 + 3 * (0.055 * 0.945 / worlds) ** 0.5


@given(st.integers(0, 40), st.integers(0, 40), st.floats(0.01, 0.99))
def test_the_exact_part_is_the_binomial_tail(hits: int, misses: int, bound: float) -> None:
    from scipy import stats

    n = hits + misses
    expected = stats.binom.sf(hits - 1, n, bound)
    found = binomial_p(np.array([float(hits)]), np.array([float(n)]), bound)
    assert found[0] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_a_limit_is_where_the_test_begins_to_reject(seed: int) -> None:
    from scipy import stats

    rng = np.random.default_rng(seed)
    trials = rng.random(200) < 0.6
    hits = trials & (rng.random(200) < 0.8)
    rates = sums(hits, trials, rng.integers(0, 60, 200), ["a"] * 200)
    low, high = lower_limits(rates, 0.05), upper_limits(rates, 0.05)
    assert p_values(rates, low - 1e-6)[0] <= 0.05 < p_values(rates, low + 1e-6)[0]
    assert low[0] < rates.estimate[0] < high[0]
    # The exact limit alone is the textbook's; clusters can only widen it.
    n, k = int(trials.sum()), int(hits.sum())
    assert low[0] <= stats.beta.ppf(0.05, k, n - k + 1) + 1e-9


def test_tasks_whose_trajectories_agree_count_once() -> None:
    single = sums([1] * 30 + [0] * 6, [1] * 36, range(36), ["a"] * 36)
    copied = sums([1] * 120 + [0] * 24, [1] * 144, np.repeat(range(36), 4), ["a"] * 144)
    assert design_effects(single)[0] == pytest.approx(1, abs=0.05)
    assert design_effects(copied)[0] == pytest.approx(4, abs=0.2)
    assert lower_limits(copied, 0.05)[0] < lower_limits(single, 0.05)[0] + 0.03


def test_without_a_trial_nothing_is_claimed() -> None:
    rates = sums([0, 0, 0], [0, 0, 0], [1, 2, 3], ["a"] * 3)
    assert p_values(rates, 0.5)[0] == 1
    assert np.isnan(lower_limits(rates, 0.05)[0])
    assert np.isnan(rates.estimate[0])


def test_one_task_shows_nothing_however_many_trajectories_it_has() -> None:
    rates = sums([1] * 100, [1] * 100, [7] * 100, ["a"] * 100)
    assert p_values(rates, 0.5)[0] == 1
    assert lower_limits(rates, 0.05)[0] == 0


def test_the_rate_of_misses_mirrors_that_of_hits() -> None:
    rng = np.random.default_rng(3)
    trials = np.ones(80, dtype=bool)
    hits = rng.random(80) < 0.3
    task = rng.integers(0, 20, 80)
    mirrored = sums(~hits, trials, task, ["a"] * 80)
    misses = sums(hits, trials, task, ["a"] * 80).misses
    assert p_values(misses, 0.6)[0] == pytest.approx(p_values(mirrored, 0.6)[0])
    assert upper_limits(mirrored, 0.1)[0] == pytest.approx(
        1 - lower_limits(mirrored.misses, 0.1)[0]
    )
