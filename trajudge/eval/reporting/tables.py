"""The scores as tables; ``plain`` has them as text.

Precision comes first and never without its interval, but where one task is all there is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trajudge.eval.reporting.caveats import is_labelled, notes, shown_benchmarks
from trajudge.eval.reporting.comparison_tables import (
    comparison_tables,
    equal_recall_tables,
    fault_tables,
)
from trajudge.eval.reporting.costs import is_not_told, paid_dollars
from trajudge.eval.reporting.estimated_rate_table import estimated_rate_tables
from trajudge.eval.reporting.formatting import (
    UNDEFINED,
    agent_name,
    benchmark_name,
    coefficient_cell,
    design_effect_cell,
    percent,
    precision_cell,
    rate_cell,
    signed_cell,
)
from trajudge.eval.reporting.overview import overview
from trajudge.eval.scoring.records import (
    ALL_AGENTS,
    LABEL_TITLES,
    LABELS,
    Coverage,
    JudgeUsage,
    MetricDifference,
    Rate,
    Score,
    ScoreRate,
    ScoreReport,
    UsageTotals,
)
from trajudge.trajectories.util.layout.screen import LINES
from trajudge.trajectories.util.tables import (
    WARNINGS,
    Table,
    all_folded,
    first_screen,
    first_warnings,
    render,
    screen_width,
    without_limits,
)
from trajudge.trajectories.util.terminal import count_of

_HEAD = ("judge", "precision [95 %]", "recall", "F1 [95 %]", "n", "positives")
_MORE: dict[Rate, str] = {
    "accuracy": "accuracy",
    "npv": "NPV",
    "tnr": "TNR",
    "kappa": "κ",
    "mcc": "MCC",
}
_ERRORS: dict[Rate, str] = {
    "balanced_accuracy": "balanced accuracy",
    "fpr": "FPR",
    "fnr": "FNR",
    "over_accept_share": "over-accepts among errors",
}
_OF_SCORES: dict[ScoreRate, str] = {
    "roc_auc": "ROC-AUC",
    "average_precision": "average precision",
    "brier": "Brier",
    "calibration_error": "calibration error",
}
_COVERAGE_HEAD = (
    *("benchmark", "judge", "judged", "status", "shortened"),
    *("not judged", "unlabelled"),
)
_SPENDING_HEAD = (
    *("judge", "calls", "input tokens", "cached", "images"),
    *("output tokens", "reasoning", "cost", "seconds"),
)


def tables(scores: ScoreReport) -> list[Table]:
    """Make all tables: the judges, if there are several, and their significance; each label that
    experts gave, and its further metrics; coverage; usage and cost."""
    sections: list[Table] = []
    shown = shown_benchmarks(scores)
    if len(scores.spending) > 1 and any(map(is_labelled, scores.scores)):
        sections.append(Table(scores.titled("Judges"), *overview(scores), names=1))
        sections += comparison_tables(scores.comparison)
    by_agent = any(s.agent != ALL_AGENTS for s in scores.scores)
    for label in LABELS:
        rows = [s for s in scores.scores if s.label == label and s.benchmark in shown]
        if any(map(is_labelled, rows)):
            differences = scores.against_baseline if label == "success" else ()
            rows += [s for s in scores.baselines if s.label == label and s.benchmark in shown]
            title = scores.titled(LABEL_TITLES[label])
            sections.append(_label_table(title, rows, by_agent, differences))
            sections += _more(title, rows)
    sections += fault_tables(scores.faults)
    sections += equal_recall_tables(scores.equal_recall)
    sections += estimated_rate_tables(scores)
    coverage = [
        _coverage_row(c) for c in scores.coverage if c.benchmark in shown and c.agent == ALL_AGENTS
    ]
    sections.append(Table("Coverage", _COVERAGE_HEAD, coverage))
    sections.append(
        Table(
            "Usage and cost",
            _SPENDING_HEAD,
            [row for spent in scores.spending for row in _spending_rows(spent)],
            names=1,
        )
    )
    return sections


def plain(scores: ScoreReport, wall_seconds: float | None = None) -> str:
    """Render all tables and notes as text with aligned columns."""
    return with_notes(tables(scores), notes(scores, wall_seconds))


def with_notes(shown: Sequence[Table], sentences: Sequence[str], *, rest: str | None = None) -> str:
    """Render tables as text, and sentences below them. Where ``rest`` says where everything stands,
    on one screen: fewer sentences, then no intervals, then the first rows alone."""
    if rest is None:
        return _text(shown, all_folded(sentences))
    estimates = list(map(without_limits, shown))
    below = f"Whole, with intervals: {rest}"
    for made, last in ((shown, []), (estimates, [below])):
        for most in range(WARNINGS, 0, -1):
            lines = first_warnings(sentences, screen_width(), rest=rest, most=most)
            text = _text(made, [*lines, *last])
            if text.count("\n") <= LINES:
                return text
    return first_screen([], estimates, (), sentences, rest=below, more=rest, most=1).lstrip("\n")


def _text(shown: Sequence[Table], lines: Sequence[str]) -> str:
    return "\n".join([render(shown, "table"), *lines]).rstrip("\n") + "\n"


def _label_table(
    title: str, rows: list[Score], by_agent: bool, differences: Sequence[MetricDifference]
) -> Table:
    """Below a baseline its judge's difference from it, where there is one."""
    paired = {(d.benchmark, d.first, d.metric): d for d in differences}
    cells: list[tuple[str, ...]] = []
    for s in rows:
        shown = [_score_row(s)]
        if s.baseline and s.agent == ALL_AGENTS and (s.benchmark, s.judge, "f1") in paired:
            shown.append(_baseline_row(s, paired))
        cells += [(row[0], agent_name(s.agent), *row[1:]) for row in shown]
    if not by_agent:
        short = [(row[0], *row[2:]) for row in cells]
        return Table(title, ("benchmark", *_HEAD), short)
    return Table(title, ("benchmark", "agent", *_HEAD), cells, names=3)


