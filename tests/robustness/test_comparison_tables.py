"""Tables of defences: one for every judge, of its own rows alone."""

from __future__ import annotations

from trajudge.robustness.screen import DefendedJudgeRow, JudgingCost, comparison_tables

COST = JudgingCost(judgments=4, undecided=1, calls=8, tokens=400, dollars=0.02)


def row(base: str, defences: str) -> DefendedJudgeRow:
    rates = dict.fromkeys(("precision", "recall", "agent", "page", "fooled"), 0.5)
    return DefendedJudgeRow(f"{base}+{defences}", base, defences, **rates, cost=COST)


def test_a_table_holds_the_defences_of_its_judge() -> None:
    tables = comparison_tables([row("a", ""), row("b", ""), row("b", "hide")])
    assert [table.title.partition(",")[0] for table in tables] == ["a", "b"]
    assert [[line[0] for line in table.rows] for table in tables] == [["none"], ["none", "hide"]]
    assert tables[0].rows[0][-4:] == ("25.0", "2.00", "100", "0.500")
