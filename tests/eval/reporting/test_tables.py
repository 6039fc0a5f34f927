"""Tables: precision first and never alone, the baseline beside, weaknesses said."""

from __future__ import annotations

import re

import pytest

from tests.eval.cases import call, failed, key, label, said
from trajudge.eval.reporting.sentences import notes
from trajudge.eval.reporting.tables import plain, tables
from trajudge.eval.scoring.compute import score
from trajudge.eval.scoring.records import ScoreReport
from trajudge.judges.model import Judgment, Status, Usage
from trajudge.trajectories.model import TrajectoryKey


def scored(n: int = 50, *, judge: str = "judge") -> ScoreReport:
    labels = {key(i): label(i, i % 2 == 0, side_effect=False) for i in range(n)}
    rewards: dict[TrajectoryKey, float | None] = {key(i): float(i % 4 == 0) for i in range(n)}
    judgments: list[Judgment] = [
        said(i, i % 3 == 0, side_effect=False, judge=judge, calls=(call(),)) for i in range(n - 1)
    ]
    return score([*judgments, failed(n - 1, Status.REFUSED, judge=judge)], labels, rewards=rewards)


def test_precision_comes_first_with_its_interval_and_the_baseline_beside() -> None:
    title, head, rows, _ = tables(scored())[0]
    assert title == "Success"
    assert head[2:] == ("precision [95 %]", "recall", "F1 [95 %]", "n", "positives")
    assert [row[1].strip() for row in rows[:2]] == ["judge", "rule-based"]
    for row in rows[:2]:
        assert re.fullmatch(r"\d+\.\d \[\d+\.\d, \d+\.\d\]", row[2])
    assert rows[1][2] == "100.0 [75.3, 100.0]"


def test_without_an_accepted_trajectory_there_is_no_precision() -> None:
    rows = {title: rows for title, _, rows, _ in tables(scored())}
    assert {row[2] for row in rows["Side effect"]} == {"–"}


def test_coverage_and_spending_are_shown() -> None:
    text = plain(scored(), wall_seconds=12.34)
    assert "ok 49, refused 1" in text
    assert "$0.4900" in text
    assert "5,880" in text
    assert "wall time of this session: 12.3 s" in text
    assert "judge, Success: 1 failed judgment counted as not accepted" in text


def test_few_positives_are_warned_of() -> None:
    few = [note for note in notes(scored(30)) if "(success" in note]
    assert few[:1] == [
        "warning: only 15 positive labels (success, WebArena); estimates are unreliable"
    ]
    assert not [note for note in notes(scored(50)) if "positive labels (success" in note]
    none = score([said(1, True)], {key(1): label(1, False)}, rewards={})
    assert "warning: no positive label (success, WebArena)" in "".join(notes(none))


def test_an_unknown_price_is_said() -> None:
    judgments = [said(1, True, calls=(call(None), call()))]
    text = plain(score(judgments, {key(1): label(1, True)}, rewards={}))
    assert "$0.0100 + 1 call of unknown cost" in text
    judgments = [said(1, True, calls=(call(None),))]
    assert "unknown" in plain(score(judgments, {}, rewards={}))


def test_every_stage_is_counted_by_itself() -> None:
    calls = (
        call(0.5, stage="caption", usage=Usage(input=1000, image=900, output=80), seconds=2.0),
        call(0.25, usage=Usage(input=50, cache_read=150, output=40, reasoning=30), seconds=1.5),
    )
    found = score([said(1, True, calls=calls)], {}, rewards={})
    rows = {title: rows for title, _, rows, _ in tables(found)}
    [spending] = [rows[title] for title in rows if title.startswith("Usage and cost")]
    assert spending == [
        ("judge", "2", "1,200", "150", "900", "120", "30", "$0.7500", "3.5"),
        ("  caption", "1", "1,000", "0", "900", "80", "0", "$0.5000", "2.0"),
        ("  verdict", "1", "200", "150", "0", "40", "30", "$0.2500", "1.5"),
    ]


def test_what_the_cache_answered_is_told_apart_from_what_was_paid() -> None:
    made = score([said(1, True, calls=(call(0.5, cached=True), call(0.25)))], {}, rewards={})
    assert "$0.2500 + $0.5000 cached" in plain(made)


def test_a_judge_of_one_stage_takes_one_line() -> None:
    found = score([said(1, True, calls=(call(),))], {}, rewards={})
    assert len(tables(found)[-1][2]) == 1


def test_each_judges_baseline_follows_it() -> None:
    labels = {key(1): label(1, True)}
    judgments = [said(1, True, judge="a"), said(1, False, judge="b")]
    found = {
        title: rows for title, _, rows, _ in tables(score(judgments, labels, rewards={key(1): 1}))
    }
    assert [row[0] for row in found["Judges"]] == ["a", "b", "rule-based baseline"]
    names = ["a", "  rule-based", "  difference", "b", "  rule-based", "  difference"]
    assert [row[1] for row in found["Success"]] == names


def test_one_benchmark_alone_is_not_shown_twice() -> None:
    assert "Overall" not in plain(scored())
    labels = {key(1): label(1, True), key(2, "workarena"): label(2, True, benchmark="workarena")}
    judgments = [said(1, True), said(2, True, benchmark="workarena")]
    assert "Overall" in plain(score(judgments, labels, rewards={}))


def test_no_line_is_wider_than_the_screen_and_no_interval_is_broken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = plain(scored(judge="judge-" * 12))
    assert max(map(len, text.splitlines())) <= 80
    assert "100.0 [75.3, 100.0]" in text


def test_an_escape_sequence_in_a_name_is_shown_not_obeyed() -> None:
    assert "\x1b" not in plain(scored(judge="\x1b[2Jx"), wall_seconds=1)
    assert r"\x1b[2Jx" in plain(scored(judge="\x1b[2Jx"))


def test_without_labels_there_is_coverage_and_no_empty_table() -> None:
    judgments = [said(n, True, calls=(call(),)) for n in range(3)]
    scores = score(judgments, {}, rewards={})
    assert [table.title for table in tables(scores)] == ["Coverage", "Usage and cost"]
    assert notes(scores) == []


def test_an_empty_run_has_tables_without_rows() -> None:
    assert "Coverage" in plain(score([], {}, rewards={}))
