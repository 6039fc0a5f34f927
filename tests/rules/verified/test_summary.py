"""A batch's numbers, and what is printed of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trajudge.rules.verdict import Assertion, Outcome
from trajudge.rules.verified.runs import (
    MULTI_SITE,
    Summary,
    TaskResult,
    evaluation_screen,
    macro,
    summarise,
)
from trajudge.rules.verified.tasks import load_tasks
from trajudge.stats.intervals import clustered_limits
from trajudge.stats.suites import t_half_width


def _result(**fields: Any) -> TaskResult:
    made = {"task_id": 1, "template": "t", "sites": ("map",), "outcome": Outcome.PASS}
    return TaskResult(**{**made, **fields})


def _summary(results: list[TaskResult]) -> Summary:
    return summarise("sound", results, missing=0, seconds=0.0)


def test_the_template_macro_is_a_mean_over_templates_with_a_t_interval() -> None:
    passed = [_result(template="a"), _result(template="a"), _result(template="b")]
    failed = [_result(template=name, outcome=Outcome.FAIL) for name in "bcd"]
    numbers = macro([*passed, *failed])
    assert numbers.success == 0.5
    low, high = clustered_limits([True] * 3 + [False] * 3, "aabbcd")
    assert (numbers.success_low, numbers.success_high) == (low, high)
    assert numbers.template_macro == pytest.approx((1 + 0.5 + 0 + 0) / 4)
    # t(0.975, 3) = 3.182446, s = 0.478714, T = 4
    assert numbers.half_width == pytest.approx(3.182446 * 0.478714 / 2, rel=1e-5)
    assert macro(passed[:1]).half_width is None
    assert (macro([]).success, macro([]).success_low) == (None, None)
    assert _summary([]).parse_failure_rate is None


def test_what_a_template_is_on_two_sites_counts_as_two() -> None:
    results = [
        _result(template="42"),
        _result(template="42", sites=("map", "shopping_admin"), outcome=Outcome.FAIL),
        _result(template="42", sites=("map", "shopping_admin"), outcome=Outcome.FAIL),
    ]
    numbers = _summary(results)
    assert (numbers.overall.templates, numbers.overall.template_macro) == (2, 0.5)
    assert list(numbers.sites) == ["map", MULTI_SITE]
    assert (numbers.site_macro.sites, numbers.site_macro.mean) == (2, 0.5)


def test_a_run_without_any_comparison_was_not_judged() -> None:
    compared = Assertion(name="a", outcome=Outcome.UNKNOWN)
    results = [
        _result(task_id=1, outcome=Outcome.UNKNOWN, reasons=("cut off",)),
        _result(task_id=2, outcome=Outcome.UNKNOWN, assertions=(compared,)),
    ]
    assert _summary(results).not_judged == ("1",)


RUNS = st.lists(
    st.builds(
        _result,
        template=st.sampled_from("abc"),
        sites=st.sampled_from([("map",), ("gitlab",), ("map", "wikipedia"), ("gitlab", "reddit")]),
        outcome=st.sampled_from(list(Outcome)),
    ),
    min_size=1,
    max_size=30,
)


@given(RUNS)
def test_a_site_s_templates_count_once_each_and_each_site_once(results: list[TaskResult]) -> None:
    ours = _summary(results)
    scores: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for result in results:
        scores[result.stratum][result.template].append(result.score)
    rates = {site: [*map(fmean, scores[site].values())] for site in sorted(scores)}
    every = [rate for some in rates.values() for rate in some]
    assert ours.overall.template_macro == pytest.approx(fmean(every))
    assert ours.overall.half_width == t_half_width(every)
    assert list(ours.sites) == list(rates)
    for name, site in ours.sites.items():
        assert site.template_macro == pytest.approx(fmean(rates[name]))
        assert site.half_width == t_half_width(rates[name])
    means = [fmean(some) for some in rates.values()]
    assert ours.site_macro.mean == pytest.approx(fmean(means))
    assert ours.site_macro.half_width == t_half_width(means)


def test_claims_that_nothing_can_be_done_are_counted_by_their_exploration() -> None:
    made = [
        _result(task_id=number, achievable=achievable, outcome=outcome, exploration=ratio)
        for number, (achievable, outcome, ratio) in enumerate(
            [
                (False, Outcome.PASS, 0.4),
                (False, Outcome.PASS, 0.6),
                (False, Outcome.FAIL, 0.4),
                (True, Outcome.PASS, 0.4),
            ]
        )
    ]
    made.append(_result(task_id=9, sites=("gitlab",), outcome=Outcome.FAIL))
    found = _summary(made)
    assert (found.unachievable, found.premature) == (3, ("0",))
    assert {name: site.runs for name, site in found.sites.items()} == {"gitlab": 1, "map": 4}


@pytest.mark.real_data
def test_the_published_tasks_have_the_papers_191_templates(real_data: Path) -> None:
    """Figure 13; there are 190 template ids, one of them on a site and on two sites together."""
    tasks = load_tasks(real_data / "webarena" / "webarena-verified.json")
    assert len({task.template for task in tasks}) == 190
    numbers = _summary([_result(template=task.template, sites=task.sites) for task in tasks])
    assert numbers.overall.templates == 191
    assert {name: site.runs for name, site in numbers.sites.items()} == {
        "gitlab": 180,
        "map": 109,
        MULTI_SITE: 48,
        "reddit": 106,
        "shopping": 187,
        "shopping_admin": 182,
    }


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
    return evaluation_screen(summary, results, width=100)


def test_the_interval_of_two_templates_ends_at_the_ends_of_the_scale() -> None:
    """t(0.975, 1) = 12.7: half of the width is 635 %."""
    shown = screen(batch([True], [False]))
    assert "50.0 [0.0, 100.0]" in shown
    assert "635" not in shown
    assert not any(line.startswith("map ") for line in shown.splitlines())


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
