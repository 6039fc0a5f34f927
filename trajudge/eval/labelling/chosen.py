"""A queue of trajectories that a person picked from a run's table: all of them, without a draw.

The frame is what was picked, each with inclusion probability 1: estimates speak of these
trajectories alone. Only their judgments are read, at their places in the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from trajudge.eval.labelling.building import QueuePlan, plan_of_frame
from trajudge.eval.labelling.frame import read_frame
from trajudge.eval.labelling.settings import BuildConfig
from trajudge.eval.sources import Source
from trajudge.eval.store.queries import Filter
from trajudge.eval.store.run_folder import JUDGMENTS, read_labels
from trajudge.eval.store.run_index import RunIndex
from trajudge.eval.store.table import OpenedFile
from trajudge.eval.store.task_goals import read_goals
from trajudge.judges.model import Judgment
from trajudge.trajectories.model import TrajectoryKey
from trajudge.util.errors import UserError

MOST_CHOSEN = 2_000
"""Trajectories of one queue that is made from a table."""
REASON = "picked by hand"


def chosen_keys(index: RunIndex, places: Sequence[int], chosen: Filter) -> list[TrajectoryKey]:
    """List the trajectories of the judgments at ``places`` (lines of the run's file), or where
    there are none, all that the filter keeps; each once. Raises UserError for too many, or none."""
    clause = chosen.trajectories()
    sql, values = f"where {clause.sql}", clause.parameters
    if places:
        marks = ", ".join("?" * len(places))
        sql = f"join judgment j on j.trajectory = t.id where j.place in ({marks})"
        values = tuple(places)
    with index.reading() as connection:
        rows = connection.execute(
            f"select distinct t.benchmark, t.agent, t.task_id, t.attempt from trajectory t {sql} "  # noqa: S608 - values are bound
            f"limit {MOST_CHOSEN + 1}",
            values,
        ).fetchall()
    if not rows:
        raise UserError("There is no trajectory to label: tick rows, or change the filter.")
    if len(rows) > MOST_CHOSEN:
        raise UserError(
            f"A queue from the table has at most {MOST_CHOSEN:,} trajectories: tick rows, narrow "
            "the filter, or draw from all of them with  trajudge label build --filter"
        )
    return [TrajectoryKey(benchmark=b, agent=a, task_id=t, attempt=n) for b, a, t, n in rows]


def plan_chosen(index: RunIndex, keys: Sequence[TrajectoryKey], config: BuildConfig) -> QueuePlan:
    """Plan a queue of all ``keys``. Raises UserError where the run's files cannot be read."""
    whole = config.model_copy(update={"strategy": "random", "budget": len(keys)})
    source = _source(index, keys)
    return plan_of_frame(whole, source, read_frame(source), REASON)._replace(
        filter=config.filter or REASON
    )


def _source(index: RunIndex, keys: Iterable[TrajectoryKey]) -> Source:
    """Read the judgments, labels and official rewards of some trajectories."""
    file = OpenedFile(index.folder / JUDGMENTS)
    judgments, rewards = [], {}
    with index.reading() as connection:
        for key in keys:
            rows = connection.execute(
                "select j.offset, j.length, t.reward from trajectory t "
                "join judgment j on j.trajectory = t.id where t.benchmark = ? and t.agent = ? "
                "and t.task_id = ? and t.attempt = ? order by j.id",
                key.order,
            ).fetchall()
            for offset, length, reward in rows:
                judgments.append(file.record(Judgment, offset, length))
                rewards[key] = reward
    labels = read_labels(index.folder)
    known = {key: labels[key] for key in rewards if key in labels}
    return Source(str(index.folder), judgments, rewards, known, goals=read_goals(index.folder))
