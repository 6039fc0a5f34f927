"""The judge against the rule-based baseline, in the main table and as data."""

from __future__ import annotations

import numpy as np
import pytest

from tests.eval.cases import key, label, said
from trajudge.eval.reporting.tables import tables
from trajudge.eval.scoring.compute import score
from trajudge.eval.scoring.records import MetricDifference, ScoreReport
from trajudge.stats.comparison import TaskRuns, improvement
from trajudge.stats.intervals import clustered_differences
from trajudge.trajectories.model import TrajectoryKey

N = 120


def judged(wrong: int) -> ScoreReport:
    """A judge wrong on the first ``wrong`` tasks beside a rule wrong on every fifth; three agents
    on each task."""
    places = [key(i // 3, agent="abc"[i % 3]) for i in range(N)]
    truth = {place: (i // 3) % 2 == 0 for i, place in enumerate(places)}
    labels = {p: label(0, good).model_copy(update={"key": p}) for p, good in truth.items()}
    rewards: dict[TrajectoryKey, float | None] = {
        place: float(good != (i // 3 % 5 == 0)) for i, (place, good) in enumerate(truth.items())
    }
    judgments = [
        said(0, good != (i // 3 < wrong)).model_copy(update={"key": place})
        for i, (place, good) in enumerate(truth.items())
    ]
    return score(judgments, labels, rewards=rewards)


def overall(scores: ScoreReport, metric: str) -> MetricDifference:
    return next(
        d for d in scores.against_baseline if d.benchmark == "overall" and d.metric == metric
    )


def test_a_judge_is_told_apart_from_the_rule_on_the_same_trajectories() -> None:
    found = overall(judged(wrong=1), "f1")
    assert (found.first, found.second, found.n) == ("judge", "rule-based", N)
    assert found.low is not None
    assert found.low > 0
    assert found.p is not None
    assert found.p < 0.05
    same = overall(judged(wrong=8), "precision")
    assert same.low is not None
    assert same.high is not None
    assert same.low < 0 < same.high


def test_the_difference_stands_in_the_main_table() -> None:
    _, _, rows, _ = next(table for table in tables(judged(wrong=1)) if table.title == "Success")
    assert [row[1].strip() for row in rows] == ["judge", "rule-based", "difference"]
    assert rows[2][2].startswith("+")


def test_the_interval_of_a_difference_of_independent_rates_is_newcombes() -> None:
    """Newcombe 1998, method 10: 56/70 and 48/80 give 0.0524 to 0.3339."""
    first, second = np.arange(150) < 56, (np.arange(150) >= 70) & (np.arange(150) < 118)
    one = np.arange(150) < 70
    found = clustered_differences([first, second], [one, ~one], [150])
    expected = (0.0524, 0.3339)
    assert (found.interval.low, found.interval.high) == pytest.approx(expected, abs=0.006)
    assert 0.005 < found.p_value < 0.012


def test_the_p_value_says_what_the_interval_says() -> None:
    rng = np.random.default_rng(5)
    trials = np.full((2, 500, 30), 4.0)
    hits = rng.binomial(4, rng.beta(2, 2, (1, 500, 30)) * np.ones((2, 1, 1))).astype(float)
    found = clustered_differences(hits, trials, [30])
    excluded = (found.interval.low > 0) | (found.interval.high < 0)
    assert (excluded == (found.p_value < 0.05)).all()
    assert 0.02 < excluded.mean() < 0.08  # the level, where there is no difference


def test_the_probability_of_improvement_against_all_pairs_of_runs() -> None:
    """Agarwal et al. 2021: the mean over tasks of the Mann-Whitney share, ties half."""
    rng = np.random.default_rng(2)
    x, y, task = rng.random(60) < 0.6, rng.random(60) < 0.4, np.repeat(np.arange(15), 4)
    shares = [
        np.mean([(a > b) + 0.5 * (a == b) for a in x[task == t] for b in y[task == t]])
        for t in range(15)
    ]
    found = improvement(x, y, TaskRuns.of(task))
    assert found.estimate == pytest.approx(np.mean(shares))
    half = 2.145 * np.std(shares, ddof=1) / 15**0.5
    assert found.high - found.low == pytest.approx(2 * half, rel=1e-3)
    one = improvement(np.array([True]), np.array([False]), TaskRuns.of([0]))
    assert np.isnan(one.low)
