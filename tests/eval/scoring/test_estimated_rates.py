"""Success rates from a judge over all runs and labels of a few: worlds of known truth."""

from __future__ import annotations

import numpy as np
import pytest

from tests.eval.cases import failed, key, label, said
from tests.samples import repeats
from trajudge.eval.reporting.sentences import notes
from trajudge.eval.reporting.tables import plain
from trajudge.eval.scoring.compute import score
from trajudge.eval.scoring.estimates import with_estimated_rates
from trajudge.eval.scoring.records import EstimatedRate, ScoreReport
from trajudge.judges.model import Status

RATES = {"webarena": 0.3, "workarena": 0.6}
"""The agent's true rates; its judge finds 90 % of the successes and takes 20 % of the failures for
successes."""


def world(rng: np.random.Generator, tasks: int, labelled: int) -> ScoreReport:
    """``tasks`` tasks of either benchmark, the first ``labelled`` of which have labels."""
    judgments, labels = [], {}
    for benchmark, rate in RATES.items():
        for task in range(tasks):
            success = bool(rng.random() < rate)
            verdict = bool(rng.random() < (0.9 if success else 0.2))
            judgments.append(said(task, verdict, benchmark=benchmark))
            if task < labelled:
                labels[key(task, benchmark)] = label(task, success, benchmark=benchmark)
    rewards = dict.fromkeys((j.key for j in judgments), 1.0)
    return with_estimated_rates(score(judgments, labels, rewards=rewards), judgments, labels, {})


def overall(scores: ScoreReport, benchmark: str = "overall") -> EstimatedRate:
    return next(r for r in scores.estimated_rates if (r.benchmark, r.agent) == (benchmark, "all"))


@pytest.mark.slow
@pytest.mark.sampled
def test_the_estimate_covers_where_the_judge_alone_is_biased() -> None:
    """Worlds of 40 labelled tasks in 300: at least 90 % cover, of 95 % nominal."""
    rng, covered, alone, widths = np.random.default_rng(0), 0, 0, []
    worlds = repeats(40, 100)
    for _ in range(worlds):
        found = overall(world(rng, 150, 20))
        truth = sum(RATES.values()) / 2
        covered += found.intervals["estimate"][0] <= truth <= found.intervals["estimate"][1]
        alone += found.intervals["judge_only"][0] <= truth <= found.intervals["judge_only"][1]
        widths.append([np.diff(found.intervals[n])[0] for n in ("estimate", "expert_only")])
    assert covered >= 0.9 * worlds
    assert alone < 0.6 * worlds
    assert np.mean(widths, axis=0)[0] < np.mean(widths, axis=0)[1]


def test_every_benchmark_and_agent_has_its_estimate() -> None:
    found = world(np.random.default_rng(1), 50, 20)
    assert [(r.benchmark, r.agent, r.labelled, r.unlabelled) for r in found.estimated_rates] == [
        ("webarena", "all", 20, 30),
        ("webarena", "agent", 20, 30),
        ("workarena", "all", 20, 30),
        ("workarena", "agent", 20, 30),
        ("overall", "all", 40, 60),
        ("overall", "agent", 40, 60),
    ]
    assert ScoreReport.model_validate_json(found.model_dump_json()) == found
    assert "Success rates from verdicts on all runs and labels of some" in plain(found)


def test_where_every_run_is_labelled_or_none_there_is_no_estimate() -> None:
    for labelled in (0, 10):
        found = world(np.random.default_rng(2), 10, labelled)
        assert found.estimated_rates == ()
        assert "labels of some" not in plain(found)


def test_one_labelled_task_gives_no_estimate_but_the_reason() -> None:
    found = overall(world(np.random.default_rng(3), 10, 1), "webarena")
    assert (found.estimate, found.labelled_tasks) == (None, 1)
    assert "fewer than two labelled tasks" in found.note


def test_the_overall_effective_labels_are_those_of_the_overall_estimate() -> None:
    """Benchmarks are its strata: that their rates differ is no variance that the judge removes."""
    worlds = {"webarena": (1, 40), "workarena": (39, 40)}  # successes among the tasks
    judgments, labels = [], {}
    for benchmark, (successes, tasks) in worlds.items():
        for task in range(2 * tasks):
            success = task % tasks < successes
            judgments.append(said(task, success ^ (task % 5 == 0), benchmark=benchmark))
            if task < tasks:
                labels[key(task, benchmark)] = label(task, success, benchmark=benchmark)
    found = with_estimated_rates(score(judgments, labels, rewards={}), judgments, labels, {})
    parts = [overall(found, benchmark) for benchmark in worlds]
    gains = [part.effective_labels / part.labelled for part in parts]  # type: ignore[operator]
    whole = overall(found)
    assert whole.effective_labels is not None
    assert min(gains) <= whole.effective_labels / whole.labelled <= max(gains)


def test_without_an_estimate_there_are_no_effective_labels_and_the_reason_is_shown() -> None:
    judgments = [said(task, True, benchmark="new") for task in range(5)]
    judgments += [said(task, task % 3 == 0) for task in range(20)]
    labels = {key(task): label(task, task % 2 == 0) for task in range(10)}
    scores = with_estimated_rates(score(judgments, labels, rewards={}), judgments, labels, {})
    found = overall(scores)
    assert (found.estimate, found.effective_labels) == (None, None)
    reason = "Success rates, Overall: no estimate by judge: of new fewer than two labelled tasks"
    assert any(note.startswith(reason) for note in notes(scores))


@pytest.mark.parametrize(("missing", "counted"), [("negative", 3), ("exclude", 2)])
def test_failed_judgments_and_unsure_labels(missing: str, counted: int) -> None:
    judgments = [said(task, task % 2 == 0) for task in range(8)]
    judgments[7] = failed(7, Status.REFUSED)
    labels = {key(t): label(t, None if t == 4 else t % 2 == 0) for t in range(5)}
    scores = score(judgments, labels, rewards={}, missing=missing)  # type: ignore[arg-type]
    scores = with_estimated_rates(scores, judgments, labels, {})
    found = overall(scores, "webarena")
    assert (found.labelled, found.unlabelled) == (4, counted)
