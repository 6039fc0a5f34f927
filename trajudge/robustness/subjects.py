"""Trajectories to perturb, with the facts about their truth, from the ``facts.jsonl`` of a
recording or else from human labels."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Set
from pathlib import Path
from typing import Any, NamedTuple

import orjson
from pydantic import BaseModel

from trajudge.annotations import LabelsBy
from trajudge.annotations.model import Label, primary_labels
from trajudge.eval.store.inputs import DataSource, find_source, open_spec
from trajudge.eval.store.labels import refuse_unequal
from trajudge.robustness.catalogue import catalogue
from trajudge.robustness.model import AnswerOutcome, Facts, GoalOutcome, Sibling
from trajudge.trajectories.loaders import parse_source
from trajudge.trajectories.model import Trajectory, TrajectoryKey
from trajudge.util.errors import UserError
from trajudge.util.validation import read_records

FACTS = "facts.jsonl"
# Goals of other cases with their checker's verdict on each run's state: `trajudge env verify`.
GOALS = "goals.jsonl"
# The suffix of the agent's name in the key of a re-recorded run.
MARK = "~"


class _KeyedLine(BaseModel):
    key: TrajectoryKey


def known_facts(
    annotations: Iterable[Label], folder: Path | None = None
) -> dict[TrajectoryKey, Facts]:
    """Return the facts of every labelled trajectory; those in the ``folder`` of a recording are
    based on the state. Raises UserError with file and line."""
    labels = primary_labels(annotations)
    refuse_unequal(labels, "trajudge robust")
    stated = read_by_key(folder / FACTS) if folder else {}
    goals = read_by_key(folder / GOALS) if folder else {}
    return {
        key: _facts(label, stated.get(key), goals.get(key, {})) for key, label in labels.items()
    }


def with_siblings(
    trajectories: Iterable[Trajectory],
    facts: Mapping[TrajectoryKey, Facts],
    variants: Set[str] = frozenset(),
) -> dict[TrajectoryKey, Facts]:
    """Add to each run with state-based facts the other runs of its case, in the given order, and
    its re-recorded ``variants``."""
    of_case: dict[tuple[str, str], list[tuple[TrajectoryKey, Sibling]]] = defaultdict(list)
    again: dict[TrajectoryKey, dict[str, Sibling]] = defaultdict(dict)
    for one in trajectories:
        known = facts.get(one.key)
        if known and known.source == "state" and known.success is not None:
            sibling = Sibling(
                trajectory=one,
                success=known.success,
                side_effect=known.side_effect,
                repetition=known.repetition,
                answers=known.answers,
            )
            source = source_of(one.key, variants)
            if source is not None and source in facts:
                again[source][one.key.agent.partition(MARK)[2]] = sibling
            else:
                of_case[(one.key.benchmark, one.key.task_id)].append((one.key, sibling))
    related = dict(facts)
    for runs in of_case.values():
        for key, _ in runs:
            others = tuple(sibling for other, sibling in runs if other != key)
            update = {"siblings": others, "again": again.get(key, {})}
            related[key] = facts[key].model_copy(update=update)
    return related


def source_of(key: TrajectoryKey, variants: Set[str]) -> TrajectoryKey | None:
    """Return the key of the run of which this is a re-recorded variant; None for other runs."""
    agent, _, variant = key.agent.partition(MARK)
    return key.model_copy(update={"agent": agent}) if variant in variants else None


def _facts(label: Label, stated: Mapping[str, Any] | None, goals: Mapping[str, Any]) -> Facts:
    labels = {name: getattr(label, name) for name in ("success", "side_effect", "repetition")}
    if stated is None:
        return Facts(**labels)
    predicates = stated.get("predicates", ())
    fields = ("kind", "expected", "found", "right")
    return Facts(
        source="state",
        **labels,
        answers=tuple(
            AnswerOutcome(**{name: one[name] for name in fields})
            for one in stated.get("answers", ())
        ),
        held=tuple(one["name"] for one in predicates if one["holds"]),
        missed=tuple(one["name"] for one in predicates if not one["holds"]),
        goals=tuple(GoalOutcome.model_validate(one) for one in goals.get("goals", ())),
    )


def read_by_key(file: Path) -> dict[TrajectoryKey, dict[str, Any]]:
    """Read JSON Lines with a ``key``; none if there is no such file."""
    if not file.is_file():
        return {}
    fix = "give the folder of a recording"
    return dict(line for _, line in read_records(file, _keyed, missing=fix, damaged=fix))


def _keyed(line: bytes) -> tuple[TrajectoryKey, dict[str, Any]]:
    entry = orjson.loads(line)
    return _KeyedLine.model_validate(entry).key, entry


class Subjects(NamedTuple):
    """Labelled trajectories, in order, and their facts; ``folder`` is the recording's if the
    facts are based on the state."""

    trajectories: tuple[Trajectory, ...]
    facts: Mapping[TrajectoryKey, Facts]
    folder: Path | None = None


def subjects(
    spec: str | None, annotations: str | None = None, by: LabelsBy | None = None
) -> Subjects:
    """Open ``--data`` and its labels as a run does. Raises UserError."""
    return subjects_of(find_source(spec, annotations, by=by))


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
            "change does to an unknown truth is not known: name labels with --annotations KIND:PATH"
        )
    variants = {one.name for one in catalogue().values() if one.grade == "native"}
    related = with_siblings(read, facts, variants)
    own = tuple(one for one in read if folder is None or source_of(one.key, variants) not in facts)
    return Subjects(own, related, folder)


def _folder_of_facts(source: DataSource) -> Path | None:
    if source.trajectories is not None:
        return None
    path = parse_source(open_spec(source.spec))[1]
    if path is None:
        return None
    folder = path if path.is_dir() else path.parent
    return folder if (folder / FACTS).is_file() else None
