"""Metrics of counts against scikit-learn on random labels."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trajudge.stats.comparison import METRICS, confusion_columns, confusion_statistic


def reference(name: str, truth: list[bool], said: list[bool]) -> float:
    from sklearn import metrics

    negated = [not x for x in truth], [not x for x in said]
    values: dict[str, Callable[[], float]] = {
        "precision": lambda: metrics.precision_score(truth, said),
        "recall": lambda: metrics.recall_score(truth, said),
        "f1": lambda: metrics.f1_score(truth, said),
        "accuracy": lambda: metrics.accuracy_score(truth, said),
        "npv": lambda: metrics.precision_score(*negated),
        "tnr": lambda: metrics.recall_score(*negated),
        "kappa": lambda: metrics.cohen_kappa_score(truth, said),
        "mcc": lambda: metrics.matthews_corrcoef(truth, said),
        "balanced_accuracy": lambda: (
            (metrics.recall_score(truth, said) + metrics.recall_score(*negated)) / 2
        ),
        "fpr": lambda: 1 - metrics.recall_score(*negated),
        "fnr": lambda: 1 - metrics.recall_score(truth, said),
        "over_accept_share": lambda: (
            sum(s > t for t, s in zip(truth, said, strict=True))
            / sum(s != t for t, s in zip(truth, said, strict=True))
        ),
    }
    return float(values[name]())


@pytest.mark.slow
@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=40))
def test_every_defined_metric_is_scikit_learns(pairs: list[tuple[bool, bool]]) -> None:
    truth, said = [t for t, _ in pairs], [s for _, s in pairs]
    totals = confusion_columns(np.array(said)[:, None], truth).sum(axis=0)
    ours = confusion_statistic(*METRICS)(totals)
    for name, value in zip(METRICS, ours, strict=True):
        if not np.isnan(value):
            assert value == pytest.approx(reference(name, truth, said), abs=1e-12)


def test_a_judge_that_accepts_nothing_has_no_precision() -> None:
    totals = confusion_columns(np.zeros((4, 1)), [1, 0, 0, 0]).sum(axis=0)
    precision, recall, mcc = confusion_statistic("precision", "recall", "mcc")(totals)
    assert np.isnan(precision)
    assert recall == 0
    assert np.isnan(mcc)


def test_what_is_not_counted_enters_no_cell() -> None:
    counted = np.array([[True, False], [True, True]])
    columns = confusion_columns(np.ones((2, 2)), [True, False], counted)
    assert columns.sum(axis=0).tolist() == [1, 0, 1, 1, 0, 0, 0, 0]


def test_each_judge_may_have_its_own_truth() -> None:
    columns = confusion_columns([[1, 1]], [[1, 0]])
    assert columns.tolist() == [[1, 0, 0, 1, 0, 0, 0, 0]]


def test_a_missing_verdict_is_refused_not_counted_as_no() -> None:
    with pytest.raises(ValueError, match="0 or 1"):
        confusion_columns([[float("nan")]], [1])


def test_three_blocks_do_for_metrics_that_never_read_true_negatives() -> None:
    rng = np.random.default_rng(1)
    says, truth = rng.random((2, 30, 4)) < 0.5
    names = ("precision", "recall", "f1")
    three = confusion_statistic(*names, blocks=3)(confusion_columns(says, truth, blocks=3).sum(0))
    assert (
        three.tolist()
        == confusion_statistic(*names)(confusion_columns(says, truth).sum(0)).tolist()
    )
    with pytest.raises(ValueError, match="true negatives"):
        confusion_statistic("recall", "npv", blocks=3)
