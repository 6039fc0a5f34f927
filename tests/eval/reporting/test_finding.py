"""The sentences above every table: what was judged, and the one figure to take away."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest

from tests.eval.cases import key, label, said
from tests.eval.reporting.failing_reports import mostly_failed
from trajudge.eval.reporting.sentences import BETTER, NO_BETTER, UNCLEAR, finding, warnings_of
from trajudge.eval.reporting.summary import summary
from trajudge.eval.scoring.compute import score
from trajudge.eval.scoring.records import EqualRecall, ScoreReport
from trajudge.judges.model import Judgment
from trajudge.trajectories.model import TrajectoryKey


def test_judges_of_different_numbers_of_trajectories_are_headed_by_both() -> None:
    labels = {key(n): label(n, n % 2 == 0) for n in range(10)}
    judgments = [said(n, True, judge="a") for n in range(10)]
    judgments += [said(n, True, judge="b") for n in range(7)]
    lines = summary(score(judgments, labels, rewards={}), width=100).splitlines()
    assert lines[0] == "2 judges on 7 to 10 trajectories of WebArena"


def test_benchmarks_that_a_run_did_not_come_to_are_not_counted() -> None:
    """A run that was stopped after 10 of 30 read "on 10 trajectories of 3 benchmarks"."""
    names = ("webarena", "assistantbench", "workarena")
    labels = {
        key(n, name): label(n, n % 2 == 0, benchmark=name) for name in names for n in range(10)
    }
    of_one = [said(n, True) for n in range(10)]
    rewards: dict[TrajectoryKey, float | None] = dict.fromkeys(labels, 1.0)
    for more, named in (
        ([], "10 trajectories of WebArena"),
        (names[1:2], "20 trajectories of 2 b"),
    ):
        judgments = of_one + [said(n, True, benchmark=name) for name in more for n in range(10)]
        scored = score(judgments, labels, rewards=rewards)
        assert summary(scored, width=100).startswith(f"judge on {named}")


@pytest.mark.parametrize(
    ("accepted", "sentence"),
    [
        (range(0), "Of 12 runs, 6 of them right, it accepts none"),
        (
            range(2, 3),
            "Of the runs that it accepts 100.0 % (1 of 1; no interval: it counts runs of one task "
            "only) are right; of the right ones it accepts 16.7 % (1 of 6)",
        ),
        (
            range(8),
            "Of the runs that it accepts 50.0 % (4 of 8; 95 % interval 15.7 to 84.3) are right; "
            "of the right ones it accepts 66.7 % (4 of 6)",
        ),
    ],
)
def test_the_finding_counts_the_accepted_and_the_right_ones(accepted: range, sentence: str) -> None:
    labels = {key(n): label(n, n % 2 == 0) for n in range(12)}
    scored = score([said(n, n in accepted) for n in range(12)], labels, rewards={})
    lines = summary(scored, width=1000).splitlines()
    assert lines[1] == sentence
    assert lines[2] == "Always yes: 50.0 % (6 of 12) are right, the base rate"


def test_labels_drawn_with_unequal_probabilities_are_not_counted() -> None:
    """A weighted rate is no share of counts, and the base rate is not that of the labels."""
    labels = {
        key(n): label(n, n % 2 == 0, inclusion_probability=0.2 if n < 6 else 0.8) for n in range(12)
    }
    scored = score([said(n, n % 3 > 0) for n in range(12)], labels, rewards={})
    line, following = summary(scored, width=1000).splitlines()[1:3]
    assert re.fullmatch(
        r"Of the runs that it accepts 50\.0 % \(95 % interval [\d.]+ to [\d.]+\) are right; "
        r"of the right ones it accepts [\d.]+ %",
        line,
    )
    assert not following.startswith("Always yes")


@pytest.mark.parametrize(("verdict", "word"), [(True, "yes"), (False, "no")])
def test_a_judge_that_always_says_the_same_is_named(verdict: bool, word: str) -> None:
    labels = {key(n): label(n, n % 2 == 0) for n in range(4)}
    same = [said(n, verdict) for n in range(4)]
    sentence = f"The same verdict on every run, {word}: judge"
    assert sentence in finding(score(same, labels, rewards={}), "success")
    assert sentence in summary(score(same, {}, rewards={}), width=100).splitlines()
    once = [*same[:3], said(3, not verdict)]
    assert not any(
        "same verdict" in line for line in finding(score(once, labels, rewards={}), "success")
    )
    other = [said(n, n < 2, judge="other") for n in range(4)]
    assert sentence in finding(score([*same, *other], labels, rewards={}), "success")


def equal_recall(judge: str, baseline: str, difference: float, low: float | None) -> EqualRecall:
    return EqualRecall(
        judge=judge, baseline=baseline, n=9, recall=0.5, precision=0.6,
        baseline_precision=0.6 - difference, difference=difference, low=low, high=0.9,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("difference", "low", "head"),
    [
        (-0.1, -0.3, NO_BETTER),
        (0.0, -0.3, NO_BETTER),
        (0.1, -0.3, UNCLEAR),
        (0.1, 0.0, UNCLEAR),
        (0.1, None, UNCLEAR),
        (0.1, 0.01, BETTER),
    ],
)
def test_a_judge_is_held_against_the_baseline_that_is_hardest_to_beat(
    difference: float, low: float | None, head: str
) -> None:
    pairs = (
        equal_recall("judge", "claim-of-success", 0.3, 0.2),
        equal_recall("judge", "telemetry", difference, low),
    )
    labels = {key(n): label(n, n % 2 == 0) for n in range(9)}
    scored = score([said(n, n < 6) for n in range(9)], labels, rewards={})
    lines = finding(scored.model_copy(update={"equal_recall": pairs}), "success")
    theirs = 60 - 100 * difference
    assert (
        lines[-1] == f"{head} (precision at equal recall): judge 60.0 %, telemetry {theirs:.1f} %"
    )


def test_labels_that_all_leave_success_open_are_not_said_to_be_missing() -> None:
    judgments = [said(n, True) for n in range(3)]
    for count, sentence in (
        (1, "The expert label of these trajectories leaves success open: none is scored"),
        (3, "All 3 expert labels of these trajectories leave success open: none is scored"),
    ):
        labels = {key(n): label(n, None) for n in range(count)}
        assert sentence in summary(score(judgments, labels, rewards={}), width=100)


def test_a_precision_that_is_not_defined_has_no_place_in_the_ranking() -> None:
    lines = summary(mostly_failed(2, 2), width=1000).splitlines()
    assert lines[1] == "Every judgment of a-00, a-01 failed: no rate is known"
    assert lines[2].startswith("First of 5 by precision is z-0: of the runs that it accepts 50.0 %")
    assert lines[4:7] == [
        "Precision, the highest first: z-0 = z-1; undefined: a-00, a-01, never",
        "No difference in precision is significant (Holm, α = .05)",
        "The same verdict on every run, no: never",
    ]
    third = summary(mostly_failed(2, 3), width=1000).splitlines()[4]
    assert third == "Precision, the highest first: z-0 = z-1 = z-2; undefined: a-00, a-01, never"
    assert "Precision: z-0; undefined: never" in summary(mostly_failed(0, 1)).splitlines()
    labels = {key(n): label(n, n % 2 == 0) for n in range(12)}
    silent = [said(n, False, judge=judge) for judge in ("never", "nor I") for n in range(12)]
    found = summary(score(silent, labels, rewards={})).splitlines()
    assert "Precision: undefined: never, nor I" in found


def errs(judge: str, wrong: int, *, tasks: int = 120) -> list[Judgment]:
    """A judge that errs on the first ``wrong`` of 120 tasks, half of them successes, and accepts
    the ones behind them, all successes."""
    return [said(n, n >= 120 or (n % 2 == 0) != (n < wrong), judge=judge) for n in range(tasks)]


def finding_of(*judges: list[Judgment]) -> list[str]:
    labels = {key(n): label(n, n >= 120 or n % 2 == 0) for n in range(720)}
    said_all = [judgment for judge in judges for judgment in judge]
    return summary(score(said_all, labels, rewards={}), width=1000).splitlines()[3:5]


def test_the_order_by_precision_is_not_taken_back_by_the_ties_behind_it() -> None:
    """It read "good > as good; ties: good = as good"."""
    assert finding_of(errs("good", 4), errs("as good", 6), errs("bad", 60)) == [
        "Precision: good > as good > bad",
        "Not significantly different (Holm, α = .05): good and as good",
    ]
    assert finding_of(errs("good", 4), errs("bad", 60)) == [
        "Precision: good > bad",
        "Every difference in precision is significant (Holm, α = .05)",
    ]


def test_a_difference_against_the_order_is_told_with_it() -> None:
    """The order is by what each was scored on, differences are on what both judged."""
    assert finding_of(errs("with easy ones", 30, tasks=720), errs("better", 4)) == [
        "Precision: with easy ones > better",
        "Every difference in precision is significant (Holm, α = .05); "
        "but on the trajectories that both judged, significantly: better > with easy ones",
    ]


TASKS = range(12)


def with_rewards(rewards: Mapping[int, float | None]) -> ScoreReport:
    labels = {key(task): label(task, task % 2 == 0) for task in TASKS}
    judgments = [said(task, task % 3 > 0) for task in TASKS]
    by_key = {key(task): reward for task, reward in rewards.items()}
    return score(judgments, labels, rewards=by_key)


def test_a_difference_on_fewer_trajectories_names_them() -> None:
    rewards = {task: float(task % 2 == 0 or task > 5) for task in TASKS}
    assert " points, " in finding(with_rewards(rewards), "success")[2]
    of_some = with_rewards({task: rewards[task] for task in range(8)})
    assert " points on the 8 with both, " in finding(of_some, "success")[2]


def test_rewards_on_another_scale_are_a_warning() -> None:
    (line,) = warnings_of(with_rewards({0: 40.0, 1: -1.0, 2: 1.0, 3: None}))[-2:-1]
    assert line == (
        "warning: rule-based: 2 of 3 official rewards not between 0 and 1, such as 40: above 0.5 "
        "counts as success, therefore scale them in the data"
    )
    between = warnings_of(with_rewards({0: 0.25, 1: 0.0, 2: 1.0}))
    assert not any("official rewards" in text for text in between)
