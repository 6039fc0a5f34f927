"""The scores as tables: ``renderable`` for a terminal through rich, ``plain`` as text.

Precision comes first and never without its interval, but where one task is all there is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from eval.figures import (
    UNDEFINED,
    agent_name,
    benchmark_name,
    cell,
    design_effect_cell,
    number_cell,
    percent,
    precision_cell,
    probability,
    signed_cell,
)
from eval.notes import is_labelled, notes, shown_benchmarks
from eval.overview import overview
from eval.rendering import Table, render, rich_table
from eval.scores import (
    ALL_AGENTS,
    ALPHA,
    LABEL_TITLES,
    LABELS,
    OVERALL,
    Comparison,
    Coverage,
    Difference,
    Discordance,
    Label,
    Ledger,
    Ranking,
    Rate,
    Score,
    ScoreRate,
    Scores,
    Spending,
)

if TYPE_CHECKING:
    from rich.console import RenderableType

_HEAD = ("judge", "precision [95 %]", "recall", "F1 [95 %]", "n", "positives")
_MORE: dict[Rate, str] = {
    "accuracy": "accuracy",
    "npv": "NPV",
    "tnr": "TNR",
    "kappa": "κ",
    "mcc": "MCC",
}
_OF_SCORES: dict[ScoreRate, str] = {
    "roc_auc": "ROC-AUC",
    "average_precision": "average precision",
    "brier": "Brier",
    "calibration_error": "calibration error",
}
_COVERAGE_HEAD = ("benchmark", "judge", "judged", "by status", "not judged", "no annotation")
_SPENDING_HEAD = (
    *("judge", "calls", "input tokens", "cached", "images"),
    *("output tokens", "reasoning", "cost", "seconds"),
)
_DIFFERENCE_HEAD = ("first", "second", "difference [95 %]", "p (Holm)", "n")
_MCNEMAR_HEAD = ("first", "second", "only first right", "only second right", "p (Holm)", "n")
_RANKING_HEAD = ("label", "benchmark", "metric", "best first", "not told apart")
_FEW_JUDGES = 4
_METRICS = {"precision": "precision", "recall": "recall", "f1": "F1"}


def tables(scores: Scores) -> list[Table]:
    """The judges, if there are several, and who is told apart from whom; each label that experts
    gave, and what else is measured; coverage, spending."""
    found: list[Table] = []
    shown = shown_benchmarks(scores)
    if len(scores.spending) > 1 and any(map(is_labelled, scores.scores)):
        found.append(Table("Judges", *overview(scores), names=1))
        found += comparison_tables(scores.comparison)
    by_agent = any(s.agent != ALL_AGENTS for s in scores.scores)
    for label in LABELS:
        rows = [s for s in scores.scores if s.label == label and s.benchmark in shown]
        if any(map(is_labelled, rows)):
            found.append(_label_table(LABEL_TITLES[label], rows, by_agent))
            found += _more(LABEL_TITLES[label], rows)
    coverage = [
        _coverage_row(c) for c in scores.coverage if c.benchmark in shown and c.agent == ALL_AGENTS
    ]
    found.append(Table("Coverage", _COVERAGE_HEAD, coverage))
    found.append(
        Table(
            "Spending",
            _SPENDING_HEAD,
            [row for spent in scores.spending for row in _spending_rows(spent)],
            names=1,
        )
    )
    return found


def comparison_tables(comparison: Comparison) -> list[Table]:
    """Differences with intervals for every pair, and the judges in order with their ties.

    Of success over all benchmarks every pair is shown; elsewhere, where there are many, those
    that are told apart.
    """
    found: list[Table] = []
    for ranking in comparison.rankings:
        place = (ranking.benchmark, ranking.label)
        rows = [
            _difference_row(d)
            for d in comparison.differences
            if (d.benchmark, d.label, d.metric) == (*place, ranking.metric)
            and _shown(*place, comparison, (d.first, d.second) in ranking.apart)
        ]
        title = f"Difference in {_METRICS[ranking.metric]}{_where(*place)}"
        found += [Table(title, _DIFFERENCE_HEAD, rows)] if rows else []
    for place in dict.fromkeys((test.benchmark, test.label) for test in comparison.discordances):
        rows = [
            _discordance_row(test)
            for test in comparison.discordances
            if (test.benchmark, test.label) == place
            and _shown(*place, comparison, test.p_holm <= ALPHA)
        ]
        title = f"Accuracy (McNemar's exact test){_where(*place)}"
        found += [Table(title, _MCNEMAR_HEAD, rows)] if rows else []
    ranked = [_ranking_row(ranking) for ranking in comparison.rankings]
    if ranked:
        found.append(Table("Who is told apart from whom", _RANKING_HEAD, ranked, names=5))
    return found


def _shown(benchmark: str, label: Label, comparison: Comparison, apart: bool) -> bool:
    first = comparison.rankings[0]
    few = len(first.judges) <= _FEW_JUDGES
    return apart or few or (benchmark, label) == (first.benchmark, first.label)


def _where(benchmark: str, label: Label) -> str:
    place = "" if benchmark == OVERALL else f", {benchmark_name(benchmark)}"
    return f", {LABEL_TITLES[label].lower()}{place}"


def _discordance_row(test: Discordance) -> tuple[str, ...]:
    return (
        test.first,
        test.second,
        str(test.only_first_right),
        str(test.only_second_right),
        probability(test.p_holm),
        str(test.n),
    )


def _ranking_row(ranking: Ranking) -> tuple[str, ...]:
    return (
        LABEL_TITLES[ranking.label],
        benchmark_name(ranking.benchmark),
        _METRICS[ranking.metric],
        " > ".join(ranking.judges),
        "; ".join(" = ".join(tie) for tie in ranking.ties) or "all are told apart",
    )


def renderable(scores: Scores, wall_seconds: float | None = None) -> RenderableType:
    """All tables and notes for a rich console."""
    from rich.console import Group  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    parts: list[RenderableType] = [rich_table(table) for table in tables(scores)]
    parts += [Text(note) for note in notes(scores, wall_seconds)]
    return Group(*parts)


def plain(scores: Scores, wall_seconds: float | None = None) -> str:
    """All tables and notes as text with aligned columns, for files and pipes."""
    blocks = [render(tables(scores), "table"), *notes(scores, wall_seconds)]
    return "\n".join(blocks).rstrip("\n") + "\n"


def _label_table(title: str, rows: list[Score], by_agent: bool) -> Table:
    if not by_agent:
        return Table(title, ("benchmark", *_HEAD), [_score_row(s) for s in rows])
    cells = [(row[0], agent_name(s.agent), *row[1:]) for s in rows for row in [_score_row(s)]]
    return Table(title, ("benchmark", "agent", *_HEAD), cells, names=3)


def _score_row(found: Score) -> tuple[str, ...]:
    """The baseline's row is indented below its judge's."""
    return (
        benchmark_name(found.benchmark),
        "  rule-based" if found.baseline else found.judge,
        precision_cell(found),
        percent(found.recall),
        cell(found, "f1"),
        str(found.n),
        str(found.positives),
    )


def _more(title: str, rows: list[Score]) -> list[Table]:
    """What else was measured, over all shown benchmarks: of verdicts, and of scores."""
    last = rows[-1].benchmark
    whole = [s for s in rows if s.benchmark == last and s.agent == ALL_AGENTS]
    cells = [
        (
            *_score_row(s)[:2],
            cell(s, "recall"),
            *(cell(s, rate) for rate in ("accuracy", "npv", "tnr")),
            *(number_cell(s, rate) for rate in ("kappa", "mcc")),
            design_effect_cell(s),
        )
        for s in whole
    ]
    head = ("benchmark", "judge", "recall", *_MORE.values(), "design effect of precision")
    found = [Table(f"{title}, further metrics [95 %]", head, cells)]
    scored = [
        (*_score_row(s)[:2], *(number_cell(s, rate) for rate in _OF_SCORES), str(s.scored))
        for s in whole
        if s.scored
    ]
    if scored:
        head = ("benchmark", "judge", *_OF_SCORES.values(), "n")
        found.append(Table(f"{title}, scores [95 %]", head, scored))
    return found


def _difference_row(found: Difference) -> tuple[str, ...]:
    return (
        found.first,
        found.second,
        signed_cell(found.difference, found.low, found.high),
        UNDEFINED if found.p_holm is None else probability(found.p_holm),
        str(found.n),
    )


def _coverage_row(found: Coverage) -> tuple[str, ...]:
    return (
        benchmark_name(found.benchmark),
        found.judge,
        str(found.judged),
        ", ".join(f"{status} {n}" for status, n in found.statuses.items()) or UNDEFINED,
        str(found.unjudged),
        str(found.unlabelled),
    )


def _spending_rows(spent: Spending) -> list[tuple[str, ...]]:
    """The judge, and below it its stages if there are several."""
    stages = spent.stages if len(spent.stages) > 1 else ()
    return [
        _spending_row(spent.judge, spent),
        *(_spending_row(f"  {found.stage}", found) for found in stages),
    ]


def _spending_row(name: str, spent: Ledger) -> tuple[str, ...]:
    # Cached and image tokens are parts of the input, reasoning of the output.
    usage = spent.usage
    cost = "unknown" if spent.cost is None else f"${spent.cost:.4f}"
    if spent.cost is not None and spent.unpriced:
        cost += f" + {spent.unpriced} calls of unknown price"
    tokens = (
        usage.input + usage.cache_read + usage.cache_write,
        usage.cache_read,
        usage.image,
        usage.output,
        usage.reasoning,
    )
    return (
        name,
        str(spent.calls),
        *(f"{number:,}" for number in tokens),
        cost if spent.calls else "$0",
        f"{spent.seconds:.1f}",
    )
