"""What the experts, the rule and the judges of all runs say of one trajectory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from trajudge.app.server.links import address
from trajudge.app.server.workspace import CombinedRuns, Workspace
from trajudge.eval.store.filters import HEAD, truth
from trajudge.eval.store.table import KeyColumns, places_among
from trajudge.judges.model import Status
from trajudge.trajectories.model import TrajectoryKey
from trajudge.util.errors import UserError

_MOST = 200


class SaidVerdict(NamedTuple):
    """``who`` says it; ``success`` is "unsure" of an expert who leaves it open, None for none;
    ``link`` leads to the judgment, "" where there is none."""

    who: str
    kind: str
    success: bool | str | None
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
            run.view()
            runs.append(name)
        except UserError as error:
            problems.append(str(error))
    if not runs:
        return TrajectoryVerdicts((), tuple(problems))
    combined = workspace.combined(runs)
    said = (*_experts(workspace, runs, key), *_rule(combined, key), *_judges(combined, key))
    return TrajectoryVerdicts(said, tuple(problems))


def _experts(workspace: Workspace, runs: list[str], key: TrajectoryKey) -> list[SaidVerdict]:
    labels = {
        (label.role, label.annotator): label
        for name in runs
        for label in workspace.runs[name].view().opinions(key)
    }
    return [
        SaidVerdict(who, role, "unsure" if label.success is None else label.success)
        for (role, who), label in sorted(labels.items())
    ]


def _rule(combined: CombinedRuns, key: TrajectoryKey) -> Iterator[SaidVerdict]:
    view = combined.view
    place = int(places_among(KeyColumns.of([key]), view.keys)[0])
    if place >= 0 and not np.isnan(view.reward[place]):
        reward = float(view.reward[place])
        yield SaidVerdict("official reward", "rule", truth(view.rule[place]), score=reward)


def _judges(combined: CombinedRuns, key: TrajectoryKey) -> list[SaidVerdict]:
    rows = combined.view.of_trajectory(key)[:_MOST].tolist()
    judgments = [(row, combined.view.judgments[row]) for row in rows]
    judgments.sort(key=lambda one: (one[1].judge, combined.place(one[0])[0], one[1].sample))
    return [
        SaidVerdict(
            who=judgment.judge + (f", sample {judgment.sample}" if judgment.sample else ""),
            kind="judge",
            success=judgment.success,
            score=judgment.score,
            status="" if judgment.status is Status.OK else str(judgment.status),
            link=address("run", run, "judgment", place),
            head=(judgment.reasoning or judgment.detail)[:HEAD],
        )
        for row, judgment in judgments
        for run, place in [combined.place(row)]
    ]
