"""Plots: every rate that the tables show has its point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from tests.eval.cases import key, label, observe, said
from trajudge.eval.reporting.plots import draw_precision, score_bins
from trajudge.eval.scoring.compute import score
from trajudge.eval.scoring.records import ALL_AGENTS, OVERALL
from trajudge.judges.model import Judgment
from trajudge.trajectories.model import TrajectoryKey


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


def runs(benchmarks: int, tasks: int, agents: int) -> list[TrajectoryKey]:
    every = product(range(benchmarks), range(tasks), range(agents))
    return [key(task, f"site{place}", f"agent{agent}") for place, task, agent in every]


def scored(keys: Sequence[TrajectoryKey], scores: Sequence[float | None]) -> list[Judgment]:
    pairs = zip(keys, scores, strict=True)
    fields = [{"key": one, "success": (value or 0) > 0.5, "score": value} for one, value in pairs]
    return [said(0, success=None).model_copy(update=each) for each in fields]


def test_a_bin_has_the_interval_of_the_precision_of_a_judge_that_accepts_it() -> None:
    """Few runs of many benchmarks: what there is beside them counts for both."""
    keys = runs(benchmarks=6, tasks=2, agents=4)
    labels = {one: label(0, n % 3 != 0) for n, one in enumerate(keys)}
    scores = [0.95 if n % 8 < 2 else None if n % 8 == 7 else 0.05 for n in range(len(keys))]
    judgments = scored(keys, scores)
    report = score(judgments, labels, rewards={})
    overall = next(s for s in report.scores if s.benchmark == OVERALL and s.agent == ALL_AGENTS)
    low, high = score_bins(observe(judgments, labels, "exclude"))
    assert (low.n, high.n) == (30, overall.counts.accepted)
    assert (low.score, high.score) == pytest.approx((0.05, 0.95))
    assert high.share == overall.precision
    assert high.limits == overall.intervals["precision"]


def test_a_bin_of_one_task_may_lie_anywhere_and_without_scores_there_is_none() -> None:
    keys = runs(benchmarks=1, tasks=3, agents=2)
    labels = {one: label(0, success=True) for one in keys}
    judgments = scored(keys, [0.95, 0.95, None, None, None, None])
    (only,) = score_bins(observe(judgments, labels, "exclude"))
    assert (only.share, only.limits, only.n) == (1, (0, 1), 2)
    assert score_bins(observe(scored(keys, [None] * 6), labels, "exclude")) == []


def test_the_interval_of_a_bin_covers_where_benchmarks_differ() -> None:
    """Of a tenth of the runs; over the tasks of the bin alone it covers 90 % here."""
    keys = runs(benchmarks=5, tasks=60, agents=4)
    labels = {one: label(0, success=True) for one in keys}
    form = observe(scored(keys, [0.5] * len(keys)), labels, "exclude")
    task = form.task.astype(int)
    tasks = task.max() + 1
    share = np.zeros(tasks)  # of successes: from .1 to .9 by benchmark, on the mean .5
    share[task] = np.linspace(0.1, 0.9, 5)[np.unique(form.benchmark, return_inverse=True)[1]]
    rng, covered = np.random.default_rng(3), 0
    for _ in range(500):
        often = rng.beta(0.1, 0.9, tasks)
        right = rng.beta(share * 7 / 3, (1 - share) * 7 / 3)  # correlation .3 within a task
        inside = rng.random(len(task)) < often[task]
        drawn = replace(
            form,
            labels=rng.random(len(task)) < right[task],
            scores=np.where(inside, 0.95, 0.05),
        )
        low, high = score_bins(drawn)[-1].limits
        covered += low <= 0.5 <= high
    assert covered / 500 > 0.93
