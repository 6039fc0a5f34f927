"""The first screen: its finding, its table, its warnings, at most 40 lines of 100 columns."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

from tests import screens
from tests.commands import score as score_main
from tests.eval.cases import call, failed, key, label, said
from tests.eval.judge_command import run
from tests.samples import narrow
from tests.screens import LINES
from trajudge.eval.reporting.sentences import (
    BETTER,
    NO_BETTER,
    UNCLEAR,
    constant_sentences,
    finding,
    notes,
    warnings_of,
)
from trajudge.eval.reporting.summary import summary
from trajudge.eval.reporting.tables import paper_table, plain
from trajudge.eval.scoring.compute import score
from trajudge.eval.scoring.records import OVERALL, EqualRecall, ScoreReport, UnattributedCost
from trajudge.judges.model import Judgment, Status, Usage
from trajudge.trajectories.model import TrajectoryKey


@cache
def mostly_failed(failing: int, working: int) -> ScoreReport:
    """A grid with judges of which none answered, by name before those that did."""
    labels = {key(n): label(n, n % 2 == 0) for n in range(12)}
    rewards: dict[TrajectoryKey, float | None] = dict.fromkeys(labels, 1.0)
    judgments = [
        *(failed(n, Status.REFUSED, judge=f"a-{j:02}") for j in range(failing) for n in range(12)),
        *(said(n, n % 3 != j, judge=f"z-{j}") for j in range(working) for n in range(12)),
        *(said(n, False, judge="never") for n in range(12)),
    ]
    return score(judgments, labels, rewards=rewards)


UNREADABLE = '{"text": "I cannot say."}\n'
BENCHMARKS = ("webarena", "visualwebarena", "assistantbench", "workarena")


def one_screen(text: str, width: int) -> list[str]:
    """One screen, whose line of progress may be wider where no terminal tells a width."""
    lines = text.splitlines()
    assert len(lines) <= LINES, text
    kept = (line for line in lines if not re.search(r": judged \d+/\d+ ", line))
    return screens.one_screen("\n".join(kept), width)


@pytest.mark.slow
@pytest.mark.usefixtures("own_folder")
def test_the_sample_takes_one_screen(width: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--judge", "heuristic") == 0
    shown = capsys.readouterr()
    lines = one_screen(shown.out + shown.err, width)
    assert lines[0] == "heuristic on 130 trajectories of 7 benchmarks"
    overall = next(n for n, line in enumerate(lines) if line.startswith("Overall"))
    assert re.search(
        r"heuristic +\d+\.\d \[\d+\.\d, \d+\.\d\] +\d+\.\d +\d+\.\d +130$", lines[overall]
    )
    assert lines[overall + 1].split()[0] == "rule-based"
    few = "and 7 benchmarks with fewer than ten successes: too few to say (--full)"
    assert few in lines
    assert any(line.startswith("Coverage: 130 of 130 judged (ok 130)") for line in lines)
    assert any(line.startswith("Cost: $0") and "wall time" in line for line in lines)
    assert "the run is in run" in lines
    assert run("--judge", "heuristic", "--full") == 0
    assert len(capsys.readouterr().out.splitlines()) > 60


@pytest.mark.usefixtures("own_folder")
def test_a_judge_that_fails_everything_says_so_first(
    width: int, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("replies.jsonl").write_text(UNREADABLE)
    words = ["--model", "m", "--adapter", "scripted", "--script", "replies.jsonl", "--yes"]
    words += ["--limit", "20"]
    assert run(*words) == 1
    shown = capsys.readouterr()
    lines = one_screen(shown.out + shown.err, width)
    assert lines[1] == "Every judgment of simplified-axtree:m failed: no rate is known"
    assert not any(re.search(r"simplified-axtree:m .*\d\.\d", line) for line in lines[2:])
    assert any("unparsable 20" in line for line in lines)
    assert any(line.startswith("warning: 20 unparsable, the first because") for line in lines)


@cache
def grid(judges: int, benchmarks: tuple[str, ...] = BENCHMARKS) -> ScoreReport:
    labels = {key(n, b): label(n, n % 2 == 0, benchmark=b) for b in benchmarks for n in range(12)}
    rewards: dict[TrajectoryKey, float | None] = dict.fromkeys(labels, 1.0)
    judgments: list[Judgment] = [
        said(n, n % 3 == j % 3, judge=f"judge-{j}-of-many", benchmark=b, calls=(call(),))
        for j in range(judges)
        for b in benchmarks
        for n in range(12)
    ]
    return score(judgments, labels, rewards=rewards)


def test_the_judge_of_the_fewest_verdicts_is_named_where_judges_differ() -> None:
    assert "fewest" not in summary(grid(3))
    labels = {key(n): label(n, n % 2 == 0) for n in range(12)}
    uneven = [*(said(n, True) for n in range(12)), *(said(n, True, judge="b") for n in range(9))]
    assert "fewest by b: 9" in summary(score(uneven, labels, rewards={}))


@pytest.mark.parametrize("judges", [1, 3, 8, 45])
def test_any_number_of_judges_and_benchmarks_takes_one_screen(judges: int, width: int) -> None:
    lines = one_screen(summary(grid(judges), seconds=1.0, also=2, width=width), width)
    assert overall_rows(lines) == min(judges + 1, 10)
    if judges == 45:
        assert any("more: --full" in line for line in lines)
    assert "and 4 benchmarks with fewer than ten successes: too few to say (--full)" in lines
    many = grid(1, tuple(f"benchmark-{n:02}" for n in range(40)))
    lines = one_screen(summary(many, width=width), width)
    assert "and 40 benchmarks with fewer than ten successes: too few to say (--full)" in lines
    assert lines[-1] == "All tables: --full"


def overall_rows(lines: list[str]) -> int:
    """The rows of the table, below its head."""
    head = next(n for n, line in enumerate(lines) if "precision [95 %]" in line)
    rows = lines[head + 1 : lines.index("", head)]
    return sum(not line.strip().startswith("and ") for line in rows)


@cache
def benchmarks_of(sizes: tuple[int, ...], errors: int = 3) -> ScoreReport:
    """One judge on benchmarks of so many tasks, half of them successes; it errs on every
    ``errors``-th."""
    places = [(n, f"benchmark-{at:02}") for at, size in enumerate(sizes) for n in range(size)]
    labels = {key(n, b): label(n, n % 2 == 0, benchmark=b) for n, b in places}
    judgments = [said(n, (n % 2 == 0) == (n % errors > 0), benchmark=b) for n, b in places]
    return score(judgments, labels, rewards=dict.fromkeys(labels, 1.0))


def test_benchmarks_with_too_few_successes_are_counted_not_shown() -> None:
    lines = summary(benchmarks_of((60, 6, 8)), width=100).splitlines()
    assert any(line.startswith("benchmark-00 ") for line in lines)
    assert not any(line.startswith(("benchmark-01", "benchmark-02")) for line in lines)
    assert "and 2 benchmarks with fewer than ten successes: too few to say (--full)" in lines


def test_a_row_whose_interval_is_wider_than_sixty_points_is_not_shown() -> None:
    """What is left is as wide as the file says, and what is left out is wider."""
    scored = benchmarks_of(tuple(range(6, 60, 6)))
    lines = summary(scored, width=100).splitlines()
    wide = {
        s.benchmark
        for s in scored.scores
        if not s.baseline
        and (
            "precision" not in s.intervals
            or s.intervals["precision"][1] - s.intervals["precision"][0] > 0.6
        )
    }
    assert wide and OVERALL not in wide
    assert not any(line.startswith(name) for name in wide for line in lines)
    few = {s.benchmark for s in scored.scores if s.positives < 10}
    why = "fewer than ten successes" if wide <= few else "intervals wider than 60 points"
    assert f"and {len(wide)} benchmarks with {why}: too few to say (--full)" in lines


def test_many_benchmarks_with_figures_fill_ten_rows() -> None:
    lines = summary(benchmarks_of((60,) * 9), width=100).splitlines()
    assert overall_rows(lines) == 10
    assert "and 5 more benchmarks: --full" in lines


def test_the_baseline_of_the_same_trajectories_stands_once() -> None:
    lines = summary(grid(3, ("webarena",)), width=100).splitlines()
    assert sum(line.strip().startswith("rule-based") for line in lines) == 1


def answered_differently() -> ScoreReport:
    """Two judges, one of which failed on a third of the runs, which the policy leaves out."""
    labels = {key(n): label(n, n % 2 == 0) for n in range(12)}
    judgments = [said(n, True, judge="a") for n in range(12)]
    judgments += [said(n, True, judge="b") for n in range(8)]
    judgments += [failed(n, Status.REFUSED, judge="b") for n in range(8, 12)]
    rewards: dict[TrajectoryKey, float | None] = {key(n): float(n < 3) for n in range(12)}
    return score(judgments, labels, rewards=rewards, missing="exclude")


def test_baselines_of_different_trajectories_say_beside_whom_they_were_scored() -> None:
    scored = answered_differently()
    rows = [line.split() for line in summary(scored, width=100).splitlines()]
    counted = {tuple(row[:3]): row[-1] for row in rows if row[:1] == ["rule-based"]}
    assert counted[("rule-based", "beside", "a")] == "12"
    assert counted[("rule-based", "beside", "b")] == "8"
    for number in (1, 7):
        names = [cell for row in paper_table(number, scored, {}).rows for cell in row[:2]]
        named = [name for name in names if name.startswith("rule-based")]
        assert named == ["rule-based beside a", "rule-based beside b"]


def test_no_part_of_the_cost_is_cut_on_a_narrow_screen() -> None:
    judgments = [said(1, True, calls=(call(usage=Usage(input=990_488_000, output=34_268_000)),))]
    unattributed = UnattributedCost(dollars=0.2939)
    scores = score(judgments, {}, rewards={}).model_copy(update={"unattributed_cost": unattributed})
    shown = summary(scores, seconds=1234.5, width=60)
    words = " ".join(shown.split())
    assert "34,268,000 output tokens; $0.2939 more for failed attempts" in words
    assert "wall time of this session: 1234.5 s" in words


def test_without_labels_there_are_verdicts_and_coverage_and_no_table() -> None:
    judgments = [said(1, True), said(3, False), failed(2, Status.REFUSED)]
    lines = summary(score(judgments, {}, rewards={}), width=100).splitlines()
    assert lines[1] == "Verdicts of judge: success 1 of 2"
    assert "No expert labels" in lines[2]
    assert any("ok 2, refused 1" in line for line in lines)
    assert not any("precision" in line for line in lines)
    assert summary(score([], {}, rewards={}), width=100)


def test_a_single_one_is_no_plural() -> None:
    labels = {key(n): label(n, True if n else None) for n in range(30)}
    judgments = [said(n, True, calls=(call(),) if not n else ()) for n in range(30)]
    text = summary(score(judgments, labels, rewards=dict.fromkeys(labels)), width=100)
    assert "; 1 unsure success label\n" in text
    assert ", 1 call, " in text


@pytest.mark.slow
@pytest.mark.skipif(not os.environ.get("TRAJUDGE_REAL_DATA"), reason="TRAJUDGE_REAL_DATA")
@narrow
def test_the_published_judgments_take_one_screen(
    width: int, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Path(os.environ["TRAJUDGE_REAL_DATA"]) / "agentrewardbench" / "judgments"
    assert score_main(["--judgments", str(folder)]) == 0
    lines = one_screen(capsys.readouterr().out, width)
    ordered = lines.index("Precision, the highest first: webjudge-gpt-4o, webjudge-7b")
    assert lines[ordered + 1] == "No difference in precision is significant (Holm, α = .05)"
    assert any("VisualWebArena" in line for line in lines)


def test_judges_that_failed_stand_below_those_with_figures(width: int) -> None:
    """However many there are, they hide neither a judge that worked nor the rule-based row."""
    lines = one_screen(summary(mostly_failed(45, 2), width=width), width)
    begin = next(n for n, line in enumerate(lines) if "precision [95 %]" in line)
    shown = " ".join(lines[begin + 1 : begin + 4])
    assert re.findall(r"z-\d", shown) == ["z-0", "z-1"]
    assert "rule-based" in lines[begin + 3]
    assert any(re.search(r"and \d+ more: --full", line) for line in lines)


def test_the_rule_based_row_stays_where_judges_are_left_out(width: int) -> None:
    lines = one_screen(summary(grid(45), seconds=1.0, also=2, width=width), width)
    more = next(n for n, line in enumerate(lines) if "more: --full" in line)
    assert "rule-based" in lines[more - 1]


def long_names(count: int) -> ScoreReport:
    """Judges with names as models have them, of whom two are better than all others."""
    names = [f"simplified-axtree:openrouter/maker-{n:02}/a-model-of-{n}b" for n in range(count)]
    labels = {key(n): label(n, n % 2 == 0) for n in range(120)}
    judgments = [
        said(n, (n % 2 == 0) != (n < (4 if at < 2 else 30 + at)), judge=name)
        for at, name in enumerate(names)
        for n in range(120)
    ]
    return score(judgments, labels, rewards={})


@pytest.mark.parametrize("count", [7, 30])
def test_no_sentence_of_many_judges_is_cut(count: int, width: int) -> None:
    lines = one_screen(summary(long_names(count), width=width), width)
    begin = next(at for at, line in enumerate(lines) if line.startswith("Precision: "))
    order, _, differ = " ".join(map(str.strip, lines[begin : begin + 6])).partition(" Not sig")
    name = r"simplified-axtree:openrouter/maker-\d\d/a-model-of-\d+b"
    assert re.fullmatch(rf"Precision: {name}( [=>] {name})+ and \d+ more", order)
    assert re.search(rf": {name} and {name}; and \d+ more groups?( |$)", differ), differ


def test_a_warning_of_many_judges_names_the_first_and_counts_the_others(width: int) -> None:
    scored = long_names(7)
    equal = [
        EqualRecall(
            judge=one.judge, baseline="tfidf-answer", n=120, recall=0.7, precision=0.7,
            baseline_precision=0.8, difference=-0.1, low=-0.2, high=-0.05,
        )
        for one in scored.coverage
        if one.benchmark == OVERALL
    ]  # fmt: skip
    beaten = scored.model_copy(update={"equal_recall": tuple(equal)})
    text = screens.on_one_line(summary(beaten, width=width))
    assert re.search(
        r"\(precision at equal recall\): \S+ 70\.0 %, tfidf-answer 80\.0 %(;| and) ", text
    )
    assert re.search(r"tfidf-answer 80\.0 % and \d more", text)


def test_judges_of_different_numbers_of_trajectories_are_headed_by_both() -> None:
    labels = {key(n): label(n, n % 2 == 0) for n in range(10)}
    judgments = [said(n, True, judge="a") for n in range(10)]
    judgments += [said(n, True, judge="b") for n in range(7)]
    lines = summary(score(judgments, labels, rewards={}), width=100).splitlines()
    assert lines[0] == "2 judges on 7 to 10 trajectories of WebArena"


def test_benchmarks_that_a_run_did_not_come_to_are_not_counted() -> None:
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
    assert not constant_sentences(score(same[:1], labels, rewards={}), "success", None)
    assert constant_sentences(score(same[:2], labels, rewards={}), "success", None) == [sentence]
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


def errs_on(judge: str, wrong: int, *, tasks: int = 120) -> list[Judgment]:
    """A judge that errs on the first ``wrong`` of 120 tasks, half of them successes, and accepts
    the ones behind them, all successes."""
    return [said(n, n >= 120 or (n % 2 == 0) != (n < wrong), judge=judge) for n in range(tasks)]


def finding_of(*judges: list[Judgment]) -> list[str]:
    labels = {key(n): label(n, n >= 120 or n % 2 == 0) for n in range(720)}
    said_all = [judgment for judge in judges for judgment in judge]
    return summary(score(said_all, labels, rewards={}), width=1000).splitlines()[3:5]


def test_the_order_by_precision_is_not_taken_back_by_the_ties_behind_it() -> None:
    assert finding_of(errs_on("good", 4), errs_on("as good", 6), errs_on("bad", 60)) == [
        "Precision: good > as good > bad",
        "Not significantly different (Holm, α = .05): good and as good",
    ]
    assert finding_of(errs_on("good", 4), errs_on("bad", 60)) == [
        "Precision: good > bad",
        "Every difference in precision is significant (Holm, α = .05)",
    ]


def test_a_difference_against_the_order_is_told_with_it() -> None:
    """The order is by what each was scored on, differences are on what both judged."""
    assert finding_of(errs_on("with easy ones", 30, tasks=720), errs_on("better", 4)) == [
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


def test_failed_judgments_come_first_among_the_warnings() -> None:
    labels = {key(n): label(n, n % 2 == 0) for n in range(10)}
    judgments = [*(said(n, True) for n in range(9)), failed(9, Status.REFUSED)]
    lines = summary(score(judgments, labels, rewards={}), width=100).splitlines()
    warnings = [line for line in lines if line.startswith("warning: ")]
    assert warnings[0] == "warning: 1 failed judgment of judge counted as not accepted"


def test_what_judges_left_open_is_told_label_by_label_where_it_differs() -> None:
    labels = {key(n): label(n, n % 2 == 0, side_effect=None if n else True) for n in range(10)}
    judgments = [*(said(n, True, side_effect=False) for n in range(2, 10))]
    judgments += [failed(n, Status.REFUSED) for n in (0, 1)]
    text = " ".join(summary(score(judgments, labels, rewards={}), width=100).split())
    assert (
        "warning: 2 failed judgments (success) and 1 failed judgment (side effect) of judge "
        "counted as not accepted"
    ) in text


def test_a_label_that_the_labels_do_not_hold_is_not_spoken_of() -> None:
    labels = {key(n): label(n, n % 2 == 0) for n in range(40)}
    judgments = [said(n, True, side_effect=False, repetition=False) for n in range(40)]
    scored = score(judgments, labels, rewards={})
    for text in (summary(scored, width=100), "\n".join(notes(scored)), plain(scored)):
        assert not re.search("side effect|repetition|unsure", text.lower())
    half = labels | {key(n): label(n, True, side_effect=n == 0) for n in range(20)}
    assert warnings_of(score(judgments, half, rewards={}))[0] == (
        "warning: few positive labels (side effect 1): estimates are unreliable"
    )


def test_what_failed_of_many_judges_is_one_warning() -> None:
    labels = {key(n): label(n, n % 2 == 0) for n in range(10)}
    judgments = [
        one
        for judge in "abcdef"
        for one in (
            *(said(n, True, judge=judge) for n in range(9)),
            failed(9, Status.REFUSED, judge=judge),
        )
    ]
    text = " ".join(summary(score(judgments, labels, rewards={}), width=100).split())
    assert text.count("failed judgment") == 4
    assert "1 failed judgment of d, of 2 more judges counted as not accepted" in text


@pytest.mark.parametrize(("failing", "kind"), [(0, "2 undecided"), (1, "3 failed or undecided")])
def test_a_judge_that_leaves_the_label_open_did_not_fail(failing: int, kind: str) -> None:
    labels = {key(n): label(n, n % 2 == 0) for n in range(12)}
    judgments = [said(n, True) for n in range(9)] + [said(n, None) for n in (9, 10)]
    judgments += [failed(11, Status.REFUSED)] * failing
    lines = summary(score(judgments, labels, rewards={}), width=100).splitlines()
    warnings = [line for line in lines if line.startswith("warning: ")]
    assert warnings[0] == f"warning: {kind} judgments of judge counted as not accepted"


def test_what_is_open_in_one_label_alone_is_not_said_of_all() -> None:
    labels = {key(n): label(n, n % 2 == 0, side_effect=False) for n in range(12)}
    judgments = [said(n, True, side_effect=None if n < 2 else False) for n in range(12)]
    warnings = warnings_of(score(judgments, labels, rewards={}))
    assert (
        "warning: 2 undecided judgments (side effect) of judge counted as not accepted" in warnings
    )


def test_a_precision_without_an_interval_is_named_with_whose_it_is() -> None:
    labels = {key(n): label(n, n % 2 == 0) for n in range(12)}
    choosy = [said(n, n == 2, judge="choosy") for n in range(12)]
    wide = [said(n, n < 8, judge="wide") for n in range(12)]
    line = "warning: precision without an interval: choosy: it counts runs of one task only"
    assert line in warnings_of(score([*choosy, *wide], labels, rewards={}))
    assert not any("wide" in one for one in warnings_of(score(wide, labels, rewards={})))


@pytest.mark.parametrize(("positives", "is_few"), [(19, True), (20, False)])
def test_fewer_than_twenty_positive_labels_are_few(positives: int, is_few: bool) -> None:
    labels = {key(n): label(n, n < positives) for n in range(40)}
    lines = warnings_of(score([said(n, n < 30) for n in range(40)], labels, rewards={}))
    few = "warning: few positive labels (success 19): estimates are unreliable"
    assert (few in lines) == is_few


def test_warnings_of_one_kind_are_one_line() -> None:
    labels = {
        key(n, b): label(n, n % 2 == 0, side_effect=n == 1, repetition=n > 3, benchmark=b)
        for b in ("webarena", "workarena")
        for n in range(6)
    }
    judgments = [
        said(n, n < 4, side_effect=n < 2, repetition=n > 2, benchmark=b)
        for b in ("webarena", "workarena")
        for n in range(6)
    ]
    lines = warnings_of(score(judgments, labels, rewards={}))
    assert lines[0] == (
        "warning: few positive labels (success 6, side effect 2, repetition 4): estimates are "
        "unreliable"
    )
    assert sum("few positive" in line for line in lines) == 1
