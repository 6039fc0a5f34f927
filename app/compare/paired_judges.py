"""Two judges on the same trajectories, counted over those that a filter keeps."""

from __future__ import annotations

import sqlite3

from trajudge.app.compare.query import VOTE, CompareQuery
from trajudge.eval.comparison.two_by_two import PairedCounts, paired_counts


def paired_judges(connection: sqlite3.Connection, query: CompareQuery) -> PairedCounts:
    """Count the trajectories that the expert labelled and both judges answered, whatever the
    preset."""
    clause = query.chosen.trajectories()
    sql = f"select t.expert, {VOTE}, {VOTE} from trajectory t where ({clause.sql})"  # noqa: S608 - values are bound
    parameters = (query.first, query.second, *clause.parameters)
    return paired_counts(
        (first == expert, second == expert)
        for expert, first, second in connection.execute(f"{sql} and t.expert in (0, 1)", parameters)
        if first is not None and second is not None
    )
