"""The scores as tables: ``renderable`` for a terminal through rich, ``plain`` as text.

Precision comes first and never without its interval.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from eval.figures import benchmark_name, percent, precision_cell
from eval.overview import overview
from eval.scoring import LABELS, OVERALL, Coverage, Label, Ledger, Score, Scores, Spending
from trajectories.terminal import one_line

if TYPE_CHECKING:
    from rich.console import RenderableType

FEW_POSITIVES = 20

_TITLES: dict[Label, str] = {
    "success": "Success",
    "side_effect": "Side effect",
    "repetition": "Repetition",
}
_HEAD = ("benchmark", "judge", "precision [95 %]", "recall", "F1", "n", "positives")
_COVERAGE_HEAD = ("benchmark", "judge", "judged", "by status", "not judged", "no annotation")
_SPENDING_HEAD = (
    *("judge", "calls", "input tokens", "cached", "images"),
    *("output tokens", "reasoning", "cost", "seconds"),
)
_FOLDED = {"judge", "by status", "cost"}
_FAILED = {
    "negative": "counted as not accepted",
    "exclude": "left out",
    "agentrewardbench": "counted as AgentRewardBench does",
}

Table = tuple[str, tuple[str, ...], list[tuple[str, ...]]]


def tables(scores: Scores) -> list[Table]:
    """(title, head, rows) of every table: the judges, if there are several; each label that
    experts gave; coverage, spending."""
    found: list[Table] = []
    shown = _shown(scores)
    if len(scores.spending) > 1 and any(map(_labelled, scores.scores)):
        found.append(("Judges", *overview(scores)))
    for label in LABELS:
        of_label = [s for s in scores.scores if s.label == label and s.benchmark in shown]
        if any(_labelled(s) for s in of_label):
            found.append((_TITLES[label], _HEAD, [_score_row(s) for s in of_label]))
    coverage = [_coverage_row(c) for c in scores.coverage if c.benchmark in shown]
    found.append(("Coverage", _COVERAGE_HEAD, coverage))
    spending = [row for spent in scores.spending for row in _spending_rows(spent)]
    found.append(("Spending", _SPENDING_HEAD, spending))
    return [
        (title, head, [tuple(map(one_line, row)) for row in rows]) for title, head, rows in found
    ]


def _labelled(found: Score) -> bool:
    """Whether an expert's label stands behind the row, judged or not."""
    return bool(found.n or found.missing or found.unsure)


def _shown(scores: Scores) -> set[str]:
    """One benchmark alone is shown once, not as overall a second time."""
    benchmarks = {found.benchmark for found in scores.coverage}
    return benchmarks - {OVERALL} if len(benchmarks) == 2 else benchmarks


def notes(scores: Scores, wall_seconds: float | None = None) -> list[str]:
    """Sentences that must stand below the tables: what weakens the numbers, and the wall time."""
    lines = [*_few_positives(scores), *scores.remarks]
    for found in scores.scores:
        if found.benchmark == OVERALL:
            lines += _left_out(found, _FAILED[scores.missing])
    if wall_seconds is not None:
        lines.append(f"wall time: {wall_seconds:.1f} s")
    return [one_line(line) for line in lines]


def renderable(scores: Scores, wall_seconds: float | None = None) -> RenderableType:
    """All tables and notes for a rich console."""
    from rich.box import SIMPLE_HEAD  # noqa: PLC0415
    from rich.console import Group  # noqa: PLC0415
    from rich.table import Table as RichTable  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    parts: list[RenderableType] = []
    for title, head, rows in tables(scores):
        table = RichTable(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
        for index, name in enumerate(head):
            # Only names may be folded on a narrow terminal, never a number.
            table.add_column(
                name,
                justify="left" if index < 2 else "right",
                overflow="fold",
                no_wrap=name not in _FOLDED,
            )
        for row in rows:
            table.add_row(*(Text(cell) for cell in row))
        parts.append(table)
    parts += [Text(note) for note in notes(scores, wall_seconds)]
    return Group(*parts)


def plain(scores: Scores, wall_seconds: float | None = None) -> str:
    """All tables and notes as text with aligned columns, for files and pipes."""
    blocks = []
    for title, head, rows in tables(scores):
        widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
        lines = [
            "  ".join(
                cell.ljust(width) if index < 2 else cell.rjust(width)
                for index, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in (head, *rows)
        ]
        blocks.append("\n".join([title, *lines]))
    blocks.append("\n".join(notes(scores, wall_seconds)))
    return "\n\n".join(block for block in blocks if block) + "\n"


def _score_row(found: Score) -> tuple[str, ...]:
    """The baseline's row is indented below its judge's."""
    return (
        benchmark_name(found.benchmark),
        "  rule-based" if found.baseline else found.judge,
        precision_cell(found),
        percent(found.recall),
        percent(found.f1),
        str(found.n),
        str(found.positives),
    )


def _coverage_row(found: Coverage) -> tuple[str, ...]:
    return (
        benchmark_name(found.benchmark),
        found.judge,
        str(found.judged),
        ", ".join(f"{status} {n}" for status, n in found.statuses.items()) or "–",
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


def _few_positives(scores: Scores) -> list[str]:
    """A warning for every label and benchmark with too few positives, its judges together."""
    judges: dict[tuple[str, str, int], list[str]] = {}
    shown = _shown(scores)
    for found in scores.scores:
        few = found.positives < FEW_POSITIVES and found.benchmark in shown
        if few and not found.baseline and _labelled(found):
            cell = (_TITLES[found.label], benchmark_name(found.benchmark), found.positives)
            judges.setdefault(cell, []).append(found.judge)
    return [
        f"warning: {title} on {benchmark} has {positives} positives, fewer than "
        f"{FEW_POSITIVES}, for {', '.join(names)}: read the intervals, not the points"
        for (title, benchmark, positives), names in judges.items()
    ]


def _left_out(found: Score, policy: str) -> list[str]:
    """What one overall row does not count, or counts by policy."""
    name, where = found.judge, _TITLES[found.label]
    if found.baseline:
        what = f"{found.without_reward} trajectories without official reward left out"
        return [f"rule-based beside {name}: {what}"] if found.without_reward else []
    lines = []
    if found.missing:
        lines.append(f"{name}, {where}: {found.missing} failed judgments {policy}")
    if found.unsure:
        lines.append(f"{name}, {where}: {found.unsure} labels unsure, left out")
    return lines
