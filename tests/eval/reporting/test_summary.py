"""The first screen: at most 40 lines of 100 columns, whatever was judged."""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path

import pytest

from tests import screens
from tests.commands import score as score_main
from tests.eval.cases import call, failed, key, label, said
from tests.eval.judge_command import run
from tests.eval.reporting.failing_reports import mostly_failed
from tests.samples import narrow
from tests.screens import LINES
from trajudge.eval.judge import main as judge_main
from trajudge.eval.reporting.summary import summary
from trajudge.eval.reporting.tables import paper_table
from trajudge.eval.scoring.compute import score
from trajudge.eval.scoring.records import OVERALL, EqualRecall, ScoreReport, UnattributedCost
from trajudge.judges.model import Judgment, Status, Usage
from trajudge.trajectories.model import TrajectoryKey

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
    assert run(*words) == 1
    shown = capsys.readouterr()
    lines = one_screen(shown.out + shown.err, width)
    assert lines[1] == "Every judgment of simplified-axtree:m failed: no rate is known"
    assert not any(re.search(r"simplified-axtree:m .*\d\.\d", line) for line in lines[2:])
    assert any("unparsable 130" in line for line in lines)
    assert any(line.startswith("warning: 130 unparsable, the first because") for line in lines)


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
    """Two rows of the same name had other figures, and nothing told them apart."""
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


@pytest.mark.slow
@pytest.mark.real_data
@narrow
@pytest.mark.parametrize("number", [3, 6])
def test_a_long_table_of_the_paper_takes_one_screen(
    number: int, arb: Path, width: int, capsys: pytest.CaptureFixture[str]
) -> None:
    labels = f"agentrewardbench:{arb / 'annotations.csv'}"
    words = ["--judgments", str(arb / "judgments"), "--annotations", labels]
    assert score_main([*words, "--table", str(number)]) == 0
    lines = one_screen(capsys.readouterr().out, width)
    assert lines[0].startswith("Success rate by ")
    assert lines[-1] == "Whole, with intervals: --full"
    assert any(line.startswith("and ") and line.endswith(" more: --full") for line in lines)
    assert score_main([*words, "--table", str(number), "--full"]) == 0
    whole = capsys.readouterr().out.splitlines()
    assert max(map(len, whole)) <= width
    assert len(whole) > len(lines)
    assert sum("[" in line for line in whole) > len(lines)


@pytest.mark.slow
@pytest.mark.usefixtures("own_folder")
@narrow
def test_a_table_that_is_asked_for_and_agents_take_one_screen(
    width: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert judge_main(["--judge", "heuristic", "--data", "sample", "--out", "run"]) == 0
    capsys.readouterr()
    for number, title in ((1, "Success: precision"), (7, "All labels, overall")):
        assert score_main(["run", "--table", str(number)]) == 0
        assert screens.one_screen(capsys.readouterr().out, width)[0].startswith(title)
    assert score_main(["run", "--by", "agent"]) == 0
    lines = one_screen(capsys.readouterr().out, width)
    assert lines[-1] == "and 10 more: --full"
    assert sum(line.startswith("scripted-") for line in lines) == 8
    assert not any("scripted" in line for line in lines if line.startswith("warning"))
    assert score_main(["run", "--by", "agent", "--full"]) == 0
    whole = capsys.readouterr().out.splitlines()
    assert sum("scripted-p" in line for line in whole) > 8
    assert max(map(len, whole)) <= width


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
    """The order was cut in the middle of a name, and what differs with it."""
    lines = one_screen(summary(long_names(count), width=width), width)
    begin = next(at for at, line in enumerate(lines) if line.startswith("Precision: "))
    order, _, differ = " ".join(map(str.strip, lines[begin : begin + 6])).partition(" Not sig")
    name = r"simplified-axtree:openrouter/maker-\d\d/a-model-of-\d+b"
    assert re.fullmatch(rf"Precision: {name}( [=>] {name})+ and \d+ more", order)
    assert re.search(rf": {name} and {name}; and \d+ more groups?( |$)", differ), differ


def test_a_warning_of_many_judges_names_the_first_and_counts_the_others(width: int) -> None:
    """Which judges a trivial baseline equals was cut in the middle."""
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
