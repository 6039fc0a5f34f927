"""Plots: every rate that the tables show has its point."""

from __future__ import annotations

import pytest

from tests.eval.cases import key, label, said
from trajudge.eval.reporting.plots import draw_precision
from trajudge.eval.scoring.compute import score


def test_a_precision_without_an_interval_is_drawn_as_a_point() -> None:
    figure = pytest.importorskip("matplotlib.figure")
    labels = {key(n): label(n, success=n % 2 == 0) for n in range(12)}
    choosy = [said(n, n == 2, judge="choosy") for n in range(12)]
    nobody = [said(n, success=False, judge="nobody") for n in range(12)]
    wide = [said(n, n < 8, judge="wide") for n in range(12)]
    axes = figure.Figure().add_subplot()
    assert draw_precision(axes, score([*choosy, *nobody, *wide], labels, rewards={}))
    drawn = {bars.get_label(): bars.lines[0].get_ydata().tolist() for bars in axes.containers}
    # On the benchmark and overall; a judge that accepts nothing has no precision.
    assert drawn["choosy"] == [100, 100]
    assert drawn["wide"] == [50, 50]
    assert drawn["nobody"] == []
