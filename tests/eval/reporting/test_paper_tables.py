"""The paper's tables: rows and columns in its layout."""

from __future__ import annotations

import pytest

from tests.eval.cases import key, label, said
from trajudge.eval.reporting.tables import category, paper_table
from trajudge.eval.scoring.compute import score
from trajudge.eval.scoring.records import ScoreReport
from trajudge.judges.model import Judgment
from trajudge.trajectories.model import TrajectoryKey
from trajudge.util.errors import UserError

SEEN = {"s": (False, True), "a": (True, False), "both": (True, True)}


def scored() -> ScoreReport:
    benchmarks = ("webarena", "workarena")
    labels = {
        key(i, b): label(i, i % 2 == 0, benchmark=b, side_effect=i == 0)
        for b in benchmarks
        for i in range(8)
    }
    judgments: list[Judgment] = [
        said(i, i % 3 == 0, judge=judge, benchmark=b, side_effect=False)
        for judge in SEEN
        for b in benchmarks
        for i in range(8)
    ]
    rewards: dict[TrajectoryKey, float | None] = dict.fromkeys(labels, 0.25)
    return score(judgments, labels, rewards=rewards)


def test_table_1_has_a_row_a_judge_and_precision_by_benchmark() -> None:
    table = paper_table(1, scored(), SEEN)
    assert table.head[:2] == ("category", "judge")
    assert table.head[-2:] == ("WebArena [95 %]", "WorkArena [95 %]")
    assert [row[:2] for row in table.rows] == [
        ("Official", "rule-based baseline"),
        ("Simplified (A)", "a"),
        ("Simplified (S)", "s"),
        ("Simplified (A+S)", "both"),
    ]


@pytest.mark.parametrize(
    ("judge", "expected"),
    [
        ("rule-based", "Official"),
        ("aer-c:gpt-4o", "Existing"),
        ("aerv", "Existing"),
        ("nnetnav", "Existing"),
        ("webjudge-7b", "Existing"),
        ("simplified-axtree:gpt-4o", "Simplified (A)"),
        ("simplified-screenshot-success-strict:claude-x", "Simplified (S)"),
        ("simplified-both:m (runs/2)", "Simplified (A+S)"),
        ("gpt-4o-noscreen", "Simplified (A)"),
        ("rubric:gpt-4o", "Other"),
        ("panel", "Other"),
        ("aerial.py", "Other"),
        ("mine", "Other"),
    ],
)
def test_a_judge_has_the_papers_category(judge: str, expected: str) -> None:
    seen = {"gpt-4o-noscreen": (True, False), "rubric:gpt-4o": (True, True)}
    assert category(judge, seen) == expected


def test_table_2_has_both_first_then_tree_then_screenshot() -> None:
    table = paper_table(2, scored(), SEEN)
    assert [row[:3] for row in table.rows] == [
        ("yes", "yes", "both"),
        ("yes", "no", "a"),
        ("no", "yes", "s"),
    ]
    with pytest.raises(UserError, match="--representation"):
        paper_table(2, scored(), {})


def test_tables_3_and_6_show_expert_judge_and_rule() -> None:
    by_agent, rates = (paper_table(number, scored(), {}) for number in (3, 6))
    assert [row[:2] for row in by_agent.rows] == [("agent", judge) for judge in ("a", "both", "s")]
    assert len(by_agent.head) == 2 + 3 * 2
    row = next(r for r in rates.rows if r[:3] == ("Overall", "All", "a"))
    assert [cell.split()[0] for cell in row[3:6]] == ["50.0", "37.5", "25.0"]


def test_tables_7_and_8_have_all_labels_and_the_rule_once() -> None:
    overall, by_benchmark = (paper_table(number, scored(), {}) for number in (7, 8))
    assert [row[0] for row in overall.rows] == ["a", "both", "s", "rule-based"]
    assert [row[0] for row in by_benchmark.rows] == ["WebArena"] * 4 + ["WorkArena"] * 4
    assert overall.rows[0][4:7] == ("–", "0.0", "0.0")
    assert set(overall.rows[-1][4:]) == {"–"}


@pytest.mark.parametrize("number", [1, 2, 3, 6, 7, 8])
def test_every_row_is_as_long_as_its_head(number: int) -> None:
    table = paper_table(number, scored(), SEEN)
    assert {len(row) for row in table.rows} == {len(table.head)}
