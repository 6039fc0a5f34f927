"""Read the trajectories that the trivial baselines of ``trajudge score`` judge."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from trajudge.annotations.model import Labels
from trajudge.eval.baselines.trivial import TrivialBaselines, trivial_baselines
from trajudge.eval.data.inputs import open_recorded
from trajudge.eval.scoring.records import Label
from trajudge.trajectories.loaders import open_source, parse_source
from trajudge.trajectories.model import Trajectory, TrajectoryKey
from trajudge.trajectories.needs import NO_NEEDS
from trajudge.trajectories.util.errors import UserError

# What is read without being asked for: a few seconds' worth.
READ_UNASKED = 512 * 2**20


def read_baselines(
    specs: Sequence[str],
    labels: Labels,
    judged: Iterable[TrajectoryKey],
    *,
    question: Label = "success",
    seed: int,
    most_bytes: int | None = READ_UNASKED,
) -> TrivialBaselines:
    """Judge the ``judged`` trajectories that have a label by the trivial baselines, out of the data
    that ``specs`` name.

    Raises UserError where the data cannot be opened, is not on this machine, or is larger than
    ``most_bytes`` (None: any size).
    """
    runs = read_labelled_runs(specs, labels, judged, question=question, most_bytes=most_bytes)
    return trivial_baselines(runs, labels, question=question, seed=seed)


def read_labelled_runs(
    specs: Sequence[str],
    labels: Labels,
    judged: Iterable[TrajectoryKey],
    *,
    question: Label,
    most_bytes: int | None = None,
) -> list[Trajectory]:
    """Read the ``judged`` trajectories that have a label of ``question``. Raises UserError as
    ``read_baselines``."""
    wanted = {
        key for key in judged if (label := labels.get(key)) and getattr(label, question) is not None
    }
    if not wanted:
        return []
    if not specs:
        raise UserError("the trajectories are not named: add --data KIND:PATH")
    runs = []
    for spec in specs:
        place = open_recorded(spec)
        _check_size(spec, place, most_bytes)
        found = open_source(place, wanted.__contains__, NO_NEEDS)
        runs += [run for run in found if isinstance(run, Trajectory)]
    return runs


def _check_size(spec: str, place: str, most: int | None) -> None:
    if most is None:
        return
    path = parse_source(place)[1]
    if path is None:
        raise UserError(f"the data is {spec}, which would be fetched: name a copy with --data")
    if _larger(path, most):
        raise UserError(
            f"the data, {spec}, is larger than {most // 2**20} MiB: --baselines on reads it"
        )


def _larger(path: Path, most: int) -> bool:
    """Tell whether the file, or all files below the folder, take more bytes."""
    if path.is_file():
        return path.stat().st_size > most
    total = 0
    for folder, _, files in os.walk(path):
        for name in files:
            file = Path(folder, name)
            total += file.stat().st_size if file.is_file() else 0
            if total > most:
                return True
    return False
