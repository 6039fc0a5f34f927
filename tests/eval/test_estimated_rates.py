"""Success rates from a judge over all runs and labels of a few: PPI++, alone and in scores."""

from __future__ import annotations

import numpy as np
import pytest

from tests.eval.cases import failed, key, label, said
from trajudge.eval.reporting.sentences import notes
from trajudge.eval.reporting.tables import plain
from trajudge.eval.scoring.compute import score
from trajudge.eval.scoring.estimates import with_estimated_rates
from trajudge.eval.scoring.records import EstimatedRate, ScoreReport
from trajudge.judges.model import Status
from trajudge.stats.comparison import BIASED, TOO_FEW, UNSEEN_TASKS, powered_rate, stratified_rate
from trajudge.stats.intervals import PRIOR_CLUSTERS, Floats, Ints, t_quantile

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


def tasks_of_five(rng: np.random.Generator, tasks: int) -> tuple[Floats, Floats, Ints]:
    """Truth, verdicts and tasks: five trajectories a task, TPR .85, FPR .25, true rate .5."""
    easy = np.repeat(rng.random(tasks), 5)
    truth = (rng.random(5 * tasks) < easy).astype(float)
    verdict = (rng.random(5 * tasks) < np.where(truth > 0, 0.85, 0.25)).astype(float)
    return truth, verdict, np.repeat(np.arange(tasks), 5)


def test_the_formula_of_ppi_plus_plus_without_clusters() -> None:
    rng = np.random.default_rng(0)
    y, f = (rng.random((2, 80)) < 0.5).astype(float)
    g = (rng.random(1000) < 0.6).astype(float)
    found = powered_rate(y, f, g, power=0.7)
    variance = 0.49 * g.var(ddof=1) / 1000 + (y - 0.7 * f).var(ddof=1) / 80
    variance += PRIOR_CLUSTERS / 80**2
    from scipy.stats import t

    assert found.powered.estimate[0] == pytest.approx(0.7 * g.mean() + (y - 0.7 * f).mean())
    assert found.powered.width[0] == pytest.approx(2 * t.ppf(0.975, 79) * variance**0.5)


def test_tuned_power_has_the_least_width() -> None:
    y, f, _ = tasks_of_five(np.random.default_rng(1), 30)
    _, g, _ = tasks_of_five(np.random.default_rng(2), 200)
    tuned = powered_rate(y, f, g)
    widths = [powered_rate(y, f, g, power=p).powered.width[0] for p in np.linspace(0, 1, 21)]
    assert tuned.powered.width[0] <= min(widths) + 1e-12
    assert tuned.effective_labels > len(y)


@pytest.mark.slow
def test_coverage_where_the_judges_own_rate_fails() -> None:
    """400 worlds of 40 labelled and 400 judged tasks: 95 ± 3 %; the judge alone below 10 %."""
    rng = np.random.default_rng(3)
    powered = alone = 0
    widths = np.zeros(2)
    for _ in range(400):
        y, f, here = tasks_of_five(rng, 40)
        _, g, there = tasks_of_five(rng, 400)
        found = powered_rate(y, f, g, labelled_tasks=here, unlabelled_tasks=40 + there)
        powered += int(found.powered.covers(0.5)[0])
        alone += int(found.judge_only.covers(0.5)[0])
        widths += [found.powered.width[0], found.expert_only.width[0]]
    assert 0.92 <= powered / 400 <= 0.98
    assert alone / 400 < 0.1
    assert widths[0] < 0.85 * widths[1]


@pytest.mark.parametrize(
    ("labelled", "rate", "recall", "fpr"),
    [(20, 0.5, 1.0, 0.2), (50, 0.05, 0.8, 0.05)],
)
def test_coverage_where_labels_often_show_no_error_at_all(
    labelled: int, rate: float, recall: float, fpr: float
) -> None:
    """400 worlds in which up to an eighth of the samples of labels are all alike, or show no error
    of the judge: ≥ 93 %."""
    rng = np.random.default_rng(9)
    covered = 0
    for _ in range(400):
        truth = rng.random(500) < rate
        verdict = rng.random(500) < np.where(truth, recall, fpr)
        found = powered_rate(truth[:labelled], verdict[:labelled], verdict[labelled:])
        covered += int(found.powered.covers(rate)[0])
    assert covered / 400 >= 0.93


def test_labels_of_several_strata_speak_together_against_unseen_errors() -> None:
    strata = [powered_rate(np.ones(10), np.ones(10), np.ones(90))] * 5
    assert strata[0].effective_labels == 10
    found = stratified_rate(strata, np.full(5, 0.2))
    error = (UNSEEN_TASKS / 50**2) ** 0.5
    assert found.low[0] == pytest.approx(1 - t_quantile(0.95, 45) * error)


