"""``index.html``: the leaderboard as one static page without scripts and without a network."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from trajudge.eval.leaderboard.output.cells import (
    COST_NOTE,
    cost_text,
    coverage_text,
    kappa_text,
    rank_text,
)
from trajudge.eval.leaderboard.output.csv_table import board_csv
from trajudge.eval.leaderboard.ranks import METHOD
from trajudge.eval.leaderboard.records import Board, BoardRow, BoardSuite
from trajudge.eval.reporting.formatting import (
    benchmark_name,
    percent,
    precision_cell,
    rate_cell,
)
from trajudge.trajectories.util.atomic import make_folder, write_bytes
from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.terminal import one_line

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
