"""Plots: every rate that the tables show has its point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from tests.eval.cases import key, label, observe, said, small_run
from trajudge.eval.reporting.plots import (
    draw_precision,
    draw_precision_recall,
    draw_profiles,
    draw_success_rates,
    score_bins,
    threshold_curve,
)
from trajudge.eval.scoring.compute import score
from trajudge.eval.scoring.records import ALL_AGENTS, OVERALL
from trajudge.judges.model import Judgment
from trajudge.trajectories.model import TrajectoryKey


def test_a_precision_without_an_interval_is_drawn_as_a_point(axes: Any) -> None:
    labels = {key(n): label(n, success=n % 2 == 0) for n in range(12)}
    choosy = [said(n, n == 2, judge="choosy") for n in range(12)]
    nobody = [said(n, success=False, judge="nobody") for n in range(12)]
    wide = [said(n, n < 8, judge="wide") for n in range(12)]
    assert draw_precision(axes, score([*choosy, *nobody, *wide], labels, rewards={}))
    found = {name: [y for _, y in points] for name, points in drawn(axes).items()}
    # On the benchmark and overall; a judge that accepts nothing has no precision.
    assert found["choosy"] == [100, 100]
    assert found["wide"] == [50, 50]
    assert found["nobody"] == []


@pytest.fixture
def axes() -> Any:
    return pytest.importorskip("matplotlib.figure").Figure().add_subplot()


def drawn(axes: Any) -> dict[str, list[tuple[float, float]]]:
    """The points of every label."""
    return {
        each.get_label(): list(
            zip(*(line.tolist() for line in each.lines[0].get_data()), strict=True)
        )
        for each in axes.containers
    }


def test_judges_stand_beside_each_other_on_every_benchmark(axes: Any) -> None:
    assert draw_precision(axes, small_run())
    places = {name: np.array(points)[:, 0] for name, points in drawn(axes).items()}
    assert [*places] == ["careful", "rule-based", "hasty"]
    assert places["rule-based"] == pytest.approx([0, 1, 2])
    assert (places["careful"] < places["rule-based"]).all()
    assert (places["rule-based"] < places["hasty"]).all()


def test_success_rates_are_drawn_agent_by_agent(axes: Any) -> None:
    """Agent x has 32 labelled runs, y has 30; of the rewards every sixth is a success."""
    assert draw_success_rates(axes, small_run())
    found = drawn(axes)
    assert {name: [y for _, y in points] for name, points in found.items()} == {
        "expert": pytest.approx([1100 / 32, 1000 / 30]),
        "careful": pytest.approx([1200 / 32, 1200 / 30]),
        "hasty": pytest.approx([2000 / 32, 2000 / 30]),
        "rule-based": pytest.approx([500 / 32, 600 / 30]),
    }
    of_x = [points[0][0] for points in found.values()]
    assert of_x == sorted(of_x) and sum(of_x) == pytest.approx(0)
    assert not draw_success_rates(axes, small_run().model_copy(update={"success_rates": ()}))


def test_recall_and_precision_are_a_point_and_scores_a_curve(axes: Any) -> None:
    assert draw_precision_recall(axes, small_run(), {})
    assert {name: points for name, (points,) in drawn(axes).items()} == {
        "careful": pytest.approx((1800 / 21, 1800 / 24)),
        "rule-based": pytest.approx((1100 / 21, 100)),
        "hasty": pytest.approx((2000 / 21, 2000 / 40)),
    }
    labels = {key(n): label(n, n in (0, 2)) for n in range(4)}
    judgments = scored([*labels], [0.9, 0.8, 0.8, 0.1])
    curve = threshold_curve(observe(judgments, labels, "exclude"))
    assert curve is not None
    assert curve == pytest.approx(np.array([[0.5, 1, 1], [1, 2 / 3, 0.5]]))


def test_a_profile_is_the_share_of_the_cells_of_an_agent_on_a_benchmark(axes: Any) -> None:
    """Precision is 71.4, 71.4, 80 and 80 % of one judge, 54.5, 40, 55.6 and 50 % of the other."""
    assert draw_profiles(axes, small_run())
    shares = {
        line.get_label(): [line.get_ydata()[place] for place in (106, 110, 144)]
        for line in axes.lines
    }
    assert shares["careful"] == pytest.approx([100, 100, 50])
    assert shares["hasty"] == pytest.approx([50, 25, 0])


def test_a_score_of_one_is_in_the_last_bin() -> None:
    labels = {key(n): label(n, success=True) for n in range(3)}
    bins = score_bins(observe(scored([*labels], [1.0, 0.95, 0.9]), labels, "exclude"))
    assert [each.n for each in bins] == [3]


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
