"""A folder of perturbed trajectories that any judge can be run on: trajectories, labels that hold
after the perturbation, and what was changed in each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pydantic_core import to_json

from trajudge.annotations import store as annotation_store
from trajudge.annotations.model import Label
from trajudge.robustness.apply import apply
from trajudge.robustness.facts import FACTS, read_by_key
from trajudge.robustness.model import (
    Edit,
    Facts,
    LabelQuestion,
    NotApplicable,
    Perturbation,
    Perturbed,
    Relation,
    truth_after,
)
from trajudge.robustness.sources import Subjects
from trajudge.robustness.validity import problems
from trajudge.trajectories import store
from trajudge.trajectories.model import REPEAT, Record, Trajectory, TrajectoryKey
from trajudge.util.files import replacing

VARIANTS = "variants.jsonl"
ANNOTATOR = "perturbed"
# What of a run's facts tells its state, for `trajudge env verify`.
_STATE = ("app", "scenario", "code_key", "changes", "repeated", "steps", "shortest", "payload")


class VariantLine(Record):
    """One line of ``variants.jsonl``: the key that the perturbed trajectory has in its folder, the
    key of its source, and what was done. ``truth`` holds after the change, ``source_truth`` is the
    source's success, None: not known. ``sample`` as in ``Perturbed``."""

    key: TrajectoryKey
    of: TrajectoryKey
    perturbation: str
    version: int
    relations: dict[LabelQuestion, Relation]
    truth: dict[LabelQuestion, bool | None]
    edits: tuple[Edit, ...]
    sample: int = 0
    source_truth: bool | None = None


class Written(NamedTuple):
    """How many trajectories each perturbation gave, and what is wrong with those that were left
    out."""

    file: Path
    counts: dict[str, int]
    invalid: list[str]


def write(
    folder: Path,
    subjects: Subjects,
    perturbations: Sequence[Perturbation],
    seed: int = 0,
    limit: int | None = None,
) -> Written:
    """Write every valid variant, or the first ``limit`` of each perturbation, and behind them the
    sources as they were, on which the clean verdicts are. Raises UserError if the folder holds
    something."""
    store.check_target(folder, None, "--out")
    counts = dict.fromkeys((one.name for one in perturbations), 0)
    variants: list[VariantLine] = []
    invalid: list[str] = []
    stated: list[dict[str, Any]] = []
    used: dict[TrajectoryKey, Trajectory] = {}
    recorded = read_by_key(subjects.folder / FACTS) if subjects.folder else {}

    def trajectories() -> Iterator[Trajectory]:
        for one in perturbations:
            for source, made in _applied(one, subjects, seed, limit):
                facts = subjects.facts[source.key]
                if wrong := problems(one, source, made, facts):
                    invalid.append(f"{source.key}, {one.name}: {wrong[0]}")
                    continue
                counts[one.name] += 1
                variant = _variant(one, source, made, facts)
                variants.append(variant)
                used.setdefault(source.key, source)
                if source.key in recorded:
                    known, config = state_of(source, made, facts, recorded)
                    stated.append(_stated(variant.key, known, config))
                yield _stored(made, variant)
        for key, source in used.items():
            if key in recorded:
                stated.append(_stated(key, recorded[key], recorded[key]["config"]))
            yield source

    file = store.write(folder, trajectories(), compress="gz")
    labels = [*map(_label, variants), *(_source_label(key, subjects.facts[key]) for key in used)]
    annotation_store.write(folder / "labels.jsonl", labels)
    with replacing(folder / VARIANTS) as lines:
        lines.writelines(to_json(variant) + b"\n" for variant in variants)
    if subjects.folder:
        with replacing(folder / FACTS) as lines:
            lines.writelines(to_json(fact) + b"\n" for fact in stated)
    return Written(file, counts, invalid)


def _applied(
    perturbation: Perturbation, subjects: Subjects, seed: int, limit: int | None
) -> Iterator[tuple[Trajectory, Perturbed]]:
    left = limit
    for source in spread(subjects.trajectories):
        if left == 0:
            return
        made = apply(perturbation, source, subjects.facts[source.key], seed)
        if not isinstance(made, NotApplicable):
            left = None if left is None else left - 1
            yield source, made


def spread(trajectories: Sequence[Trajectory]) -> list[Trajectory]:
    """Order runs so that the first ones are of as many tasks as there are."""
    seen: Counter[tuple[str, str]] = Counter()
    turns = []
    for trajectory in trajectories:
        task = (trajectory.key.benchmark, trajectory.key.task_id)
        turns.append(seen[task])
        seen[task] += 1
    order = sorted(range(len(turns)), key=turns.__getitem__)
    return [trajectories[place] for place in order]


def _variant(
    perturbation: Perturbation, source: Trajectory, made: Perturbed, facts: Facts
) -> VariantLine:
    key = made.trajectory.key
    return VariantLine(
        key=key.model_copy(update={"agent": f"{key.agent}~{perturbation.name}"}),
        of=source.key,
        perturbation=perturbation.name,
        version=perturbation.version,
        relations=made.relations,
        truth={
            question: truth_after(relation, getattr(facts, question))
            for question, relation in made.relations.items()
        },
        edits=made.edits,
        sample=made.sample,
        source_truth=facts.success,
    )


def _stored(made: Perturbed, variant: VariantLine) -> Trajectory:
    """Return the variant as it is stored: what is asked again says so."""
    update: dict[str, Any] = {"key": variant.key}
    if made.sample:
        update["metadata"] = {**made.trajectory.metadata, REPEAT: made.sample}
    return made.trajectory.model_copy(update=update)


def _stated(
    key: TrajectoryKey, known: Mapping[str, Any], config: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a line of the folder's ``facts.jsonl``."""
    told = {name: known[name] for name in _STATE if name in known}
    return {**told, "config": config, "key": key.model_dump()}


def state_of(
    source: Trajectory,
    made: Perturbed,
    facts: Facts,
    recorded: Mapping[TrajectoryKey, dict[str, Any]],
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the recorded facts of the state that belongs to a variant (that of the run whose steps
    it shows) and the configuration of the case whose goal it has. Raises KeyError for a run that
    has none."""
    shown = (one.trajectory for one in (*facts.siblings, *facts.again.values()))
    runs = [one.key for one in shown if one.steps == made.trajectory.steps]
    known = recorded[runs[0] if runs else source.key]
    configs = [one.config for one in facts.goals if one.goal == made.trajectory.goal]
    return known, configs[0] if configs else known["config"]


def _label(variant: VariantLine) -> Label:
    return Label(
        key=variant.key,
        raw_task_id=variant.key.task_id,
        annotator=ANNOTATOR,
        **{str(question): truth for question, truth in variant.truth.items()},
    )


def _source_label(key: TrajectoryKey, facts: Facts) -> Label:
    return Label(
        key=key,
        raw_task_id=key.task_id,
        annotator=ANNOTATOR,
        **{str(question): getattr(facts, question) for question in LabelQuestion},
    )
