"""The first sentences: figures that are of different trajectories say so."""

from __future__ import annotations

from tests.eval.cases import key, label, said
from trajudge.eval.reporting.caveats import warnings_of
from trajudge.eval.reporting.finding import finding
from trajudge.eval.scoring.compute import score
from trajudge.eval.scoring.records import ScoreReport

TASKS = range(12)


def scored(rewards: dict[int, float | None]) -> ScoreReport:
    labels = {key(task): label(task, task % 2 == 0) for task in TASKS}
    judgments = [said(task, task % 3 > 0) for task in TASKS]
    by_key = {key(task): reward for task, reward in rewards.items()}
    return score(judgments, labels, rewards=by_key)


def test_a_difference_on_fewer_trajectories_names_them() -> None:
    whole = finding(scored({task: float(task % 2 == 0 or task > 8) for task in TASKS}), "success")
    assert " points, " in whole[1]
    part = finding(scored({task: float(task % 2 == 0 or task > 5) for task in range(8)}), "success")
    assert " points on the 8 with both, " in part[1]


def test_rewards_on_another_scale_are_a_warning() -> None:
    (line,) = warnings_of(scored({0: 40.0, 1: -1.0, 2: 1.0, 3: None}))[-2:-1]
    assert line == (
        "warning: rule-based: 2 of 3 official rewards not between 0 and 1, such as 40: above 0.5 "
        "counts as success, therefore scale them in the data"
    )
    between = warnings_of(scored({0: 0.25, 1: 0.0, 2: 1.0}))
    assert not any("official rewards" in text for text in between)
