"""A leaderboard as ``index.html``, ``leaderboard.csv`` and a first screen.

One row of texts serves all three; equal boards give equal bytes, and every text is escaped.
"""

from __future__ import annotations

import csv
from importlib.resources import files
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

from trajudge.eval.leaderboard.board import METHOD, Board, BoardRow, BoardSuite, RankRange
from trajudge.eval.reporting.sentences import (
    UNDEFINED,
    benchmark_name,
    percent,
    precision_cell,
    rate_cell,
    unit_of,
)
from trajudge.eval.scoring.records import OVERALL
from trajudge.util.errors import UserError
from trajudge.util.files import make_folder, write_bytes
from trajudge.util.tables import Table, first_screen, fitted, screen_width
from trajudge.util.terminal import count_of, listed, one_line

HEAD = (
    *("rank", "judge", "precision [95 %]", "recall", "F1", "F1 rank", "κ"),
    *("$/1k", "n", "covered"),
)

# Left out where a screen is narrow.
MINOR = frozenset({"F1 rank", "κ"})

COST_NOTE = "$/1k: US dollars per 1,000 judgments; ? where a price is not known"


def row_cells(row: BoardRow) -> tuple[str, ...]:
    """Write a row for ``HEAD``."""
    score = row.score
    return (
        rank_text(row.ranks.get("precision")),
        row.judge,
        precision_cell(score),
        percent(score.recall),
        percent(score.f1),
        rank_text(row.ranks.get("f1")),
        UNDEFINED if score.kappa is None else f"{score.kappa:z.2f}",
        cost_text(row.cost),
        str(score.n),
        coverage_text(row),
    )


def rank_text(rank: RankRange | None) -> str:
    """Write the ranks that a judge may hold, such as 1–3."""
    if rank is None:
        return UNDEFINED
    return f"{rank.best}" if rank.best == rank.worst else f"{rank.best}–{rank.worst}"


def cost_text(cost: float | None) -> str:
    """Write US dollars per 1,000 judgments with three significant digits at least."""
    if cost is None:
        return "?"
    return "0" if not cost else f"{cost:.2f}" if cost >= 0.1 else f"{cost:.2g}"


def coverage_text(row: BoardRow) -> str:
    """Write the share in percent, rounded down: 100 % is everything."""
    return f"{int(100 * row.coverage)} %"


def kappa_text(row: BoardRow) -> str:
    """Write Cohen's kappa with its interval."""
    return rate_cell(row.score, "kappa")


_RATES: tuple[str, ...] = ("precision", "recall", "f1", "kappa")

COLUMNS = (
    *("suite", "question", "benchmark", "judge"),
    *("rank", "rank_to", "f1_rank", "f1_rank_to"),
    *(f"{rate}{end}" for rate in _RATES for end in ("", "_low", "_high")),
    *("cost_per_1000", "n", "labelled", "coverage", "failed", "positives", "tasks", "common"),
)


def board_csv(board: Board) -> str:
    """Write the whole board, in the order of the page; equal boards give equal bytes."""
    text = StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for suite in board.suites:
        for table in suite.tables:
            for row in table.rows:
                place = {"suite": suite.name, "question": suite.question}
                writer.writerow({**place, "benchmark": table.benchmark, **_line(row)})
    return text.getvalue()


def _line(row: BoardRow) -> dict[str, Any]:
    score = row.score
    line: dict[str, Any] = {
        "judge": one_line(row.judge),
        "cost_per_1000": row.cost,
        "n": score.n,
        "labelled": row.labelled,
        "coverage": row.coverage,
        "failed": score.missing,
        "positives": score.positives,
        "tasks": score.tasks,
        "common": row.common,
    }
    for column, rank in (("rank", row.ranks.get("precision")), ("f1_rank", row.ranks.get("f1"))):
        line[column] = rank and rank.best
        line[f"{column}_to"] = rank and rank.worst
    for rate in _RATES:
        defined = rate != "precision" or score.counts.accepted
        line[rate] = getattr(score, rate) if defined else None
        line[f"{rate}_low"], line[f"{rate}_high"] = score.intervals.get(rate, (None, None))
    return line


PAGE, TABLE = "index.html", "leaderboard.csv"


class RowView(NamedTuple):
    """A row as it is read; ``low``, ``at`` and ``high`` place precision's bar, in percent, and are
    None without an interval."""

    judge: str
    rank: str
    f1_rank: str
    precision: str
    recall: str
    f1: str
    f1_limits: str
    kappa: str
    kappa_limits: str
    cost: str
    n: str
    labelled: str
    coverage: str
    low: str | None
    at: str | None
    high: str | None


class TableView(NamedTuple):
    """One benchmark's rows."""

    name: str
    labelled: str
    rows: list[RowView]


class SuiteView(NamedTuple):
    """A suite: its tables and, per judge, its row in each of them (None: not judged)."""

    title: str
    asked: str
    tables: list[TableView]
    matrix: list[tuple[str, list[RowView | None]]]
    remarks: list[str]


def write_board(board: Board, folder: Path) -> None:
    """Write ``index.html`` and ``leaderboard.csv`` into ``folder``. Raises UserError where they
    cannot be written."""
    try:
        make_folder(folder, "--out")
        write_bytes(folder / TABLE, board_csv(board).encode())
        write_bytes(folder / PAGE, board_page(board).encode())
    except OSError as error:
        raise UserError(f"--out {folder}: cannot be written ({error.strerror})") from error


