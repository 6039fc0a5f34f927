"""Write perturbed trajectories as a data set for any judge: trajectories, their labels after the
change, and the edits (``trajudge data perturb``)."""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import orjson
from pydantic_core import to_json

from trajudge.annotations import store as annotation_store
from trajudge.annotations.model import Label
from trajudge.eval.store.inputs import digest
from trajudge.robustness.apply import apply, problems
from trajudge.robustness.catalogue import (
    catalogue,
    chosen,
    core_suite,
    families,
    find_perturbation,
)
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
from trajudge.robustness.settings import PerturbConfig, SuiteName
from trajudge.robustness.subjects import FACTS, Subjects, read_by_key, subjects
from trajudge.trajectories import store
from trajudge.trajectories.model import REPEAT, Record, Trajectory, TrajectoryKey
from trajudge.util.commands import FAILURES, OK
from trajudge.util.errors import UserError
from trajudge.util.files import read_regular, replacing, write_bytes
from trajudge.util.tables import print_tables
from trajudge.util.terminal import one_line
from trajudge.util.validation import read_records

VARIANTS = "variants.jsonl"
ANNOTATOR = "perturbed"
# The facts of a run that describe its state, for `trajudge env verify`.
_STATE = (
    *("app", "scenario", "content", "code_key", "changes", "repeated", "steps", "shortest"),
    "payload",
)


class VariantLine(Record):
    """One line of ``variants.jsonl``: the keys of the perturbed trajectory and of its source,
    and the edits. ``truth`` holds after the change, ``source_truth`` is the source's success
    (None: unknown). ``sample`` as in ``Perturbed``."""

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
    """The number of trajectories by perturbation, and the problems of excluded ones."""

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
    """Write every valid variant, or the first ``limit`` of each perturbation, then the unchanged
    sources for the clean verdicts. Raises UserError if the folder is not empty."""
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
    labels = [_label(one.key, one.truth) for one in variants]
    labels += [_label(key, _truth(subjects.facts[key])) for key in used]
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
    """Sort runs so that the first ones are of as many tasks as possible."""
    seen: Counter[tuple[str, str]] = Counter()
    turns = []
    for trajectory in trajectories:
        task = (trajectory.key.benchmark, trajectory.key.task_id)
        turns.append(seen[task])
        seen[task] += 1
    order = sorted(range(len(turns)), key=turns.__getitem__)
    return [trajectories[index] for index in order]


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
            question: truth_after(made.relations[question], truth)
            for question, truth in _truth(facts).items()
        },
        edits=made.edits,
        sample=made.sample,
        source_truth=facts.success,
    )


def _stored(made: Perturbed, variant: VariantLine) -> Trajectory:
    """Return the variant as it is stored; a repeated prompt is marked."""
    update: dict[str, Any] = {"key": variant.key}
    if made.sample:
        update["metadata"] = {**made.trajectory.metadata, REPEAT: made.sample}
    return made.trajectory.model_copy(update=update)


