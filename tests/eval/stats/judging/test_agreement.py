"""Kappa against scikit-learn, alpha against the krippendorff package."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from trajudge.stats.agreement import (
    BY_CHANCE,
    NOT_PAIRABLE,
    TOO_FEW_TASKS,
    Scale,
    annotator_agreement,
    krippendorff_alpha,
)
from trajudge.stats.intervals import Floats, Ints, clustered_agreement


@pytest.mark.slow
@pytest.mark.parametrize("scale", ["nominal", "ordinal", "interval"])
@given(
    labels=hnp.arrays(
        float,
        st.tuples(st.integers(2, 4), st.integers(3, 10)),
        elements=st.sampled_from([1.0, 2.0, 3.0, float("nan")]),
    )
)
def test_alpha_is_the_krippendorff_packages(scale: Scale, labels: Floats) -> None:
    krippendorff = pytest.importorskip(
        "krippendorff", reason="krippendorff, the reference here, is not installed"
    )
    paired = labels[:, (~np.isnan(labels)).sum(axis=0) > 1]
    assume(len(np.unique(paired[~np.isnan(paired)])) > 1)
    ours = krippendorff_alpha(labels, scale=scale)
    theirs = krippendorff.alpha(paired, level_of_measurement=scale)
    assert ours.estimate[0] == pytest.approx(theirs, abs=1e-9)


def test_alpha_of_many_units_has_an_interval_around_it() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 100)
    labels = np.where(rng.random((3, 100)) < 0.9, truth, 1 - truth).astype(float)
    found = krippendorff_alpha(labels)
    assert found.low[0] < found.estimate[0] < found.high[0]
    assert 0.5 < found.estimate[0] < 0.8


def test_alpha_without_a_pair_is_undefined() -> None:
    labels = [[1, np.nan], [np.nan, 0]]
    found = krippendorff_alpha(labels)
    assert np.isnan(found.estimate).all()
    assert found.notes == (NOT_PAIRABLE,)


def drawn(rng: np.random.Generator, tasks: int, accuracy: float) -> tuple[Ints, Ints]:
    """Labels (2, N) of four values from annotators who see the truth with probability
    ``accuracy`` and else draw from the margin, so that kappa is ``accuracy`` squared; the tasks of
    N trajectories, one or two a task, half of which share their truth."""
    margin = [0.4, 0.3, 0.2, 0.1]
    task = np.repeat(np.arange(tasks), rng.integers(1, 3, tasks))
    n = len(task)
    shared = rng.choice(4, tasks, p=margin)[task]
    truth = np.where(rng.random(n) < 0.5, shared, rng.choice(4, n, p=margin))
    seen = rng.random((2, n)) < accuracy
    return np.where(seen, truth, rng.choice(4, (2, n), p=margin)), task


@pytest.mark.slow
def test_the_intervals_over_tasks_cover() -> None:
    rng, accuracy = np.random.default_rng(3), 0.75
    raw = accuracy**2 + (1 - accuracy**2) * 0.3
    covered = []
    for _ in range(400):
        found = annotator_agreement(*drawn(rng, 50, accuracy))
        truths = ((found.raw, raw), (found.kappa, accuracy**2), (found.alpha, accuracy**2))
        covered.append([bool(interval.covers(truth)[0]) for interval, truth in truths])
    # Three Monte Carlo errors below 95 %.
    assert (np.mean(covered, axis=0) > 0.95 - 3 * (0.95 * 0.05 / 400) ** 0.5).all()


def test_copies_of_a_trajectory_in_its_task_add_no_certainty() -> None:
    labels, _ = drawn(np.random.default_rng(0), 80, 0.75)
    units = np.arange(labels.shape[1])
    once = annotator_agreement(labels, units)
    copied = annotator_agreement(np.tile(labels, 3), np.tile(units, 3))
    assert copied.kappa.estimate == pytest.approx(once.kappa.estimate)
    for name, within in (("raw", 0.06), ("kappa", 0.02), ("alpha", 0.02)):
        # One label a task has the exact interval of a rate, which is wider.
        assert getattr(copied, name).width == pytest.approx(getattr(once, name).width, rel=within)


def test_of_two_values_the_interval_of_kappa_is_that_of_judges() -> None:
    rng = np.random.default_rng(1)
    truth = rng.random(120) < 0.3
    labels = np.stack([truth, np.where(rng.random(120) < 0.85, truth, ~truth)]).astype(float)
    task = np.arange(120) // 2
    cells = np.stack([labels[0] * labels[1], (1 - labels[0]) * labels[1]], axis=1)
    cells = np.column_stack([cells, labels[0] * (1 - labels[1]), (1 - labels[0]) * (1 - labels[1])])
    counts = cells.reshape(60, 2, 4).sum(axis=1)
    judges = clustered_agreement(counts, [60])[0]
    found = annotator_agreement(labels, task).kappa
    assert found.estimate[0] == pytest.approx(float(judges.estimate))
    assert [found.low[0], found.high[0]] == pytest.approx(
        [float(judges.low), float(judges.high)], abs=1e-6
    )


def test_one_task_and_one_value_have_no_interval() -> None:
    alone = annotator_agreement([[1, 0, 1], [1, 1, 0]], ["t", "t", "t"])
    assert np.isnan(alone.kappa.low[0])
    assert alone.kappa.notes == (TOO_FEW_TASKS,)
    alike = annotator_agreement([[1, 1], [1, 1]], ["t", "u"])
    assert alike.kappa.notes == (BY_CHANCE,)
    assert annotator_agreement([[1.0], [np.nan]], ["t"]).n == 0
