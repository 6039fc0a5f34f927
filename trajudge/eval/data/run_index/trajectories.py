"""Trajectories of an index: their numbers, their labels and their official rewards."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from trajudge.annotations.model import Annotation, primary_labels
from trajudge.eval.data.index.keys import KeyLike
from trajudge.eval.data.run_index.words import LONGEST, put_told
from trajudge.trajectories.model import Trajectory, TrajectoryKey, canonical_task_id

UNSURE = -1
_ANSWER = 400  # characters of a goal or an answer that stand in the index


class KnownTrajectory(NamedTuple):
    """A trajectory's number, and what the expert and the rule say of it."""

    number: int
    expert: int | None = None
    rule: int | None = None


class KnownTrajectories:
    """The trajectories of an index by their keys; a new one gets the next number."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._known = {
            (row[1], row[2], row[3], row[4]): KnownTrajectory(row[0], row[5], row[6])
            for row in connection.execute(
                "select id, benchmark, agent, task_id, attempt, expert, rule from trajectory"
            )
        }

    def of(self, key: KeyLike) -> KnownTrajectory:
        """Look a trajectory up, or add it."""
        parts = key.benchmark, key.agent, canonical_task_id(key.benchmark, key.task_id), key.attempt
        known = self._known.get(parts)
        if known is None:
            known = self._known[parts] = KnownTrajectory(len(self._known) + 1)
            self._connection.execute(
                "insert into trajectory (id, benchmark, agent, task_id, attempt) "
                "values (?, ?, ?, ?, ?)",
                (known.number, *parts),
            )
        return known


def put_labels(connection: sqlite3.Connection, labels: Iterable[Annotation]) -> None:
    """Replace all labels; a trajectory's expert is that of ``primary_labels``."""
    labels = list(labels)
    known = KnownTrajectories(connection)
    connection.execute("delete from label")
    connection.executemany(
        "insert or replace into label values (?, ?, ?, ?, ?, ?, ?)",
        [
            (
                known.of(label.key).number,
                label.annotator,
                str(label.role),
                label.success,
                label.side_effect,
                label.repetition,
                label.optimality,
            )
            for label in labels
        ],
    )
    connection.execute(
        "update trajectory set expert = null, side_effect = null, repetition = null, split = null, "
        "inclusion = null"
    )
    connection.executemany(
        "update trajectory set expert = ?, side_effect = ?, repetition = ?, split = ?, "
        "inclusion = ? where id = ?",
        [
            (
                UNSURE if label.success is None else label.success,
                label.side_effect,
                label.repetition,
                label.split,
                label.inclusion_probability,
                known.of(key).number,
            )
            for key, label in primary_labels(labels).items()
        ],
    )


def put_rewards(
    connection: sqlite3.Connection, rewards: Mapping[TrajectoryKey, float | None]
) -> None:
    """Replace all official rewards and the rule's verdicts that they stand for."""
    known = KnownTrajectories(connection)
    connection.execute("update trajectory set reward = null, rule = null")
    connection.executemany(
        "update trajectory set reward = ?, rule = ? where id = ?",
        [
            (reward, None if reward is None else reward > 0.5, known.of(key).number)
            for key, reward in rewards.items()
        ],
    )


def spread(connection: sqlite3.Connection) -> None:
    """Put the labels and the rule's verdicts beside every judgment."""
    connection.execute(
        "update judgment set expert = t.expert, rule = t.rule from trajectory t "
        "where t.id = judgment.trajectory"
    )


class Described(NamedTuple):
    """A trajectory's goal and answer, as far as they are looked through, and its steps."""

    key: TrajectoryKey
    goal: str
    answer: str
    steps: int

    @classmethod
    def of(cls, trajectory: Trajectory) -> Described:
        """Take what is kept of a trajectory."""
        goal, answer = trajectory.goal[:LONGEST], (trajectory.answer or "")[:LONGEST]
        return cls(trajectory.key, goal, answer, len(trajectory.steps))


def undescribed(connection: sqlite3.Connection) -> set[TrajectoryKey]:
    """List the trajectories whose steps are not known yet."""
    rows = connection.execute(
        "select benchmark, agent, task_id, attempt from trajectory where steps is null"
    )
    return {TrajectoryKey(benchmark=b, agent=a, task_id=t, attempt=n) for b, a, t, n in rows}


def describe(connection: sqlite3.Connection, trajectories: Iterable[Described]) -> None:
    """Note goal, answer and steps of trajectories that are known and were not described yet."""
    for one in trajectories:
        row = connection.execute(
            "update trajectory set goal = ?, answer = ?, steps = ? where benchmark = ? "
            "and agent = ? and task_id = ? and attempt = ? and steps is null returning id",
            (_stored(one.goal), _stored(one.answer), one.steps, *one.key.order),
        ).fetchone()
        if row is not None:
            put_told(connection, row[0], one.goal, one.answer)


def _stored(text: str) -> str:
    """Cut a text; a lone surrogate, which SQLite cannot hold, is replaced."""
    return text[:_ANSWER].encode("utf-8", "replace").decode()
