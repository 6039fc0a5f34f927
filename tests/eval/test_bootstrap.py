"""The cluster bootstrap, its draws, and metrics of scores as functions of sums."""

from __future__ import annotations

import re
from itertools import product
from math import factorial, prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import ArrayLike

from tests.eval.reference import confusion_columns, confusion_statistic, resample_rows, total_rows
from trajudge.stats.intervals import (
    BINS,
    ONE_CLUSTER,
    Floats,
    Ints,
    Multiplicities,
    Replicates,
    bootstrap_replicates,
    cluster_bootstrap,
    influence_values,
    percentile_interval,
    score_statistic,
    sum_clusters,
    sum_scores,
    uniform_indices,
)

PRF = confusion_statistic("precision", "recall", "f1")


def judged(seed: int, n: int = 200, judges: int = 2) -> tuple[Floats, Ints, Ints]:
    """Columns, tasks and benchmarks of trajectories whose labels share their task's difficulty."""
    rng = np.random.default_rng(seed)
    task = rng.integers(0, 40, n)
    easy = rng.random(40)[task]
    truth = rng.random(n) < easy
    said = rng.random((n, judges)) < np.where(truth, 0.8, 0.2)[:, None]
    return confusion_columns(said, truth), task, task % 3


@given(
    hnp.arrays(float, st.tuples(st.integers(1, 30), st.just(2)), elements=st.integers(0, 9)),
    st.data(),
)
def test_sums_by_cluster_are_sums_by_cluster(values: Floats, data: st.DataObject) -> None:
    names = st.lists(st.sampled_from("abc"), min_size=len(values), max_size=len(values))
    cluster, stratum = data.draw(names), data.draw(names)
    ours = sum_clusters(values, cluster, stratum)
    keys = sorted(set(zip(stratum, cluster, strict=True)))
    assert len(ours.sums) == len(keys)
    assert ours.stratum_sizes.tolist() == [
        sum(k[0] == h for k in keys) for h in sorted(set(stratum))
    ]
    for row, key in zip(ours.sums, keys, strict=True):
        mine = [pair == key for pair in zip(stratum, cluster, strict=True)]
        assert row.tolist() == values[mine].sum(axis=0).tolist()


def test_replicates_have_the_law_of_a_loop_that_resamples_rows() -> None:
    values, task, benchmark = judged(1)
    fast = bootstrap_replicates(
        sum_clusters(values, task, benchmark), PRF, np.random.default_rng(2), 4000
    )
    rng = np.random.default_rng(3)
    slow = np.array(
        [PRF(total_rows(values, resample_rows(task, benchmark, rng))) for _ in range(1500)]
    ).T
    four_errors = 4 * slow.std(axis=1) / 1500**0.5
    assert (abs(fast.mean(axis=1) - slow.mean(axis=1)) < four_errors).all()
    np.testing.assert_allclose(fast.std(axis=1), slow.std(axis=1), rtol=0.08)


def test_agrees_with_scipy_where_each_row_is_its_own_cluster() -> None:
    from scipy.stats import bootstrap

    values = np.random.default_rng(4).random(80)
    ours = cluster_bootstrap(
        sum_clusters(np.c_[values, np.ones(80)], np.arange(80)),
        lambda t: t[..., :1] / t[..., 1:],
        np.random.default_rng(5),
    )
    theirs = bootstrap((values,), np.mean, method="percentile", rng=np.random.default_rng(6))
    assert ours.low[0] == pytest.approx(theirs.confidence_interval.low, abs=0.004)
    assert ours.high[0] == pytest.approx(theirs.confidence_interval.high, abs=0.004)


@given(
    hnp.arrays(
        float,
        st.tuples(st.integers(1, 4), st.integers(1, 50)),
        elements=st.one_of(st.floats(-5, 5), st.just(float("nan"))),
    ),
    st.floats(0.1, 0.99),
)
def test_ends_are_numpys_nanquantiles(replicates: Floats, confidence: float) -> None:
    tail = (1 - confidence) / 2
    ours = percentile_interval(np.zeros(len(replicates)), replicates.copy(), confidence)
    for row, low, high in zip(replicates, ours.low, ours.high, strict=True):
        if np.isnan(row).all():
            assert np.isnan([low, high]).all()
        else:
            expected = np.nanquantile(row, [tail, 1 - tail])
            np.testing.assert_allclose([low, high], expected, atol=1e-12)


def test_whole_tasks_give_wider_intervals_than_single_trajectories() -> None:
    values, task, benchmark = judged(7, n=400)
    rng = np.random.default_rng(8)
    whole = cluster_bootstrap(sum_clusters(values, task, benchmark), PRF, rng)
    single = cluster_bootstrap(sum_clusters(values, np.arange(len(task)), benchmark), PRF, rng)
    assert (whole.width[:2] > 1.1 * single.width[:2]).all()


