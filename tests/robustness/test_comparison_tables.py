"""Tables of defences: one for every judge, of its own rows alone, with what it cost."""

from __future__ import annotations

from trajudge.judges.model import Call, Judgment, Status, Usage
from trajudge.robustness.screen import (
    DefendedJudgeRow,
    JudgingCost,
    comparison_tables,
    cost_of,
)
from trajudge.trajectories.model import TrajectoryKey

COST = JudgingCost(judgments=4, undecided=1, calls=8, tokens=400, dollars=0.02)


def row(base: str, defences: str) -> DefendedJudgeRow:
    rates = dict.fromkeys(("precision", "recall", "agent", "page", "fooled"), 0.5)
    return DefendedJudgeRow(f"{base}+{defences}", base, defences, **rates, cost=COST)


def judgment(status: Status, success: bool | None, *costs: float | None) -> Judgment:
    calls = [
        Call(
            stage="s",
            request="r",
            rung="full",
            finish="stop",
            usage=None if cost is None else Usage(input=90, cache_read=5, output=10),
            cost=cost,
            text="",
        )
        for cost in costs
    ]
    key = TrajectoryKey(benchmark="b", agent="a", task_id="t")
    return Judgment(key=key, judge="j", status=status, success=success, calls=tuple(calls))


def test_costs_are_summed_and_unknown_if_one_is() -> None:
    known = [
        judgment(Status.OK, True, 0.25, 0.5),
        judgment(Status.OK, None),
        judgment(Status.UNPARSABLE, None, 0.125),
    ]
    assert cost_of(known) == JudgingCost(3, 2, 3, 3 * 105, 0.875)
    unpriced = [*known, judgment(Status.OK, False, None)]
    assert cost_of(unpriced) == JudgingCost(4, 2, 4, 3 * 105, None)


def test_a_table_holds_the_defences_of_its_judge() -> None:
    tables = comparison_tables([row("a", ""), row("b", ""), row("b", "hide")])
    assert [table.title.partition(",")[0] for table in tables] == ["a", "b"]
    assert [[line[0] for line in table.rows] for table in tables] == [["none"], ["none", "hide"]]
    assert tables[0].rows[0][-4:] == ("25.0", "2.00", "100", "0.500")
