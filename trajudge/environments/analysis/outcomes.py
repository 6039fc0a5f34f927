"""The runs of recorded folders with their cases and labels."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from trajudge.annotations import store as annotation_store
from trajudge.environments.model.case import Case, read_cases
from trajudge.stats.suites import Tree, tree_from_rollouts
from trajudge.trajectories import store
from trajudge.trajectories.model import Trajectory, TrajectoryKey
from trajudge.util.errors import UserError
from trajudge.util.files import refuse_repeated

LABELS = "labels.jsonl"
AXES = ("instance", "profile", "theme", "ui")


DIMENSIONS = ("depth", "breadth", "interaction", "visual", "information", "reasoning", "risk")


class RunOutcome(NamedTuple):
    """Outcome of one run: key, case, whether it was a success (None: ambiguous), and cost."""

    key: TrajectoryKey
    case: Case
    success: bool | None
    turns: float
    cost: float | None

    @property
    def agent(self) -> str:
        return self.key.agent


def outcomes(folder: Path, cases: dict[str, Case]) -> list[RunOutcome]:
    """Return the runs of a recorded folder. A run of no case (an agent had it with other noise)
    belongs to the case that differs in its noise alone. Raises UserError for a folder that is none,
    or a run of an unknown case or without a label, which would count as ambiguous."""
    if not (folder / LABELS).is_file():
        raise UserError(
            f"{folder}: has no {LABELS}: name a folder that  trajudge env record  wrote"
        )
    labels = {a.key: a.success for a in annotation_store.load(folder / LABELS)}
    known = {_quiet(name): case for name, case in cases.items()} | cases
    runs = []
    for entry in store.read(folder):
        if not isinstance(entry, Trajectory):
            raise UserError(f"{entry.source}: {entry.reason}")
        case = known.get(entry.raw_task_id) or known.get(_quiet(entry.raw_task_id))
        if case is None:
            raise UserError(
                f"{folder}: no case is called {entry.raw_task_id}: give the --cases that the "
                "runs were recorded with"
            )
        if entry.key not in labels:
            raise UserError(
                f"{folder / LABELS}: has no label of {entry.key}: record the folder again, "
                "or restore the file"
            )
        turns, cost = entry.telemetry.get("n_steps", np.nan), entry.telemetry.get("cost")
        runs.append(RunOutcome(entry.key, case, labels[entry.key], turns, cost))
    return runs


def _quiet(task: str) -> str:
    """Return the id of the same configuration without noise."""
    head, _, seed = task.rpartition(".")
    return f"{head.rpartition('.')[0]}.n0.{seed}"


def tree(outcomes: Sequence[RunOutcome]) -> Tree:
    """Return the runs as applications, scenarios, configurations and rollouts. Raises ValueError if
    none is labelled."""
    known = [outcome for outcome in outcomes if outcome.success is not None]
    configs = [outcome.case.config for outcome in known]
    return tree_from_rollouts(
        [config.app for config in configs],
        [f"{config.app}.{config.scenario}" for config in configs],
        [int(bool(outcome.success)) for outcome in known],
        [[getattr(config, axis) for axis in AXES] for config in configs],
    )


def read_outcomes(folders: Sequence[Path], cases: Path) -> list[RunOutcome]:
    """Return the runs of recorded folders. Raises UserError, also for a folder or a run that comes
    twice, which would count twice."""
    known = {case.id: case for case in read_cases(cases)}
    refuse_repeated(folders)
    runs = []
    holders: dict[TrajectoryKey, Path] = {}
    for folder in folders:
        for run in outcomes(folder, known):
            if run.key in holders:
                raise UserError(_counts_twice(run.key, folder, holders[run.key]))
            holders[run.key] = folder
            runs.append(run)
    return runs


def _counts_twice(key: TrajectoryKey, folder: Path, holder: Path) -> str:
    if folder == holder:
        return f"{folder}: holds the run {key} twice, which would count twice: keep one of them"
    return (
        f"{folder}: the run {key} is in {holder} as well and would count twice: leave out one of "
        "the folders; further runs of a case come from  trajudge env record --attempts N"
    )
