"""The leaderboard's first screen."""

from __future__ import annotations

from pathlib import Path

from trajudge.eval.leaderboard.output.cells import COST_NOTE, HEAD, MINOR, row_cells
from trajudge.eval.leaderboard.records import Board, BoardSuite
from trajudge.eval.reporting.formatting import precision_cell, unit_of
from trajudge.eval.scoring.records import OVERALL
from trajudge.trajectories.util.tables import Table, first_screen, fitted, screen_width
from trajudge.trajectories.util.terminal import count_of, listed

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
