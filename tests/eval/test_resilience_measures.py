"""The estimates of an experiment with faults against known truths and other programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from trajudge.eval.resilience.reading import (
    ExperimentArm,
    FaultExperiment,
    FaultPair,
    FaultRun,
    FaultSpan,
    MetFault,
    PairKey,
)
from trajudge.eval.resilience.results import (
    ArmMeasures,
    IntervalEstimate,
    arm_measures,
    difference,
    draw_retention,
    mean,
    measures,
    popup_factor,
    rate,
    results_of,
    retention,
)
from trajudge.eval.resilience.tables import all_tables, figure, number, p_value, screen

TASKS = [f"t{number}" for number in range(36)]
BUSY = FaultSpan("busy", "status", "random(1)")


def run(
    task: str, success: bool | None, *met: MetFault, agent: str = "a", **more: float
) -> FaultRun:
    figures = {"steps": 5, "tokens": 100, "dollars": 0.01, "seconds": 4.0} | more
    return FaultRun(
        key=PairKey(task, agent, 0),
        success=success,
        side_effect=False,
        steps=int(figures["steps"]),
        page_loads=3,
        model_calls=2,
        tokens=int(figures["tokens"]),
        dollars=figures["dollars"],
        seconds=figures["seconds"],
        latency={"model": 1.0, "site": 1.0, "injected": 0.0, "proxy": 0.0, "agent": 2.0},
        faults=met,
    )


def fired(recovered: int = 1, means: str = "reloaded", times: int = 1) -> MetFault:
    return MetFault("busy", times, times, recovered, (means,) * times)


def simulated(rng: np.random.Generator, harm: float, agents: int) -> tuple[np.ndarray, ...]:
    """Success without and with faults: tasks differ in how hard they are; a fault costs a success
    with probability ``harm``, and gives none."""
    ease = np.repeat(rng.beta(4, 2, len(TASKS)), agents)
    clean = rng.random(ease.shape) < ease
    faulted = (rng.random(ease.shape) < ease) & (rng.random(ease.shape) >= harm)
    return clean, faulted, np.repeat(TASKS, agents)


def measured(
    clean: np.ndarray, faulted: np.ndarray, tasks: Sequence[str] | np.ndarray, agents: int
) -> ArmMeasures:
    """Measure one arm of ``agents`` agents on the tasks."""
    names = np.resize([f"agent {number}" for number in range(agents)], len(tasks))
    arms = [
        ExperimentArm(
            name, [run(*one, agent=agent) for *one, agent in zip(tasks, ends, names, strict=True)]
        )
        for name, ends in (("clean", clean.tolist()), ("busy", faulted.tolist()))
    ]
    return measures(FaultExperiment(arms[0], arms[1:]))[0]


@pytest.mark.parametrize(("harm", "agents"), [(0.5, 1), (0.1, 1), (0.5, 4), (0.9, 4)])
def test_retention_covers_the_truth_at_its_level(harm: float, agents: int) -> None:
    """Truth: the ratio of the two means, 1 - harm."""
    rng, sims, inside = np.random.default_rng(7), 400, 0
    for _ in range(sims):
        clean, faulted, tasks = simulated(rng, harm, agents)
        _, low, high = retention(clean, faulted, tasks.tolist())
        inside += low is not None and high is not None and low <= 1 - harm <= high
    assert 0.925 <= inside / sims <= 0.985


def test_retention_has_no_limits_where_no_value_is_excluded() -> None:
    """One clean success of two tasks, or two of six: the rate without faults may be next to
    none."""
    lost_and_won = retention(np.array([True, False]), np.array([False, True]), ["a", "b"])
    assert lost_and_won == (1.0, None, None)
    clean = np.array([0, 0, 1, 0, 0, 1], bool)
    assert retention(clean, np.ones(6, bool), [*"abcdef"]) == (3.0, None, None)


def test_retention_misses_no_more_where_few_clean_runs_succeed() -> None:
    """1,000 experiments of ten tasks, 15 % of them successes without faults, more with: the
    truth lies outside of the limits, where there are any, in at most 5 %."""
    rng, truth, missed = np.random.default_rng(5), (0.15 * 0.9 + 0.85 * 0.5) / 0.15, 0
    for _ in range(1000):
        clean = rng.random(10) < 0.15
        faulted = np.where(clean, rng.random(10) < 0.9, rng.random(10) < 0.5)
        _, low, high = retention(clean, faulted, [*"abcdefghij"])
        missed += low is not None and high is not None and not low <= truth <= high
    assert missed <= 50


def test_retention_where_nothing_changes_has_a_width() -> None:
    clean = np.arange(36) < 27
    value, low, high = retention(clean, clean, TASKS)
    assert value == 1
    assert low is not None and high is not None
    assert 0.7 < low < 1 < high < 1.3
    assert retention(clean & False, clean, TASKS) == (None, None, None)


def test_mcnemar_is_the_exact_test_of_others() -> None:
    reference = pytest.importorskip(
        "statsmodels.stats.contingency_tables", reason="statsmodels is the reference here"
    )
    rng = np.random.default_rng(3)
    for _ in range(20):
        clean, faulted, _ = simulated(rng, 0.4, 1)
        table = [
            [int((clean & faulted).sum()), int((clean & ~faulted).sum())],
            [int((~clean & faulted).sum()), int((~clean & ~faulted).sum())],
        ]
        p_value = measured(clean, faulted, TASKS, 1).p_value
        assert p_value == pytest.approx(reference.mcnemar(table, exact=True).pvalue)


def test_a_fault_that_harms_half_the_tasks_and_helps_the_others_is_seldom_found() -> None:
    """What it does to one agent it does to all four: as if their pairs were independent, a fault
    without an effect on average would be found in a fifth of the experiments and more."""
    rng, found = np.random.default_rng(11), 0
    for _ in range(100):
        clean = np.repeat(rng.random(len(TASKS)) < 0.5, 4)
        faulted = np.where(np.repeat(rng.random(len(TASKS)) < 0.4, 4), ~clean, clean)
        found += measured(clean, faulted, np.repeat(TASKS, 4), 4).p_value <= 0.05
    assert found <= 10


def test_a_mean_covers_the_truth_with_runs_in_tasks() -> None:
    rng, sims, inside = np.random.default_rng(5), 400, 0
    tasks = np.repeat(TASKS[:12], 3).tolist()
    for _ in range(sims):
        values = np.repeat(rng.normal(2.0, 1.0, 12), 3) + rng.normal(0, 0.5, 36)
        _, low, high = mean(values.tolist(), tasks)
        inside += low is not None and high is not None and low <= 2.0 <= high
    assert 0.92 <= inside / sims <= 0.98


@pytest.mark.parametrize("values", [[1.0, 4.0], [1.0, 2.0, 6.0]])
def test_a_mean_of_a_run_a_task_has_students_interval(values: list[float]) -> None:
    from scipy import stats

    n = len(values)
    expected = stats.t.interval(0.95, n - 1, np.mean(values), stats.sem(values))
    assert mean(values, TASKS[:n]) == pytest.approx((np.mean(values), *expected))


def test_the_limits_of_a_retention_are_fiellers() -> None:
    """The ratios from which the mean of faulted - ratio * clean is as far as Student's quantile
    allows, here of sums by task of 4, 3, 2 and 1 clean successes of four runs."""
    from scipy import stats

    clean, faulted = (np.arange(4) < np.array(n)[:, None] for n in ([4, 3, 2, 4], [3, 3, 1, 2]))
    value, *limits = retention(clean.ravel(), faulted.ravel(), np.repeat(TASKS[:4], 4).tolist())
    assert value == pytest.approx(9 / 13)
    for limit in limits:
        assert limit is not None
        apart = faulted.sum(axis=1) - limit * clean.sum(axis=1)
        assert abs(stats.ttest_1samp(apart, 0).pvalue) == pytest.approx(0.05)


def test_a_difference_in_one_task_has_no_limits() -> None:
    first, second = np.array([True, True]), np.array([True, False])
    assert difference(first, second, ["a", "a"]) == (0.5, None, None)
    assert None not in difference(first, second, ["a", "b"])


def test_a_difference_that_every_task_shows_alike_has_a_width() -> None:
    """A fault that changes one success in fifty, of which twelve tasks mostly show none."""
    rng, sims, inside = np.random.default_rng(2), 400, 0
    for _ in range(sims):
        clean = rng.random(12) < 0.6
        faulted = clean & (rng.random(12) >= 0.02 / 0.6)
        _, low, high = difference(faulted, clean, TASKS[:12])
        inside += low is not None and high is not None and low <= -0.02 <= high
    assert inside / sims >= 0.95
    for share in (0.0, 0.5, 1.0):
        clean = np.arange(8) < 8 * share
        value, low, high = difference(clean, clean, TASKS[:8])
        assert value == 0
        assert low is not None and high is not None
        assert -0.6 < low < -0.1 and 0.1 < high < 0.6
    for share in (0.25, 0.75):  # of a rate that is not 1/2 the limits are no mirror image
        clean = np.arange(40) < 40 * share
        _, low, high = difference(clean, clean, [f"t{n}" for n in range(40)])
        assert low is not None and high is not None
        assert low < -0.09 and high > 0.09, "3.7 of 40 is what none of 40 may hide"


def test_a_mean_that_no_task_differs_in_has_no_interval() -> None:
    assert mean([3.0] * 4, ["t1", "t2", "t3", "t3"]) == (3.0, None, None)
    assert mean([0.1 + 0.2, 0.3], ["t1", "t2"])[1:] == (None, None)
    runs = [[run(task, True, *met, seconds=4.0) for task in "abc"] for met in ((), (fired(),))]
    experiment = FaultExperiment(
        ExperimentArm("clean", runs[0]), [ExperimentArm("busy", runs[1], (BUSY,))]
    )
    (extra,) = (
        table for table in all_tables(results_of(experiment)) if "recovering took" in table.title
    )
    assert extra.rows[0][3:9] == ("0", "0", "0", "0", "0", "0")


def test_an_arm_by_hand() -> None:
    """Four tasks: a success kept, one lost, one that was no success, one that met no fault."""
    clean = [run("a", True), run("b", True), run("c", False), run("d", True)]
    faulted = [
        run("a", True, fired(), steps=7, tokens=150, dollars=0.02, seconds=9.0),
        run("b", False, fired(0, "none")),
        run("c", False, fired(0, "left")),
        run("d", True, MetFault("busy", 1, 0, 0)),
    ]
    arm = ExperimentArm("busy", faulted, (BUSY,))
    experiment = FaultExperiment(ExperimentArm("clean", clean), [arm])
    (row,) = measures(experiment)
    assert (row.pairs, row.tasks, row.planned, row.fired, row.exposed) == (4, 4, 4, 3, 3)
    assert row.clean.estimate == pytest.approx(3 / 4)
    assert row.retention.estimate == pytest.approx(2 / 3)
    assert row.recovery.estimate == pytest.approx(1 / 3)
    assert row.kept.estimate == pytest.approx(1 / 2)
    assert (row.lost, row.won, row.p_value) == (1, 0, 1.0)
    assert row.recovered_pairs == 1
    extra = {name: found.estimate for name, found in row.extra.items()}
    assert extra["steps"] == 2
    assert extra["tokens"] == 50
    assert extra["dollars"] == pytest.approx(0.01)
    assert extra["seconds"] == 5


def test_open_outcomes_make_no_pair_and_unknown_tokens_no_zero() -> None:
    clean = [run("a", True), run("b", None)]
    unknown = run("a", True, fired())
    faulted = [FaultRun(**{**vars(unknown), "tokens": None}), run("b", True, fired())]
    arm = ExperimentArm("busy", faulted, (BUSY,))
    pairs = FaultExperiment(ExperimentArm("clean", clean), [arm]).pairs(arm)
    assert [pair.faulted.key.task for pair in pairs] == ["a"]
    assert arm_measures(arm, "", pairs).extra["tokens"] == (None, None, None)


def test_several_agents_are_measured_together_and_apart() -> None:
    runs = [run(task, True, fired(), agent=agent) for task in TASKS[:3] for agent in "ab"]
    arm = ExperimentArm("busy", runs, (BUSY,))
    clean = ExperimentArm("clean", [run(one.key.task, True, agent=one.key.agent) for one in runs])
    rows = measures(FaultExperiment(clean, [arm]))
    assert [(row.agent, row.pairs, row.p_value) for row in rows] == [
        ("", 6, 1.0),
        ("a", 3, 1.0),
        ("b", 3, 1.0),
    ]


def test_a_rate_without_trials_is_not_defined() -> None:
    assert rate([0.0, 0.0], ["a", "b"], [0, 0]) == (None, None, None)


@pytest.mark.parametrize(
    ("kept", "sentence"),
    [(18, "busy costs most: 50.0 ["), (36, "No fault lowers success: with busy 100.0 [")],
)
def test_the_first_sentence_says_whether_a_fault_costs_anything(kept: int, sentence: str) -> None:
    runs = [run(task, at < kept, fired()) for at, task in enumerate(TASKS)]
    clean = ExperimentArm("clean", [run(task, True) for task in TASKS])
    found = results_of(FaultExperiment(clean, [ExperimentArm("busy", runs, (BUSY,))]))
    assert screen(found, rest="", width=200).startswith(sentence)


def test_a_slow_machine_is_told() -> None:
    """Its timeouts look like what faults do."""
    slow = [replace(run(task, False, fired()), stalled=at < 3) for at, task in enumerate(TASKS)]
    arm = ExperimentArm("busy", slow, (BUSY,))
    clean = ExperimentArm("clean", [run(task, True) for task in TASKS])
    (note,) = results_of(FaultExperiment(clean, [arm])).notes
    assert note.startswith("busy: in 3 of 36 runs the browser waited in vain")


def test_accessibility_is_a_factor() -> None:
    """A popup that has a button is dismissed, one whose icon has no name is not."""
    arms = []
    for level, means in (("full", "dismissed"), ("none", "left")):
        span = FaultSpan(level, "popup", "at(1)", level)
        met = MetFault(level, 1, 1, int(means == "dismissed"), (means,))
        arms.append(ExperimentArm(level, [run(task, True, met) for task in TASKS], (span,)))
    clean = ExperimentArm("clean", [run(task, True) for task in TASKS])
    (row,) = popup_factor(FaultExperiment(clean, arms))
    assert row.fired == {"full": 36, "none": 36}
    assert row.dismissed == {"full": 36, "none": 0}
    assert row.difference.estimate == 1
    assert row.difference.low is not None and row.difference.low > 0.7
    assert not popup_factor(FaultExperiment(clean, arms[:1]))


def test_an_interval_is_drawn_from_its_lower_to_its_upper_limit() -> None:
    pyplot = pytest.importorskip("matplotlib.figure")
    faulted = [run(task, at % 3 > 0, fired()) for at, task in enumerate(TASKS)]
    pairs = [FaultPair(run(one.key.task, success=True), one) for one in faulted]
    row = arm_measures(ExperimentArm("busy", faulted, (BUSY,)), "a", pairs)
    axes = pyplot.Figure().add_subplot()
    assert draw_retention(axes, [row])
    ((_, _, (bars,)),) = axes.containers
    ((_, low), (_, high)) = bars.get_segments()[0]
    value, *limits = row.retention
    assert (low, high) == pytest.approx([100 * (limit or 0) for limit in limits])
    assert low < 100 * (value or 0) < high


def test_agents_are_drawn_beside_each_other() -> None:
    pyplot = pytest.importorskip("matplotlib.figure")
    found = [
        replace(row, agent=agent, arm=arm)
        for agent in ("", "a", "b")
        for arm in ("slow", "busy")
        for row in [measured(np.arange(36) < 27, np.arange(36) < 18, TASKS, 1)]
    ]
    axes = pyplot.Figure().add_subplot()
    assert draw_retention(axes, found)
    drawn = {bars.get_label(): bars.lines[0].get_xdata().tolist() for bars in axes.containers}
    assert drawn == {
        "all agents": pytest.approx([-0.12, 0.88]),
        "a": pytest.approx([0, 1]),
        "b": pytest.approx([0.12, 1.12]),
    }


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (number(1000.0), "1,000"),
        (number(999.4), "999"),
        (number(-1000.0), "-1,000"),
        (p_value(0.001), "0.001"),
        (p_value(0.00099), "<0.001"),
        (figure(IntervalEstimate(2.0, None, None)), "2"),
        (figure(IntervalEstimate(2.0, 1.5, 2.5)), "2 [1.5, 2.5]"),
        (figure(IntervalEstimate(2.0, 1.5, 2.5), limits=False), "2"),
    ],
)
def test_figures_as_they_are_shown(shown: str, expected: str) -> None:
    assert shown == expected


def test_the_fault_that_costs_most_is_named() -> None:
    clean = ExperimentArm("clean", [run(task, True) for task in TASKS])
    arms = [
        ExperimentArm(name, [run(task, at < kept, fired()) for at, task in enumerate(TASKS)])
        for name, kept in (("slow", 30), ("busy", 18))
    ]
    assert screen(results_of(FaultExperiment(clean, arms)), rest="").startswith("busy costs most")
