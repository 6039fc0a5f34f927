"""What a run cost, and which groups of trajectories cost most or are judged worst."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from trajudge.app.runs.overview import table_link
from trajudge.app.server.workspace import OpenedRun
from trajudge.eval.store.table import FileIdentity

_SHOWN = 5
_SECONDS = 30.0  # that reading it may take
_WORST = """
select t.benchmark, t.agent, count(*), sum(j.success <> t.expert)
from judgment j join trajectory t on t.id = j.trajectory
where t.expert >= 0 and j.success is not null
group by 1, 2 having sum(j.success <> t.expert) > 0
order by 4 desc, 1, 2 limit ?
"""
_DEAREST = """
select t.benchmark, t.agent, count(*), sum(j.cost)
from judgment j join trajectory t on t.id = j.trajectory
group by 1, 2 having sum(j.cost) > 0
order by 4 desc, 1, 2 limit ?
"""


class Distribution(NamedTuple):
    """Costs in dollars or seconds of a judge's judgments; ``unknown`` have no figure."""

    judge: str
    known: int
    unknown: int
    total: float
    median: float
    p95: float
    most: float


class Group(NamedTuple):
    """A benchmark and agent, its number of judgments and what they sum up to."""

    benchmark: str
    agent: str
    judgments: int
    value: float
    link: str


class Spending(NamedTuple):
    """What was spent, by judge, and the groups at the top."""

    cost: list[Distribution]
    seconds: list[Distribution]
    dearest: list[Group]
    worst: list[Group]


class RunSpending:
    """Reads what runs spent, and keeps it as long as their files stay. To be used from any
    thread."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[tuple[FileIdentity, ...], Spending]] = {}

    def of(self, run: OpenedRun) -> Spending:
        """Read it from the run's index. Raises UserError as the index does."""
        run.index.refresh()
        version, kept = run.index.version, self._kept.get(run.name)
        if kept is None or kept[0] != version:
            kept = self._kept[run.name] = version, _spending_of(run)
        return kept[1]


def _spending_of(run: OpenedRun) -> Spending:
    with run.index.reading(_SECONDS) as connection:
        return Spending(
            _distributions(connection, "cost"),
            _distributions(connection, "seconds"),
            _groups(connection, _DEAREST, run.name, ()),
            _groups(connection, _WORST, run.name, (("wrong", ":", "any"),)),
        )


def _distributions(connection: sqlite3.Connection, column: str) -> list[Distribution]:
    sql = f"select judge, {column} from judgment"  # noqa: S608 - one of two names of ours
    values: dict[str, list[float | None]] = {}
    for judge, value in connection.execute(sql):
        values.setdefault(judge, []).append(value)
    return [_distribution(judge, values[judge]) for judge in sorted(values)]


def _distribution(judge: str, values: Sequence[float | None]) -> Distribution:
    known = np.array([value for value in values if value is not None])
    if not len(known):
        return Distribution(judge, 0, len(values), 0.0, 0.0, 0.0, 0.0)
    median, p95 = np.quantile(known, [0.5, 0.95]).tolist()
    unknown = len(values) - len(known)
    return Distribution(
        judge, len(known), unknown, float(known.sum()), median, p95, float(known.max())
    )


def _groups(
    connection: sqlite3.Connection, sql: str, run: str, terms: Sequence[tuple[str, str, str]]
) -> list[Group]:
    return [
        Group(
            benchmark,
            agent,
            count,
            value,
            table_link(run, ("benchmark", ":", benchmark), ("agent", ":", agent), *terms),
        )
        for benchmark, agent, count, value in connection.execute(sql, (_SHOWN,))
    ]