def test_the_influence_function_of_a_ratio_is_the_textbook_one() -> None:
    values, task, benchmark = judged(9, judges=1)
    clusters = sum_clusters(values, task, benchmark)
    tp, fp = clusters.sums[:, 0], clusters.sums[:, 1]
    accepted = (tp + fp).sum()
    precision = tp.sum() / accepted
    expected = (tp - precision * (tp + fp)) / accepted
    ours = influence_values(clusters, confusion_statistic("precision"))[:, 0]
    np.testing.assert_allclose(ours, expected, atol=1e-9)


def test_same_seed_same_digits_on_any_number_of_threads() -> None:
    threadpoolctl = pytest.importorskip("threadpoolctl", reason="comes with scikit-learn")
    values, task, benchmark = judged(12, n=500, judges=20)
    scores = np.c_[values, np.random.default_rng(0).normal(size=(500, 7))]
    clusters = sum_clusters(scores, task, benchmark)

    def run(threads: int) -> Replicates:
        with threadpoolctl.threadpool_limits(threads):
            return bootstrap_replicates(clusters, lambda t: t, np.random.default_rng(1), 1500)

    assert np.array_equal(run(1), run(4))


def test_more_resamples_extend_fewer() -> None:
    clusters = sum_clusters(*judged(13))
    few = bootstrap_replicates(clusters, PRF, np.random.default_rng(1), 150)
    many = bootstrap_replicates(clusters, PRF, np.random.default_rng(1), 2000)
    assert np.array_equal(few, many[:, :150])


def test_one_task_has_an_estimate_and_an_explanation() -> None:
    interval = cluster_bootstrap(
        sum_clusters(confusion_columns([[1], [0]], [1, 1]), ["t", "t"]),
        PRF,
        np.random.default_rng(0),
    )
    assert interval.estimate.tolist() == pytest.approx([1, 0.5, 2 / 3])
    assert np.isnan(interval.low).all()
    assert interval.notes == (ONE_CLUSTER,)


def test_no_positives_leaves_recall_undefined_and_says_so() -> None:
    columns = confusion_columns([[1], [0], [1]], [0, 0, 0])
    interval = cluster_bootstrap(sum_clusters(columns, [1, 2, 3]), PRF, np.random.default_rng(0))
    assert interval.estimate[0] == 0
    assert np.isnan([interval.estimate[1], interval.low[1], interval.high[1]]).all()
    assert interval.notes[0] == "1 statistics are undefined: a denominator is zero"


def test_resamples_without_an_accepted_trajectory_are_left_out_and_counted() -> None:
    columns = confusion_columns([[1], [0], [0]], [1, 1, 0])
    interval = cluster_bootstrap(sum_clusters(columns, [1, 2, 3]), PRF, np.random.default_rng(0))
    assert interval.low[0] == interval.high[0] == 1
    share = re.fullmatch(r"undefined in up to (.*)% of the resamples.*", interval.notes[0])
    # Only resamples of the two rejected trajectories alone: 8 of 27.
    assert share and float(share[1]) == pytest.approx(100 * 8 / 27, abs=2)
    one = cluster_bootstrap(
        sum_clusters(columns, [1, 2, 3]), PRF, np.random.default_rng(0), n_resamples=1
    )
    assert one.low.tolist() == one.high.tolist()
    with pytest.raises(ValueError, match="at least 1, not 0"):
        cluster_bootstrap(
            sum_clusters(columns, [1, 2, 3]), PRF, np.random.default_rng(0), n_resamples=0
        )


def test_nothing_at_all_is_defined_too() -> None:
    empty = sum_clusters(np.empty((0, 8)), [])
    interval = cluster_bootstrap(empty, PRF, np.random.default_rng(0))
    assert np.isnan(interval.estimate).all()
    assert interval.notes == (ONE_CLUSTER,)


def test_nan_is_refused() -> None:
    with pytest.raises(ValueError, match="nan"):
        sum_clusters([[float("nan")]], [1])


@pytest.mark.parametrize("bound", [1, 2, 58, 257, 19_683])
def test_every_index_is_as_likely(bound: int) -> None:
    from scipy import stats

    drawn = uniform_indices(bound, 400_000, np.random.default_rng(bound))
    found = np.bincount(drawn, minlength=bound)
    assert len(found) == bound
    assert stats.chisquare(found).pvalue > 1e-3 if bound > 1 else found.tolist() == [400_000]


