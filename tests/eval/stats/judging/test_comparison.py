"""Paired comparison of judges: definitions for McNemar and Holm, simulation for the rest."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trajudge.eval.stats.intervals.cluster_bootstrap import ONE_CLUSTER, sum_clusters
from trajudge.eval.stats.judging.comparison import (
    all_pairs,
    distinguishable,
    holm,
    mcnemar,
    paired_differences,
)
from trajudge.eval.stats.judging.confusion import confusion_columns, confusion_statistic

PRECISION = confusion_statistic("precision")


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


@given(st.lists(st.tuples(st.booleans(), st.booleans()), max_size=60))
def test_mcnemar_is_the_exact_binomial_test(pairs: list[tuple[bool, bool]]) -> None:
    from scipy.stats import binomtest

    test = mcnemar([a for a, _ in pairs], [b for _, b in pairs])
    n = test.only_first + test.only_second
    assert n == sum(a != b for a, b in pairs)
    if n:
        assert test.p_value == pytest.approx(binomtest(test.only_first, n).pvalue)
    else:
        assert test.p_value == 1
    assert test.mid_p <= test.p_value


def test_mid_p_of_a_split_of_one_to_four() -> None:
    """2 (P[X=0] + P[X=1] / 2) with X ~ Bin(5, 1/2)."""
    right = [True] + [False] * 4
    assert mcnemar(right, [not x for x in right]).mid_p == pytest.approx(2 * (1 + 2.5) / 32)


def test_a_pair_is_compared_on_the_same_resamples() -> None:
    """Two judges that agree on nearly everything differ more certainly than each is known."""
    rng = np.random.default_rng(0)
    truth = rng.random(600) < 0.5
    first = rng.random(600) < np.where(truth, 0.8, 0.3)
    second = first & (truth | (rng.random(600) < 0.7))
    clusters = sum_clusters(confusion_columns(np.c_[first, second], truth), np.arange(600) // 3)
    result = paired_differences(clusters, PRECISION, [[1, 0]], rng, n_resamples=2000)
    assert result.interval.low[0] > 0
    assert result.interval.width[0] < 0.06
    assert result.p_value[0] == pytest.approx(2 / 2001)


def test_false_alarms_are_as_rare_as_stated() -> None:
    """Judges of equal precision on 300 samples: a 5 % test rejects in 5 ± 3.5 %."""
    rng = np.random.default_rng(1)
    rejections = 0
    for _ in range(300):
        truth = rng.random(240) < np.repeat(rng.random(60), 4)
        said = rng.random((240, 2)) < np.where(truth, 0.8, 0.25)[:, None]
        clusters = sum_clusters(confusion_columns(said, truth), np.repeat(np.arange(60), 4))
        result = paired_differences(clusters, PRECISION, [[0, 1]], rng, n_resamples=300)
        rejections += int(result.p_value[0] <= 0.05)
    assert 0.015 <= rejections / 300 <= 0.085


def test_identical_judges_are_tied() -> None:
    said = np.repeat(np.array([[1], [0], [1], [1]]), 2, axis=1)
    clusters = sum_clusters(confusion_columns(said, [1, 0, 0, 1]), range(4))
    result = paired_differences(clusters, PRECISION, all_pairs(2), np.random.default_rng(0))
    assert result.interval.estimate.tolist() == [0]
    assert result.p_value.tolist() == result.p_holm.tolist() == [1]


def test_all_pairs_and_none() -> None:
    assert all_pairs(3).tolist() == [[0, 1], [0, 2], [1, 2]]
    assert all_pairs(1).shape == (0, 2)


def test_one_task_decides_nothing() -> None:
    clusters = sum_clusters(confusion_columns([[1, 0]], [1]), ["only"])
    result = paired_differences(clusters, PRECISION, [[0, 1]], np.random.default_rng(0))
    assert np.isnan(result.p_value).all()
    assert result.interval.notes == (ONE_CLUSTER,)


def test_who_is_told_apart_from_whom() -> None:
    """Judges 0 and 1 say the same; judge 2 accepts everything."""
    truth = np.arange(300) % 2 == 0
    said = np.column_stack([truth, truth, np.ones(300)])
    said[:20, :2] = 1 - said[:20, :2]
    clusters = sum_clusters(confusion_columns(said, truth), np.arange(300) // 2)
    result = paired_differences(clusters, PRECISION, all_pairs(3), np.random.default_rng(0))
    told = distinguishable(result, 3)
    assert told.tolist() == [[False, False, True], [False, False, True], [True, True, False]]
