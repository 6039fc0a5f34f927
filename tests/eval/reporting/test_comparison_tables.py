"""The judges' order benchmark by benchmark, beside the first screen."""

from __future__ import annotations

import pytest

from tests.screens import on_one_line
from trajudge.eval.reporting.tables import benchmark_rankings
from trajudge.eval.scoring.records import OVERALL, Comparison, Ranking

JUDGES = tuple(f"webjudge-number-{n}:gpt-4o" for n in range(7))


def ranking(benchmark: str) -> Ranking:
    return Ranking(
        benchmark=benchmark,
        metric="precision",
        judges=JUDGES,
        ties=(JUDGES[:2], JUDGES[2:5]),
        apart=(),
    )


@pytest.mark.parametrize("width", [80, 100])
def test_of_many_judges_the_first_are_named_and_the_others_counted(width: int) -> None:
    rankings = tuple(map(ranking, (OVERALL, "webarena")))
    lines = benchmark_rankings(Comparison(rankings=rankings), width)
    assert max(map(len, lines)) <= width
    shown = on_one_line(" ".join(lines))
    assert "…" not in shown
    assert " more" in shown