def test_indices_read_from_one_word_are_independent() -> None:
    """Eight base-7 digits of a word lie an eighth of the whole apart."""
    from scipy import stats

    digits = uniform_indices(7, 8 * 50_000, np.random.default_rng(1)).reshape(8, -1)
    for first, second in product(range(8), repeat=2):
        if first < second:
            pairs = np.bincount(digits[first].astype(int) * 7 + digits[second], minlength=49)
            assert stats.chisquare(pairs).pvalue > 1e-4


@given(st.integers(1, 2**40), st.integers(0, 30), st.integers(0, 5))
def test_any_bound_and_any_number(bound: int, size: int, seed: int) -> None:
    drawn = uniform_indices(bound, size, np.random.default_rng(seed))
    assert drawn.shape == (size,)
    assert (drawn < bound).all()


def test_counts_have_the_multinomial_law_within_each_block() -> None:
    from scipy import stats

    sizes, n = (3, 2), 60_000
    counts = Multiplicities(sizes, n).draw(np.random.default_rng(2)).astype(int)
    three, two = counts[:, :3], counts[:, 3:]
    for block, size in ((three, 3), (two, 2)):
        kinds = [k for k in product(range(size + 1), repeat=size) if sum(k) == size]
        found = [int((block == kind).all(axis=1).sum()) for kind in kinds]
        chance = [factorial(size) / prod(map(factorial, k)) / size**size for k in kinds]
        assert sum(found) == n
        assert stats.chisquare(found, n * np.array(chance)).pvalue > 1e-3
    assert abs(np.corrcoef(three[:, 0], two[:, 0])[0, 1]) < 4 / n**0.5


def test_a_draw_does_not_depend_on_the_draws_before_it() -> None:
    again = Multiplicities((4, 5), 50)
    again.draw(np.random.default_rng(1))
    fresh = Multiplicities((4, 5), 50).draw(np.random.default_rng(2))
    assert np.array_equal(again.draw(np.random.default_rng(2)), fresh)


# Ties and the ends of bins are frequent.
ITEMS = st.lists(
    st.tuples(st.integers(0, 20).map(lambda k: k / 20), st.booleans()), min_size=1, max_size=60
)


def metrics(scores: Floats, truth: ArrayLike) -> Floats:
    return np.asarray(score_statistic()(sum_scores(scores, truth, np.zeros(len(scores))).total))


def calibration_error_by_loop(scores: Floats, truth: Floats) -> float:
    error = 0.0
    for bin_ in range(BINS):
        last = bin_ == BINS - 1
        inside = [
            i
            for i, s in enumerate(scores)
            if int(s * BINS) == bin_ or (last and int(s * BINS) > bin_)
        ]
        if inside:
            error += abs(truth[inside].mean() - scores[inside].mean()) * len(inside)
    return error / len(scores)


@pytest.mark.slow
@given(ITEMS)
def test_they_are_scikit_learns(items: list[tuple[float, bool]]) -> None:
    from sklearn.metrics import average_precision_score, brier_score_loss, roc_auc_score

    scores = np.array([score for score, _ in items])
    truth = np.array([float(right) for _, right in items])
    auc, ap, brier, error = metrics(scores, truth)
    if 0 < truth.sum() < len(truth):
        assert auc == pytest.approx(roc_auc_score(truth, scores), abs=1e-9)
    else:
        assert np.isnan(auc)
    if truth.any():
        assert ap == pytest.approx(average_precision_score(truth, scores), abs=1e-9)
    else:
        assert np.isnan(ap)
    assert brier == pytest.approx(np.mean((scores - truth) ** 2), abs=1e-9)
    if 0 < truth.sum() < len(truth):
        assert brier == pytest.approx(brier_score_loss(truth, scores), abs=1e-9)
    assert error == pytest.approx(calibration_error_by_loop(scores, truth), abs=1e-9)


def test_sums_of_a_resample_are_the_metrics_of_the_resample() -> None:
    rng = np.random.default_rng(0)
    scores, truth = rng.integers(0, 11, 80) / 10, rng.random(80) < 0.4
    task = np.arange(80) % 20
    clusters = sum_scores(scores, truth, task)
    weights = rng.multinomial(20, np.full(20, 1 / 20))
    repeated = np.repeat(np.arange(80), weights[task])
    found = score_statistic()(weights @ clusters.sums)
    assert found == pytest.approx(metrics(scores[repeated], truth[repeated]))
    interval = cluster_bootstrap(clusters, score_statistic(), rng, n_resamples=200)
    assert np.all((interval.low <= interval.estimate) & (interval.estimate <= interval.high))


@pytest.mark.parametrize("bad", [-0.1, 1.1, float("nan")])
def test_a_score_outside_zero_and_one_is_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        sum_scores([0.5, bad], [True, False], [1, 2])