def _score_row(score: Score) -> tuple[str, ...]:
    """Make one row; the baseline's is indented below its judge's."""
    return (
        benchmark_name(score.benchmark),
        "  rule-based" if score.baseline else score.judge,
        precision_cell(score),
        percent(score.recall),
        rate_cell(score, "f1"),
        str(score.n),
        str(score.positives),
    )


def _baseline_row(
    score: Score, paired: Mapping[tuple[str, str, Rate], MetricDifference]
) -> tuple[str, ...]:
    """Subtract the baseline from the judge, in percentage points, on the same trajectories."""
    metrics: tuple[Rate, ...] = ("precision", "recall", "f1")
    precision, recall, f1 = (paired[score.benchmark, score.judge, name] for name in metrics)
    points = UNDEFINED if recall.difference is None else f"{100 * recall.difference:+z.1f}"
    return (
        benchmark_name(score.benchmark),
        "  difference",
        signed_cell(precision.difference, precision.low, precision.high),
        points,
        signed_cell(f1.difference, f1.low, f1.high),
        str(precision.n),
        "",
    )


def _more(title: str, rows: list[Score]) -> list[Table]:
    """Make tables of the other metrics, overall: of verdicts, of errors, and of scores."""
    last = rows[-1].benchmark
    whole = [s for s in rows if s.benchmark == last and s.agent == ALL_AGENTS]
    cells = [
        (
            *_score_row(s)[:2],
            rate_cell(s, "recall"),
            *(rate_cell(s, rate) for rate in ("accuracy", "npv", "tnr")),
            *(coefficient_cell(s, rate) for rate in ("kappa", "mcc")),
            design_effect_cell(s),
        )
        for s in whole
    ]
    head = ("benchmark", "judge", "recall", *_MORE.values(), "design effect of precision")
    further = [Table(f"{title}, further metrics [95 %]", head, cells)]
    wrong = [
        (
            *_score_row(s)[:2],
            *(rate_cell(s, rate) for rate in _ERRORS),
            str(s.counts.fp + s.counts.fn),
        )
        for s in whole
    ]
    head = ("benchmark", "judge", *_ERRORS.values(), "errors")
    further.append(Table(f"{title}, errors [95 %]", head, wrong))
    scored = [
        (*_score_row(s)[:2], *(coefficient_cell(s, rate) for rate in _OF_SCORES), str(s.scored))
        for s in whole
        if s.scored
    ]
    if scored:
        head = ("benchmark", "judge", *_OF_SCORES.values(), "n")
        further.append(Table(f"{title}, scores [95 %]", head, scored))
    return further


def _coverage_row(coverage: Coverage) -> tuple[str, ...]:
    return (
        benchmark_name(coverage.benchmark),
        coverage.judge,
        str(coverage.judged),
        ", ".join(_endings(coverage)) or UNDEFINED,
        ", ".join(f"{rung} {n}" for rung, n in coverage.shortened.items()) or "none",
        str(coverage.unjudged),
        str(coverage.unlabelled),
    )


def _endings(coverage: Coverage) -> list[str]:
    trained = [f"training set {coverage.training} (left out)"] if coverage.training else []
    return [*(f"{status} {n}" for status, n in coverage.statuses.items()), *trained]


def _spending_rows(spent: JudgeUsage) -> list[tuple[str, ...]]:
    """Make the judge's row, and below it those of its stages if there are several."""
    stages = spent.stages if len(spent.stages) > 1 else ()
    return [
        _spending_row(spent.judge, spent),
        *(_spending_row(f"  {spending.stage}", spending) for spending in stages),
    ]


def _spending_row(name: str, spent: UsageTotals) -> tuple[str, ...]:
    # Cached and image tokens are parts of the input, reasoning of the output.
    usage = spent.usage
    dollars, unpriced = paid_dollars([spent]), spent.unpriced - spent.cached_unpriced
    cost = "unknown" if dollars is None else f"${dollars:.4f}"
    if spent.cached_cost:
        cost += f" + ${spent.cached_cost:.4f} cached"
    if dollars is not None and unpriced:
        cost += f" + {count_of(unpriced, 'call')} of unknown cost"
    tokens = (
        usage.prompt,
        usage.cache_read,
        usage.image,
        usage.output,
        usage.reasoning,
    )
    return (
        name,
        str(spent.calls),
        *(f"{number:,}" for number in tokens),
        cost if spent.calls else "unknown" if is_not_told(name) else "$0",
        f"{spent.seconds:.1f}",
    )