def _stated(
    key: TrajectoryKey, known: Mapping[str, Any], config: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a line of the folder's ``facts.jsonl``."""
    state = {name: known[name] for name in _STATE if name in known}
    return {**state, "config": config, "key": key.model_dump()}


def state_of(
    source: Trajectory,
    made: Perturbed,
    facts: Facts,
    recorded: Mapping[TrajectoryKey, dict[str, Any]],
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the recorded final state of a variant (of the run whose steps it has) and the
    configuration of the case whose goal it has. Raises KeyError for a run without one."""
    shown = (one.trajectory for one in (*facts.siblings, *facts.again.values()))
    runs = [one.key for one in shown if one.steps == made.trajectory.steps]
    known = recorded[runs[0] if runs else source.key]
    configs = [one.config for one in facts.goals if one.goal == made.trajectory.goal]
    return known, configs[0] if configs else known["config"]


def _truth(facts: Facts) -> dict[LabelQuestion, bool | None]:
    return {question: getattr(facts, question) for question in LabelQuestion}


def _label(key: TrajectoryKey, truth: Mapping[LabelQuestion, bool | None]) -> Label:
    answers = {str(question): answer for question, answer in truth.items()}
    return Label(key=key, raw_task_id=key.task_id, annotator=ANNOTATOR, **answers)


def read_variants(attacked: Path) -> list[VariantLine]:
    """Read ``variants.jsonl`` of a folder of changed runs. Raises UserError."""
    written = "--attacked is what  trajudge data perturb  wrote"
    variants = read_records(
        attacked / VARIANTS, VariantLine.model_validate_json, missing=written, damaged=written
    )
    return [
        one
        for _, one in variants
        if getattr(find_perturbation(one.perturbation), "asking", None) is None
    ]


# The suite of a measurement, written once and reused.

SETTINGS = "manifest.json"
_SHARE_OF_FAILURES = 2 / 3  # of the sources, if there are enough


class SuiteSettings(Record):
    """The settings that determine the bytes of a folder of perturbed runs: ``perturbations``
    with their versions, and ``sources``, a hash of the perturbed runs."""

    perturbations: dict[str, int]
    sources: str
    runs: int
    seed: int


def suite(name: SuiteName, names: Sequence[str] = ()) -> list[Perturbation]:
    """Return the perturbations of a suite, or the named ones and the identity. Raises UserError
    for an unknown one."""
    if names:
        return chosen(list(dict.fromkeys(["identity", *names])))
    return chosen(core_suite()) if name == "core" else list(catalogue().values())


def recorded_again(subjects: Subjects) -> list[Perturbation]:
    """Return the perturbations with which the runs were re-recorded."""
    names = {name for one in subjects.trajectories for name in subjects.facts[one.key].again}
    return [one for one in catalogue().values() if one.name in names]


def limited(subjects: Subjects, limit: int) -> Subjects:
    """Return at most ``limit`` runs, spread over tasks, two thirds of them failures if there are
    enough of both."""
    labelled = [t for t in subjects.trajectories if subjects.facts[t.key].success is not None]
    ordered = spread(labelled)
    failures = [one for one in ordered if subjects.facts[one.key].success is False]
    successes = [one for one in ordered if subjects.facts[one.key].success is True]
    share = max(round(limit * _SHARE_OF_FAILURES), limit - len(successes))
    kept = {one.key for one in [*failures[:share], *successes[: limit - len(failures[:share])]]}
    return subjects._replace(
        trajectories=tuple(one for one in subjects.trajectories if one.key in kept)
    )


def expanded(
    folder: Path, subjects: Subjects, perturbations: Sequence[Perturbation], seed: int
) -> list[str]:
    """Write the perturbed runs into a folder atomically, or reuse them; return the problems of
    excluded ones. Perturbations of the call change no run. Raises UserError for a folder with
    other settings."""
    perturbations = [one for one in perturbations if one.asking is None]
    settings = SuiteSettings(
        perturbations={one.name: one.version for one in perturbations},
        sources=_hash(subjects),
        runs=len(subjects.trajectories),
        seed=seed,
    )
    content = orjson.dumps(settings.model_dump(mode="json"), option=orjson.OPT_INDENT_2) + b"\n"
    if (folder / SETTINGS).is_file():
        if read_regular(folder / SETTINGS) != content:
            raise UserError(
                f"{folder}: holds runs that were changed otherwise: name another --out, or remove "
                "the folder"
            )
        return []
    if folder.exists():
        raise UserError(f"{folder}: holds no {SETTINGS} of this command: name another --out")
    fresh = folder.with_name(f"{folder.name}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    try:
        written = write(fresh, subjects, perturbations, seed)
        write_bytes(fresh / SETTINGS, content)
        fresh.rename(folder)
    except OSError as error:
        raise UserError(
            f"{folder}: cannot be written ({error.strerror}): name another --out"
        ) from error
    return written.invalid


def _hash(subjects: Subjects) -> str:
    """Hash the runs and their facts."""
    whole = sha256(digest(subjects.trajectories).encode())
    for one in subjects.trajectories:
        facts = subjects.facts[one.key]
        whole.update(facts.model_dump_json(exclude={"siblings", "again"}).encode())
        whole.update("".join(str(sibling.trajectory.key) for sibling in facts.siblings).encode())
        for name, other in facts.again.items():
            whole.update(f"{name} {digest([other.trajectory])}".encode())
    return whole.hexdigest()[:16]


def perturb(config: PerturbConfig) -> int:
    """Write the folder and print the number of trajectories by perturbation."""
    if config.list:
        print_tables(families())
        return OK
    named = chosen(config.perturbation)
    if askings := [one.name for one in named if one.asking]:
        raise UserError(
            f"--perturbation {askings[0]}: changes the call to the judge and no run: give it to  "
            "trajudge robust"
        )
    opened = config.source
    source = subjects(opened.data, opened.annotations, opened.labels_by)
    edits = [one for one in catalogue().values() if not one.asking and one.grade == "edited"]
    perturbations = named or [*edits, *recorded_again(source)]
    written = write(config.out, source, perturbations, config.seed, config.limit)
    applied = sum(number > 0 for number in written.counts.values())
    sys.stdout.write(
        f"{written.file}: {sum(written.counts.values()):,} trajectories by {applied} of "
        f"{len(perturbations)} perturbations\n"
    )
    sys.stderr.writelines(f"invalid, left out: {one_line(text)}\n" for text in written.invalid)
    return FAILURES if written.invalid else OK