def board_page(board: Board) -> str:
    """Render the page; equal boards give equal bytes. Every text is escaped."""
    from jinja2 import Environment, StrictUndefined  # noqa: PLC0415 - only where a page is written

    template = files(__package__).joinpath("page.html").read_text(encoding="utf-8")
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(template).render(
        suites=[_suite(suite) for suite in board.suites],
        split=board.split,
        left_out=[one_line(reason) for reason in board.left_out],
        notes=[one_line(note) for note in board.notes],
        method=METHOD,
        cost_note=COST_NOTE,
        table=TABLE,
    )


def _suite(suite: BoardSuite) -> SuiteView:
    tables = [
        TableView(
            benchmark_name(table.benchmark),
            f"{max((row.labelled for row in table.rows), default=0):,}",
            [_row(row) for row in table.rows],
        )
        for table in suite.tables
    ]
    judges = dict.fromkeys(row.judge for table in tables for row in table.rows)
    matrix = [
        (judge, [next((r for r in table.rows if r.judge == judge), None) for table in tables])
        for judge in judges
    ]
    remarks = [one_line(line) for line in suite.remarks]
    return SuiteView(one_line(suite.title), suite.asked.capitalize(), tables, matrix, remarks)


def _row(row: BoardRow) -> RowView:
    score = row.score
    limits = score.intervals.get("precision") if score.counts.accepted else None
    return RowView(
        judge=one_line(row.judge),
        rank=rank_text(row.ranks.get("precision")),
        f1_rank=rank_text(row.ranks.get("f1")),
        precision=precision_cell(score),
        recall=percent(score.recall),
        f1=percent(score.f1),
        f1_limits=rate_cell(score, "f1"),
        kappa="–" if score.kappa is None else f"{score.kappa:z.2f}",
        kappa_limits=kappa_text(row),
        cost=cost_text(row.cost),
        n=f"{score.n:,}",
        labelled=f"{row.labelled:,}",
        coverage=coverage_text(row),
        low=percent(limits[0]) if limits else None,
        at=percent(score.precision) if limits else None,
        high=percent(1 - limits[1]) if limits else None,
    )


_WIDE = 96

_TIES = (
    "Ranks by precision (F1 rank: by F1) on the trajectories that two judges share, Holm over all "
    "pairs, α = .05; not significant: a shared rank"
)


def leaderboard_screen(board: Board, page: Path) -> str:
    """Lay out the first screen: the best judge of every suite, a table each, where all else is."""
    above = fitted(lambda most: [_finding(suite, most) for suite in board.suites], screen_width())
    tables = [_table(suite) for suite in board.suites]
    several = len(board.suites) > 1
    warnings = [
        *(f"warning: left out: {reason}" for reason in board.left_out),
        *(
            f"{line} ({suite.title})" if several else line
            for suite in board.suites
            for line in suite.remarks[: 1 if several else None]
        ),
    ]
    count = sum(len(suite.remarks) for suite in board.suites)
    count += len(board.notes) + len(board.left_out)
    rest = f"Every benchmark, κ with limits, {count_of(count, 'warning')}: {page}"
    return first_screen(above, tables, [_TIES, COST_NOTE], warnings, rest=rest, more=str(page))


def _table(suite: BoardSuite) -> Table:
    """Make the table over all benchmarks, without its minor columns on a narrow screen."""
    kept = [
        place for place, name in enumerate(HEAD) if screen_width() >= _WIDE or name not in MINOR
    ]
    rows = [row_cells(row) for row in suite.tables[0].rows]
    return Table(
        f"{suite.name}: {_place(suite)}",
        tuple(HEAD[place] for place in kept),
        [tuple(row[place] for place in kept) for row in rows],
        names=2,
    )


def _place(suite: BoardSuite) -> str:
    first = suite.tables[0]
    count = max((row.labelled for row in first.rows), default=0)
    if first.benchmark != OVERALL:
        return f"{suite.asked}, {count:,} labelled trajectories"
    return f"{suite.asked}, {count:,} labelled trajectories of {len(suite.tables) - 1} benchmarks"


def _finding(suite: BoardSuite, most: int | None) -> str:
    """Name the judges of rank 1 by precision: one that leads, or all that are not told apart, of
    more than ``most`` the first."""
    rows = suite.tables[0].rows
    first = [row for row in rows if "precision" in row.ranks and row.ranks["precision"].best == 1]
    if not first:
        return f"{suite.title}: no judge accepted a trajectory, therefore none is ranked"
    if len(rows) == 1:
        cell = precision_cell(rows[0].score)
        return f"{suite.title}: {rows[0].judge} alone, precision {cell}{unit_of(cell)}"
    if len(first) == 1:
        cell = precision_cell(first[0].score)
        return (
            f"{suite.title}: {first[0].judge} is first of {len(rows)} judges by precision, "
            f"{cell}{unit_of(cell)}"
        )
    return (
        f"{suite.title}: {len(first)} of {len(rows)} judges share the first rank by precision: "
        f"{listed([row.judge for row in first], most)}"
    )
