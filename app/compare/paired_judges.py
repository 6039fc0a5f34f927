"""Two judges on the same trajectories: who was right where, and whether that may be chance."""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

import numpy as np

from trajudge.app.compare.query import VOTE, CompareQuery
from trajudge.eval.stats.judging.comparison import mcnemar


class PairedJudges(NamedTuple):
    """Trajectories by who was right, among those that the expert labelled and both judges answered;
    ``p`` is McNemar's exact two-sided p, None where the two never differ."""

    both_right: int
    only_first: int
    only_second: int
    both_wrong: int
    p: float | None


def paired_judges(connection: sqlite3.Connection, query: CompareQuery) -> PairedJudges:
    """Count over the filtered trajectories, whatever the preset."""
    clause = query.chosen.trajectories()
    sql = f"select t.expert, {VOTE}, {VOTE} from trajectory t where ({clause.sql})"  # noqa: S608 - values are bound
    parameters = (query.first, query.second, *clause.parameters)
    rows = [
        (first == expert, second == expert)
        for expert, first, second in connection.execute(f"{sql} and t.expert in (0, 1)", parameters)
        if first is not None and second is not None
    ]
    right = np.array(rows, dtype=bool).reshape(-1, 2)
    first, second = right[:, 0], right[:, 1]
    differ = int((first != second).sum())
    return PairedJudges(
        both_right=int((first & second).sum()),
        only_first=int((first & ~second).sum()),
        only_second=int((~first & second).sum()),
        both_wrong=int((~first & ~second).sum()),
        p=float(mcnemar(first, second).p_value) if differ else None,
    )
