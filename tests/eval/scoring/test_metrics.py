"""Counts and rates, against scikit-learn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trajudge.eval.scoring.metrics import METRICS, VERDICT_METRICS
from trajudge.eval.scoring.records import Counts

PAIRS = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=80)


def rate(name: str, counts: Counts) -> float | None:
    """The metric of the table; None where a denominator is zero."""
    cells = np.array([counts.tp, counts.fp, counts.fn, counts.tn, 0, 0], dtype=float)
    value = float(METRICS[name].value(cells))
    return None if np.isnan(value) else value


def agrees(ours: float | None, theirs: Callable[[], Any]) -> None:
    if ours is not None:
        assert ours == pytest.approx(theirs())


@given(PAIRS)
def test_every_rate_is_scikit_learns(pairs: list[tuple[bool, bool]]) -> None:
    from sklearn import metrics as sk

    truth, said = (np.array(column) for column in zip(*pairs, strict=True))
    tn, fp, fn, tp = sk.confusion_matrix(truth, said, labels=[False, True]).ravel()
    counts = Counts(tp=int(tp), fp=int(fp), fn=int(fn), tn=int(tn))
    assert (counts.n, counts.positives, counts.accepted) == (len(pairs), sum(truth), sum(said))
    agrees(rate("precision", counts), lambda: sk.precision_score(truth, said))
    agrees(rate("recall", counts), lambda: sk.recall_score(truth, said))
    agrees(rate("f1", counts), lambda: sk.f1_score(truth, said))
    agrees(rate("accuracy", counts), lambda: sk.accuracy_score(truth, said))
    agrees(rate("npv", counts), lambda: sk.precision_score(truth, said, pos_label=False))
    agrees(rate("tnr", counts), lambda: sk.recall_score(truth, said, pos_label=False))
    agrees(rate("kappa", counts), lambda: sk.cohen_kappa_score(truth, said))
    agrees(rate("mcc", counts), lambda: sk.matthews_corrcoef(truth, said))
    agrees(rate("balanced_accuracy", counts), lambda: sk.balanced_accuracy_score(truth, said))
    agrees(rate("fpr", counts), lambda: 1 - sk.recall_score(truth, said, pos_label=False))
    agrees(rate("fnr", counts), lambda: 1 - sk.recall_score(truth, said))
    agrees(rate("over_accept_share", counts), lambda: np.mean(said[said != truth]))


def test_a_rate_without_a_denominator_is_not_a_number() -> None:
    nothing_accepted = Counts(fn=1, tn=1)
    assert rate("precision", nothing_accepted) is None
    assert rate("recall", nothing_accepted) == 0
    assert all(rate(metric.name, Counts()) is None for metric in VERDICT_METRICS)


def test_kappa_of_the_published_judges() -> None:
    assert round(rate("kappa", Counts(tp=171, fp=55, fn=124, tn=756)) or 0, 3) == 0.553
    assert round(rate("kappa", Counts(tp=210, fp=75, fn=85, tn=736)) or 0, 3) == 0.626
