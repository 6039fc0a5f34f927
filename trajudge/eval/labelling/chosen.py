"""A queue of trajectories that a person picked from a run's table: all of them, without a draw.

The frame is what was picked, each with inclusion probability 1: estimates speak of these
trajectories alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from trajudge.eval.labelling.building import QueuePlan, plan_of_frame
from trajudge.eval.labelling.frame import read_frame
from trajudge.eval.labelling.settings import BuildConfig
from trajudge.eval.sources import judgments_of, read_run
from trajudge.eval.store.filters import Filter, JudgmentView
from trajudge.eval.store.table import marked
from trajudge.trajectories.model import TrajectoryKey
from trajudge.util.errors import UserError

MOST_CHOSEN = 2_000
"""Trajectories of one queue that is made from a table."""
REASON = "picked by hand"


def chosen_keys(view: JudgmentView, rows: Sequence[int], chosen: Filter) -> list[TrajectoryKey]:
    """List the trajectories of the judgments at ``rows`` (lines of the run's file), or where there
    are none, all that the filter keeps; each once. Raises UserError for too many, or none."""
    kept = chosen.trajectories(view)
    if rows:
        known = [row for row in rows if row < len(view.judgments)]
        kept = marked(len(view.keys), view.trajectory[known])
    if not kept.any():
        raise UserError("There is no trajectory to label: tick rows, or change the filter.")
    if kept.sum() > MOST_CHOSEN:
        raise UserError(
            f"A queue from the table has at most {MOST_CHOSEN:,} trajectories: tick rows, narrow "
            "the filter, or draw from all of them with  trajudge label build --filter"
        )
    return [*view.keys.at(kept)]


def plan_chosen(run: Path, keys: Sequence[TrajectoryKey], config: BuildConfig) -> QueuePlan:
    """Plan a queue of all ``keys`` of a run. Raises UserError where its files cannot be read."""
    whole = config.model_copy(update={"strategy": "random", "budget": len(keys)})
    source = read_run(run)
    wanted = set(keys)
    source.judgments = judgments_of(source.judgments, wanted)
    source.rewards = {key: reward for key, reward in source.rewards.items() if key in wanted}
    source.labels = {key: source.labels[key] for key in keys if key in source.labels}
    return plan_of_frame(whole, source, read_frame(source), REASON)._replace(
        filter=config.filter or REASON
    )
