"""Judges that need no model, run on the spot: what every other judge has to beat."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from trajudge.annotations import primary_labels
from trajudge.eval.baselines import trivial_baselines
from trajudge.eval.data.inputs import find_source
from trajudge.eval.data.sources import Source
from trajudge.eval.leaderboard.sources.entries import BoardEntry
from trajudge.judges.client import NoModel
from trajudge.judges.judging import judge_trajectory
from trajudge.judges.model import Judgment
from trajudge.judges.registry import make_judge, needs_of
from trajudge.trajectories.model import Trajectory
from trajudge.trajectories.util.errors import UserError

WITHOUT_MODEL = ("heuristic",)


def baseline_entries(spec: str, annotations: str | None = None) -> list[BoardEntry]:
    """Judge all labelled trajectories of ``spec`` (KIND:PATH, or "sample") without a call.

    The judges are the heuristic and the trivial baselines, of which the trained ones are fitted on
    other tasks than the judged one's; the official rewards come along. Raises UserError where
    the data cannot be opened, or no trajectory has a label.
    """
    dataset = find_source(spec, annotations)
    labels = primary_labels(dataset.annotations)
    runs = [
        run
        for run in dataset.read(labels.__contains__)
        if isinstance(run, Trajectory) and run.key in labels
    ]
    if not runs:
        raise UserError(f"--data {spec}: no trajectory has an expert's label: add --annotations")
    rewards = {run.key: run.official_reward for run in runs}
    judgments = [*asyncio.run(_judged(runs)), *trivial_baselines(runs, labels).judgments]
    source = Source("baselines", judgments, rewards, labels, data=[dataset.spec])
    return [BoardEntry(source, "baselines", free=True, trusted=True)]


async def _judged(runs: Sequence[Trajectory]) -> list[Judgment]:
    judgments = []
    for name in WITHOUT_MODEL:
        judge_id, judge = make_judge(name)
        needs = needs_of(name)
        judgments += [
            await judge_trajectory(judge_id, judge, run, NoModel(), needs=needs) for run in runs
        ]
    return judgments
