"""Which perturbations of which runs a measurement takes, written once and used again."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import orjson

from trajudge.eval.store.inputs import digest
from trajudge.robustness.attacked import spread, write
from trajudge.robustness.catalogue import catalogue, chosen
from trajudge.robustness.model import Perturbation
from trajudge.robustness.settings import SuiteName
from trajudge.robustness.sources import Subjects
from trajudge.trajectories.model import Record
from trajudge.util.errors import UserError
from trajudge.util.files import read_regular, write_bytes

SETTINGS = "manifest.json"
# Of every family what judges were seen to fall for, and what it is compared with.
CORE = (
    *("identity", "whitespace-trailing", "ids", "url-hosts", "goal-framed", "idle-step"),
    *("tree-pruned", "agent-frontier"),
    *("near-miss", "near-miss-answer", "done-right", "goal-swap", "goal-fit", "answer-wrong"),
    *("answer-mended", "answer-dropped"),
    *("claim-short", "claim-confident", "claim-specific", "benign-answer"),
    *("progress-fabrication", "observation-fabrication", "competence-style", "self-verdict"),
    *("authority-operator", "bandwagon", "null-colon", "benign-reasoning"),
    *("inject-tree.success.plain", "inject-tree.benign-success.plain"),
    *("inject-tree.success.combined", "inject-tree.benign-success.combined"),
    *("inject-tree.success.closing-full-width", "inject-tree.success.chatml"),
    *("inject-tree.format.plain", "inject-tree.leak.plain", "inject-tree.failure.plain"),
    *("inject-hidden.success.plain", "inject-own-note.success.plain"),
    *("inject-reasoning.success.plain", "inject-answer.success.plain"),
    *("inject-url-query.success.plain", "inject-pixels-large.success.plain"),
    *("sibling-tree", "sibling-page", "page-visited", "action-retargeted"),
)
FAILURES = 2 / 3  # of the sources, where there are that many


class SuiteSettings(Record):
    """What decides the bytes of a folder of changed runs. ``perturbations`` with their version;
    ``sources`` is a hash over the runs that are changed."""

    perturbations: dict[str, int]
    sources: str
    runs: int
    seed: int


def suite(name: SuiteName, names: Sequence[str] = ()) -> list[Perturbation]:
    """Return the perturbations of a suite, or those that are named and the identity. Raises
    UserError for an unknown one."""
    if names:
        return chosen(list(dict.fromkeys(["identity", *names])))
    return chosen(CORE) if name == "core" else list(catalogue().values())


def recorded_again(subjects: Subjects) -> list[Perturbation]:
    """Return the native perturbations that the runs were recorded with."""
    found = {name for one in subjects.trajectories for name in subjects.facts[one.key].again}
    return [one for one in catalogue().values() if one.name in found]


def limited(subjects: Subjects, limit: int) -> Subjects:
    """Return at most ``limit`` runs, spread over tasks, two thirds of them failures where there are
    that many of either."""
    labelled = [t for t in subjects.trajectories if subjects.facts[t.key].success is not None]
    ordered = spread(labelled)
    failures = [one for one in ordered if subjects.facts[one.key].success is False]
    successes = [one for one in ordered if subjects.facts[one.key].success is True]
    share = max(round(limit * FAILURES), limit - len(successes))
    kept = {one.key for one in [*failures[:share], *successes[: limit - len(failures[:share])]]}
    return subjects._replace(
        trajectories=tuple(one for one in subjects.trajectories if one.key in kept)
    )


def expanded(
    folder: Path, subjects: Subjects, perturbations: Sequence[Perturbation], seed: int
) -> list[str]:
    """Write the changed runs into a folder, whole or not at all, or find them there; return what is
    wrong with those that were left out. What only changes how a judge is asked changes none. Raises
    UserError for a folder of other settings."""
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
    """Hash the runs and what is known of each."""
    whole = sha256(digest(subjects.trajectories).encode())
    for one in subjects.trajectories:
        facts = subjects.facts[one.key]
        whole.update(facts.model_dump_json(exclude={"siblings", "again"}).encode())
        whole.update("".join(str(sibling.trajectory.key) for sibling in facts.siblings).encode())
        for name, other in facts.again.items():
            whole.update(f"{name} {digest([other.trajectory])}".encode())
    return whole.hexdigest()[:16]
