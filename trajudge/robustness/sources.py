"""The trajectories that are perturbed, with what is known of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from trajudge.annotations import LabelsBy
from trajudge.eval.store.inputs import DataSource, find_source, open_spec
from trajudge.robustness.catalogue import catalogue
from trajudge.robustness.facts import FACTS, known_facts, source_of, with_siblings
from trajudge.robustness.model import Facts
from trajudge.trajectories.loaders import parse_source
from trajudge.trajectories.model import Trajectory, TrajectoryKey
from trajudge.util.errors import UserError


class Subjects(NamedTuple):
    """Labelled trajectories in their order, and the facts of each; ``folder`` is that of the
    recording, where the truth rests on a state."""

    trajectories: tuple[Trajectory, ...]
    facts: Mapping[TrajectoryKey, Facts]
    folder: Path | None = None


def subjects(
    data: str | None, annotations: str | None = None, by: LabelsBy | None = None
) -> Subjects:
    """Open ``--data`` and its labels as a run does. Raises UserError."""
    return subjects_of(find_source(data, annotations, by=by))


def subjects_of(source: DataSource) -> Subjects:
    """Read the labelled trajectories of a run's data. Raises UserError."""
    folder = _folder_of_facts(source)
    facts = known_facts(source.annotations, folder)
    read = tuple(
        one for one in source.read(lambda key: key in facts) if isinstance(one, Trajectory)
    )
    if all(facts[one.key].success is None for one in read):
        labelled = f" in {source.labels}" if source.labels else ""
        raise UserError(
            f"{source.spec}: none of its trajectories has a label of success{labelled}, and what a "
            "change does to an unknown truth is not told: name labels with --annotations KIND:PATH"
        )
    variants = {one.name for one in catalogue().values() if one.grade == "native"}
    told = with_siblings(read, facts, variants)
    own = tuple(one for one in read if folder is None or source_of(one.key, variants) not in facts)
    return Subjects(own, told, folder)


def _folder_of_facts(source: DataSource) -> Path | None:
    if source.trajectories is not None:
        return None
    path = parse_source(open_spec(source.spec))[1]
    if path is None:
        return None
    folder = path if path.is_dir() else path.parent
    return folder if (folder / FACTS).is_file() else None
