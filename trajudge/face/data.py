"""The public functions: what the commands do, from Python."""

from __future__ import annotations

import warnings
from pathlib import Path

from trajudge.annotations import Labels, LabelsBy, primary_labels
from trajudge.eval.store.inputs import find_source, open_spec
from trajudge.trajectories.goals import read_goals
from trajudge.trajectories.loaders import open_source
from trajudge.trajectories.model import Trajectory


def load(data: str | Path = "sample", goals: str | Path | None = None) -> list[Trajectory]:
    """Read all trajectories of ``KIND:PATH``, of a path whose kind is detected, or of ``sample``.

    ``goals`` is a file of goals by task id (JSON, JSON Lines or CSV) for logs that do not hold
    them. A trajectory that cannot be read is omitted with a warning that names its file. Raises
    UserError for data that cannot be opened.
    """
    return read_trajectories(data, goals, warned=3)


def read_trajectories(
    data: str | Path, goals: str | Path | None = None, *, warned: int
) -> list[Trajectory]:
    """Do what ``load`` does; ``warned`` is how many calls above a warning names its place."""
    found: list[Trajectory] = []
    told = read_goals(Path(goals)) if goals is not None else None
    for item in open_source(open_spec(str(data)), goals=told):
        if isinstance(item, Trajectory):
            found.append(item)
        else:
            warnings.warn(f"{item.source}: {item.reason}", stacklevel=warned)
    return found


def labels(
    data: str | Path = "sample",
    annotations: str | None = None,
    labels_by: LabelsBy | None = None,
) -> Labels:
    """Read the expert labels that belong to the data, by trajectory key.

    ``annotations`` names other labels, as ``KIND:PATH``; ``labels_by`` makes one label of several
    annotators' (primary, majority, unanimous, any). Raises UserError for a file that cannot be
    opened, and without ``labels_by`` for annotators who differ.
    """
    return read_labels(data, annotations, labels_by)


def read_labels(
    data: str | Path, annotations: str | None = None, by: LabelsBy | None = None
) -> Labels:
    """Do what ``labels`` does."""
    return primary_labels(find_source(str(data), annotations, by=by).annotations)