@pytest.mark.slow
def test_tasks_that_are_labelled_in_part_count_once() -> None:
    """400 worlds of 30 tasks of ten runs that end alike, two of each labelled: 95 ± 3 %. As if the
    others were of other tasks, the interval would be too narrow."""
    rng = np.random.default_rng(8)
    joint = apart = 0
    for _ in range(400):
        truth = np.repeat(rng.random(30) < 0.5, 10)
        verdict = truth ^ (rng.random(300) < 0.1)
        task = np.repeat(np.arange(30), 10)
        some = np.arange(300) % 10 < 2
        same, other = (
            powered_rate(
                truth[some],
                verdict[some],
                verdict[~some],
                labelled_tasks=task[some],
                unlabelled_tasks=task[~some] + shift,
            )
            for shift in (0, 30)
        )
        joint += int(same.powered.covers(0.5)[0])
        apart += int(other.powered.covers(0.5)[0])
    assert 0.92 <= joint / 400 <= 0.98
    assert apart / 400 < 0.9


def test_a_useless_judge_costs_nothing() -> None:
    rng = np.random.default_rng(4)
    y = (rng.random(100) < 0.5).astype(float)
    found = powered_rate(y, np.ones(100), np.ones(1000))
    assert found.power == 0
    assert found.powered.width[0] == pytest.approx(found.expert_only.width[0], rel=0.05)


def test_few_unlabelled_verdicts_that_agree_change_little() -> None:
    y, f = np.repeat([1.0, 0.0], 20), np.r_[np.ones(30), np.zeros(10)]
    found = powered_rate(y, f, [1, 1])
    assert found.power < 0.1
    assert found.powered.estimate[0] == pytest.approx(0.5, abs=0.02)
    assert found.effective_labels < len(y) + 2


@pytest.mark.slow
@pytest.mark.parametrize("apart", [True, False])
def test_coverage_where_all_but_a_few_are_labelled(apart: bool) -> None:
    """400 worlds of 30 labelled tasks, and two runs without a label, of their own or of these
    tasks: ≥ 93 %, and as near to the truth as the labels alone."""
    rng = np.random.default_rng(9)
    covered, errors = 0, np.zeros(2)
    for _ in range(400):
        y, f, task = tasks_of_five(rng, 32)
        some = task < 30 if apart else ~np.isin(np.arange(160), [1, 7])
        found = powered_rate(
            y[some], f[some], f[~some], labelled_tasks=task[some], unlabelled_tasks=task[~some]
        )
        covered += int(found.powered.covers(0.5)[0])
        errors += [(rate.estimate[0] - 0.5) ** 2 for rate in (found.powered, found.expert_only)]
    assert covered / 400 >= 0.93
    assert errors[0] < 1.1 * errors[1]


def test_no_unlabelled_verdicts_leaves_the_labels_alone() -> None:
    found = powered_rate([1, 0, 1], [1, 0, 1], [])
    assert found.power == 0
    assert found.powered.estimate[0] == pytest.approx(2 / 3)
    alone = powered_rate([1, 0, 1, 1], [1, 0, 0, 1], [1, 0, 1], power=0.0)
    assert alone.effective_labels == pytest.approx(4)


def test_one_labelled_task_is_undefined_and_explained() -> None:
    found = powered_rate([1, 0], [1, 1], [0, 1, 1], labelled_tasks=["t", "t"])
    assert np.isnan(found.powered.low[0])
    assert found.powered.notes == (TOO_FEW,)
    assert found.judge_only.notes[0] == BIASED
    two = powered_rate([1, 0], [1, 1], [0, 1, 1])
    assert (two.powered.low[0], two.powered.high[0], two.powered.notes) == (0, 1, ())
    assert np.isnan(powered_rate([], [], [1, 0]).expert_only.low[0])


def test_missing_and_mismatched_input_is_refused() -> None:
    with pytest.raises(ValueError, match="missing"):
        powered_rate([float("nan")], [1], [1])
    with pytest.raises(ValueError, match="2 labels for 1"):
        powered_rate([1, 0], [1], [1])
    with pytest.raises(ValueError, match="1 task names for 2"):
        powered_rate([1, 0], [1, 1], [1], labelled_tasks=["a"])


def test_strata_add_up_with_their_shares() -> None:
    y, f, _ = tasks_of_five(np.random.default_rng(5), 30)
    _, g, _ = tasks_of_five(np.random.default_rng(6), 100)
    one, other = powered_rate(y, f, g), powered_rate(1 - y, 1 - f, 1 - g)
    found = stratified_rate([one, other], [0.25, 0.75])
    expected = 0.25 * one.powered.estimate[0] + 0.75 * other.powered.estimate[0]
    assert found.estimate[0] == pytest.approx(expected)
    error = (0.0625 * one.standard_error**2 + 0.5625 * other.standard_error**2) ** 0.5
    df = error**4 / ((0.25**4 * one.standard_error**4 + 0.75**4 * other.standard_error**4) / 149)
    assert found.width[0] == pytest.approx(2 * float(t_quantile(0.95, df)) * error)
    with pytest.raises(ValueError, match="add up to 1"):
        stratified_rate([one, other], [1, 1])


def test_a_stratum_without_labels_leaves_the_whole_undefined() -> None:
    known = powered_rate([1, 0, 1], [1, 0, 1], [1, 0])
    found = stratified_rate([known, powered_rate([], [], [1, 0])], [0.5, 0.5])
    assert np.isnan(found.low[0])
    assert found.notes == (TOO_FEW,)
