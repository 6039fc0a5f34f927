"""Judges against each other, as tables: differences, McNemar's test, ranking with ties."""

from __future__ import annotations

from collections.abc import Sequence

from trajudge.eval.reporting.finding import NO_LABELS, ranking_sentences
from trajudge.eval.reporting.formatting import (
    UNDEFINED,
    benchmark_name,
    percent,
    probability,
    signed_cell,
    with_limits,
)
from trajudge.eval.scoring.records import (
    ALPHA,
    LABEL_TITLES,
    LABELS,
    OVERALL,
    Comparison,
    EqualRecall,
    FaultRate,
    FaultScore,
    Label,
    McNemarResult,
    MetricDifference,
    Ranking,
)
from trajudge.trajectories.util.layout.lines import wrapped
from trajudge.trajectories.util.tables import (
    Table,
    columns,
    first_screen,
    fitted,
    screen_width,
)

_DIFFERENCE_HEAD = ("first", "second", "difference [95 %]", "p (Holm)", "n")
_MCNEMAR_HEAD = (
    *("first", "second", "only first right", "only second right", "p (Holm)"),
    *("P(first > second) [95 %]", "n"),
)
_RANKING_HEAD = ("label", "benchmark", "metric", "ranking", "ties (Holm, α = .05)")
_EQUAL_RECALL_HEAD = (
    *("judge", "baseline", "recall of both", "judge's precision", "baseline's precision"),
    *("difference [95 %]", "n"),
)
_FEW_JUDGES = 4
_BENCHMARK_HEAD = ("benchmark", "ranking by precision", "ties (Holm, α = .05)")
_BENCHMARK_ROWS, _RANKING_LINES, _MOST_NAMES = 8, 2, 6
_REST = "Every difference: to_frame(); exact tests of accuracy: .discordances; orders: .rankings"
_METRICS = {"precision": "precision", "recall": "recall", "f1": "F1"}


def comparison_tables(comparison: Comparison) -> list[Table]:
    """Differences with intervals for every pair, and the judges in order with their ties.

    Of success over all benchmarks every pair is shown; elsewhere, where there are many, those
    that are told apart.
    """
    sections: list[Table] = []
    for ranking in comparison.rankings:
        place = (ranking.benchmark, ranking.label)
        rows = [
            _difference_row(d)
            for d in comparison.differences
            if (d.benchmark, d.label, d.metric) == (*place, ranking.metric)
            and _shown(*place, comparison, (d.first, d.second) in ranking.apart)
        ]
        title = f"Difference in {_METRICS[ranking.metric]}{_where(*place)}"
        sections += [Table(title, _DIFFERENCE_HEAD, rows)] if rows else []
    for place in dict.fromkeys((test.benchmark, test.label) for test in comparison.discordances):
        rows = [
            _discordance_row(test)
            for test in comparison.discordances
            if (test.benchmark, test.label) == place
            and _shown(*place, comparison, test.p_holm <= ALPHA)
        ]
        title = f"Accuracy (McNemar's exact test){_where(*place)}"
        sections += [Table(title, _MCNEMAR_HEAD, rows)] if rows else []
    ranked = [_ranking_row(ranking) for ranking in comparison.rankings]
    if ranked:
        sections.append(Table("Pairwise significance", _RANKING_HEAD, ranked, names=5))
    return sections


def benchmark_rankings(comparison: Comparison, width: int) -> list[str]:
    """Lay out the order of the judges by precision on each benchmark, in a few lines: the first of
    them where all would need more, their names shortened where one does. Nothing where they were
    not compared there."""
    rankings = [r for r in comparison.rankings if r.metric == "precision"]
    first = next((r.label for r in rankings), None)
    places = [r for r in rankings if r.label == first and r.benchmark != OVERALL]
    if len({r.benchmark for r in rankings}) < 2 or not places:
        return []
    shown, left_out = places[:_BENCHMARK_ROWS], len(places) - _BENCHMARK_ROWS
    for most in (None, *range(_MOST_NAMES, 0, -1)):
        rows = [(benchmark_name(r.benchmark), r.order(most), r.tied(most) or "none") for r in shown]
        lines = wrapped(_BENCHMARK_HEAD, rows, width)
        if len(lines) <= _RANKING_LINES * (1 + len(shown)):
            break
    else:
        lines = columns(_BENCHMARK_HEAD, rows, width, names=len(_BENCHMARK_HEAD))
    return [*lines, *([f"and {left_out} more: --full"] if left_out > 0 else [])]


