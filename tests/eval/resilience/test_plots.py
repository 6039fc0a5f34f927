"""Retention as a picture: what is drawn are the figures of the tables."""

from __future__ import annotations

import pytest

from tests.eval.resilience.fault_runs import BUSY, TASKS, fired, run
from trajudge.eval.resilience.reading import ExperimentArm, FaultPair
from trajudge.eval.resilience.results import arm_measures, draw_retention


def test_an_interval_is_drawn_from_its_lower_to_its_upper_limit() -> None:
    figure = pytest.importorskip("matplotlib.figure")
    faulted = [run(task, at % 3 > 0, fired()) for at, task in enumerate(TASKS)]
    pairs = [FaultPair(run(one.key.task, success=True), one) for one in faulted]
    row = arm_measures(ExperimentArm("busy", faulted, (BUSY,)), "a", pairs)
    axes = figure.Figure().add_subplot()
    assert draw_retention(axes, [row])
    ((_, _, (bars,)),) = axes.containers
    ((_, low), (_, high)) = bars.get_segments()[0]
    value, *limits = row.retention
    assert (low, high) == pytest.approx([100 * (limit or 0) for limit in limits])
    assert low < 100 * (value or 0) < high
