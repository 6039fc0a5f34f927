"""``leaderboard.csv``: a line per judge and benchmark, rates as fractions, undefined ones blank."""

from __future__ import annotations

import csv
from io import StringIO
from typing import Any

from trajudge.eval.leaderboard.records import Board, BoardRow
from trajudge.eval.scoring.records import Rate
from trajudge.trajectories.util.terminal import one_line

_RATES: tuple[Rate, ...] = ("precision", "recall", "f1", "kappa")
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
