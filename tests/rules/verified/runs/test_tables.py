"""What is printed of a batch: shares and their limits lie from 0 to 100 %."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from trajudge.rules.verdict import Outcome
from trajudge.rules.verified.runs import TaskResult, evaluation_screen, show_evaluation, summarise


def batch(*passes: Sequence[bool], site: str = "map") -> list[TaskResult]:
    """A template for each sequence."""
    return [
        TaskResult(
            task_id=number,
            template=f"{site} {template}",
            sites=(site,),
            outcome=Outcome.PASS if passed else Outcome.FAIL,
        )
        for template, runs in enumerate(passes)
        for number, passed in enumerate(runs)
    ]


def screen(results: Sequence[TaskResult]) -> str:
    summary = summarise("sound", results, missing=0, seconds=0.0)
    return evaluation_screen(summary, results, rest="", width=100)


def test_the_interval_of_two_templates_ends_at_the_ends_of_the_scale(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """t(0.975, 1) = 12.7: half of the width is 635 %."""
    results = batch([True], [False])
    assert "50.0 [0.0, 100.0]" in screen(results)
    show_evaluation(summarise("sound", results, missing=0, seconds=0.0), results)
    printed = capsys.readouterr().out
    assert "635" not in printed
    assert "100.0%" in printed


def test_four_templates_have_the_t_interval_of_their_means() -> None:
    # means 1, 1/2, 1/2, 1/2: mean .625, s = .25, t(0.975, 3) = 3.182446
    shown = screen(batch([True], [True, False], [True, False], [False, True]))
    assert "62.5 [22.7, 100.0]" in shown


@pytest.mark.parametrize("passes", [[[True]], [[True, False, False]] * 3])
def test_templates_that_do_not_differ_show_no_spread(passes: Sequence[Sequence[bool]]) -> None:
    results = batch(*passes)
    row = next(line for line in screen(results).splitlines() if line.startswith("all"))
    assert row.endswith(f" {100 * sum(passes[0]) / len(passes[0]):.1f}")
    assert "it does not show the spread over templates" in screen(results).replace("\n  ", " ")


def test_the_finding_speaks_of_an_interval_where_there_is_one() -> None:
    """Runs of one task read "100.0 (%, 95 % interval)"."""
    assert "1 of 1 runs passed, success 100.0 (%)" in screen(batch([True]))
    shown = screen(batch([True, False], [True, True], [False, True]))
    assert "success 66.7 [" in shown and "] (%, 95 % interval)" in shown


def test_the_mean_over_sites_is_a_share_too() -> None:
    results = [*batch([True], [True]), *batch([False], [True], site="gitlab")]
    assert "site macro: 75.0 [0.0, 100.0] over 2 sites (%, 95 % interval)" in screen(results)
    same = [*batch([True], [False]), *batch([False], [True], site="gitlab")]
    assert "site macro: 50.0 over 2 sites (%)" in screen(same)
