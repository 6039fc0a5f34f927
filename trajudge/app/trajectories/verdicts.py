"""All that is said of one trajectory: by the judges of the runs, the rule and the experts."""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

from trajudge.app.server.links import address
from trajudge.app.server.workspace import Workspace
from trajudge.trajectories.model import TrajectoryKey
from trajudge.util.errors import UserError

_MOST = 200


class SaidVerdict(NamedTuple):
    """``who`` says it; ``success`` is 1, 0, -1 for unsure, None for none; ``link`` leads to the
    judgment, "" where there is none."""

    who: str
    kind: str
    success: int | None
    score: float | None = None
    status: str = ""
    link: str = ""
    head: str = ""


class TrajectoryVerdicts(NamedTuple):
    """What is said of a trajectory; ``problems`` say which runs could not be read, and why."""

    said: tuple[SaidVerdict, ...] = ()
    problems: tuple[str, ...] = ()


def verdicts_on(workspace: Workspace, key: TrajectoryKey) -> TrajectoryVerdicts:
    """Collect the verdicts of all runs that can be read: one that cannot takes none from the
    others."""
    runs, problems = [], []
    for name, run in workspace.runs.items():
        try:
            run.index.refresh()
            runs.append(name)
        except UserError as error:
            problems.append(str(error))
    return TrajectoryVerdicts(_said(workspace, runs, key) if runs else (), tuple(problems))


def _said(workspace: Workspace, runs: list[str], key: TrajectoryKey) -> tuple[SaidVerdict, ...]:
    with workspace.combined(runs).reading() as connection:
        row = connection.execute(
            "select id, rule, reward, expert from trajectory where benchmark = ? and agent = ? "
            "and task_id = ? and attempt = ?",
            (key.benchmark, key.agent, key.task_id, key.attempt),
        ).fetchone()
        if row is None:
            return ()
        return (*_experts(connection, row), *_rule(row), *_judges(connection, row["id"], runs))


def _experts(connection: sqlite3.Connection, row: sqlite3.Row) -> list[SaidVerdict]:
    labels = connection.execute(
        "select annotator, role, success from label where trajectory = ? order by role, annotator",
        (row["id"],),
    ).fetchall()
    return [
        SaidVerdict(
            label["annotator"], label["role"], -1 if label["success"] is None else label["success"]
        )
        for label in labels
    ]


def _rule(row: sqlite3.Row) -> list[SaidVerdict]:
    if row["rule"] is None:
        return []
    return [SaidVerdict("official reward", "rule", row["rule"], score=row["reward"])]


def _judges(connection: sqlite3.Connection, trajectory: int, runs: list[str]) -> list[SaidVerdict]:
    rows = connection.execute(
        "select run, place, judge, sample, status, success, score, head from judgment "
        "where trajectory = ? order by judge, run, sample limit ?",
        (trajectory, _MOST),
    ).fetchall()
    return [
        SaidVerdict(
            who=row["judge"] + (f", sample {row['sample']}" if row["sample"] else ""),
            kind="judge",
            success=row["success"],
            score=row["score"],
            status="" if row["status"] == "ok" else row["status"],
            link=address("run", runs[row["run"]], "judgment", row["place"]),
            head=row["head"],
        )
        for row in rows
    ]