def equal_recall_tables(recalls: Sequence[EqualRecall]) -> list[Table]:
    """Make the table of every judge's precision beside a trivial baseline's at the judge's recall,
    where there are any."""
    rows = [
        (
            one.judge,
            one.baseline,
            percent(one.recall),
            percent(one.precision),
            percent(one.baseline_precision),
            signed_cell(one.difference, one.low, one.high),
            str(one.n),
        )
        for one in recalls
    ]
    title = "Trivial baselines at the judge's recall"
    return [Table(title, _EQUAL_RECALL_HEAD, rows, names=2)] if rows else []


def comparison_screen(comparison: Comparison, warnings: Sequence[str], *, option: str) -> str:
    """Lay out the first screen: the order of the judges, and of the first label every pair's
    differences over all benchmarks; ``option`` names labels."""
    if all(ranking.undefined == ranking.judges for ranking in comparison.rankings):
        return first_screen([NO_LABELS + option], [], warnings=warnings, rest=_REST)
    first = comparison.rankings[0].label
    above = fitted(lambda most: _sentences(comparison, first, most), screen_width())
    whole = Comparison(
        differences=tuple(d for d in comparison.differences if _is_whole(d, first)),
        discordances=tuple(d for d in comparison.discordances if _is_whole(d, first)),
        rankings=tuple(r for r in comparison.rankings if _is_whole(r, first)),
    )
    *tables, _ = comparison_tables(whole)
    return first_screen(above, tables, warnings=warnings, rest=_REST, more="to_frame()")


def _sentences(comparison: Comparison, first: Label, most: int | None) -> list[str]:
    """Write the order by every label, with at most so many names; ``first`` needs no name."""
    return [
        line if label == first else f"{LABEL_TITLES[label]}: {line[0].lower()}{line[1:]}"
        for label in LABELS
        for line in ranking_sentences(comparison, label, most)
    ]


def _is_whole(one: MetricDifference | McNemarResult | Ranking, label: Label) -> bool:
    return (one.benchmark, one.label) == (OVERALL, label)


def fault_tables(scores: Sequence[FaultScore], *, short: bool = False) -> list[Table]:
    """Make the table of how judges find and place faults, where there is one to make; ``short``:
    without the columns of the second rank."""
    names: dict[FaultRate, str] = {
        "f1": "F1",
        "silent_recall": "silent",
        "loud_recall": "loud",
        "false_alarms": "false alarms",
        "step_exact": "step",
        "step_within_one": "±1",
    }
    more: dict[FaultRate, str] = {"precision": "precision", "recall": "recall"}
    shown = names if short else {**more, **names, "step_found": "found at its step"}
    rows = [
        (
            one.judge,
            *(
                percent(getattr(one, name))
                if short
                else with_limits(getattr(one, name), one.intervals.get(name))
                for name in shown
            ),
            *(() if short else (percent(one.type_f1), str(one.named))),
            str(one.n),
        )
        for one in scores
    ]
    head = ("judge", *shown.values(), *(() if short else ("type F1", "steps named")), "n")
    return [Table("Faults" if short else "Faults [95 %]", head, rows)] if rows else []


def _shown(benchmark: str, label: Label, comparison: Comparison, apart: bool) -> bool:
    first = comparison.rankings[0]
    few = len(first.judges) <= _FEW_JUDGES
    return apart or few or (benchmark, label) == (first.benchmark, first.label)


def _where(benchmark: str, label: Label) -> str:
    place = "" if benchmark == OVERALL else f", {benchmark_name(benchmark)}"
    return f", {LABEL_TITLES[label].lower()}{place}"


def _discordance_row(test: McNemarResult) -> tuple[str, ...]:
    return (
        test.first,
        test.second,
        str(test.only_first_right),
        str(test.only_second_right),
        probability(test.p_holm),
        _improvement(test),
        str(test.n),
    )


def _improvement(test: McNemarResult) -> str:
    if test.improvement is None:
        return UNDEFINED
    low, high = test.improvement_low, test.improvement_high
    limits = "" if low is None or high is None else f" [{low:.2f}, {high:.2f}]"
    return f"{test.improvement:.2f}{limits}"


def _ranking_row(ranking: Ranking) -> tuple[str, ...]:
    return (
        LABEL_TITLES[ranking.label],
        benchmark_name(ranking.benchmark),
        _METRICS[ranking.metric],
        ranking.order(),
        ranking.tied() or "none",
    )


def _difference_row(difference: MetricDifference) -> tuple[str, ...]:
    return (
        difference.first,
        difference.second,
        signed_cell(difference.difference, difference.low, difference.high),
        UNDEFINED if difference.p_holm is None else probability(difference.p_holm),
        str(difference.n),
    )
