"""How the figures of a leaderboard are written: one head and one row of texts for every output."""

from __future__ import annotations

from trajudge.eval.leaderboard.records import BoardRow, RankRange
from trajudge.eval.reporting.formatting import (
    UNDEFINED,
    coefficient_cell,
    percent,
    precision_cell,
)

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
    return coefficient_cell(row.score, "kappa")
