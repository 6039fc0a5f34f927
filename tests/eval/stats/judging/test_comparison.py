"""McNemar and Holm against their definitions."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trajudge.stats import comparison
from trajudge.stats.comparison import TaskRuns, holm, mcnemar_by_task
from trajudge.stats.intervals import Bools


@pytest.mark.slow
@given(st.lists(st.sampled_from([0.0, 0.001, 0.01, 0.02, 0.04, 0.3, 1.0]), max_size=8))
def test_holm_rejects_what_stepping_down_rejects(p_values: list[float]) -> None:
    """At every level: in ascending order, until the first p above level / (tests left)."""
    for level in (0.0101, 0.0501, 0.101):
        rejected = set()
        for done, i in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
            if p_values[i] > level / (len(p_values) - done):
                break
            rejected.add(i)
        assert {i for i, p in enumerate(holm(p_values)) if p <= level} == rejected


def test_holm_leaves_out_what_was_not_tested() -> None:
    np.testing.assert_allclose(holm([0.01, np.nan, 0.04]), [0.02, np.nan, 0.04])
    assert holm([]).shape == (0,)


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60))
def test_mcnemar_of_tasks_with_one_run_is_the_exact_binomial_test(
    pairs: list[tuple[bool, bool]],
) -> None:
    first, second = np.array(pairs).T
    found = mcnemar_by_task(first, second, TaskRuns.of(np.arange(len(pairs))))
    assert found == pytest.approx(binomial(first, second))


def binomial(first: Bools, second: Bools) -> float:
    """McNemar's exact test, as if all runs were independent."""
    from scipy.stats import binomtest

    apart = first != second
    hits = int((first & apart).sum())
    return float(binomtest(hits, int(apart.sum())).pvalue) if apart.any() else 1.0


def test_mcnemar_by_task_counts_every_way_to_swap_the_judges() -> None:
    """Tasks of which the first is right about three, one, none more than the second, and two
    less."""
    first, second = [1, 1, 1, 1, 1, 0, 0], [0, 0, 0, 0, 1, 1, 1]
    task = ["a", "a", "a", "b", "c", "d", "d"]
    gaps = np.array([3, 1, -2])
    sums = [abs(gaps @ signs) for signs in product((1, -1), repeat=3)]
    share = np.mean([each >= abs(gaps.sum()) for each in sums])
    assert mcnemar_by_task(first, second, TaskRuns.of(task)) == pytest.approx(share)


@pytest.mark.parametrize("shift", [0, 10, 40, 4_000])
def test_mcnemar_by_task_is_the_same_by_its_transform(
    shift: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where sums are many, p comes of their Fourier transform."""
    rng = np.random.default_rng(3)
    tasks = TaskRuns.of(np.repeat(np.arange(400), 9))
    first, second = rng.random((2, 3_600)) < 0.7
    second[:shift] = False
    counted = mcnemar_by_task(first, second, tasks)
    monkeypatch.setattr(comparison, "_COUNTED", 0)
    assert mcnemar_by_task(first, second, tasks) == pytest.approx(counted, rel=1e-9, abs=1e-12)


def test_equal_judges_are_not_told_apart_by_runs_of_the_same_tasks() -> None:
    """1,000 pairs of equal judges, each with tasks of its own that it fails: at most 7 % are told
    apart; 20 % and more would be, if runs of a task were independent."""
    rng = np.random.default_rng(2)
    tasks = TaskRuns.of(np.repeat(np.arange(25), 5))
    by_task = alone = 0
    for _ in range(1000):
        skill = rng.beta(0.8, 0.2, (2, 25, 1))
        first, second = (rng.random((2, 25, 5)) < skill).reshape(2, -1)
        by_task += mcnemar_by_task(first, second, tasks) <= 0.05
        alone += binomial(first, second) <= 0.05
    assert by_task <= 70
    assert alone >= 200
