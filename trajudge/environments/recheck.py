"""Recorded runs verified again: their states are made from their facts, and asked once more.

A run's facts hold its configuration, its code key and every change of the state, so the state that
it left is made without a browser. What a trajectory says (goal, last message, last action) is read
from the trajectory: one that was changed afterwards is verified as it stands.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import orjson
from pydantic import BaseModel, Field

from trajudge.annotations import store as annotation_store
from trajudge.annotations.model import Label
from trajudge.environments.apps import load_app
from trajudge.environments.model.axes import open_state
from trajudge.environments.model.binding import Infeasible
from trajudge.environments.model.config import Config
from trajudge.environments.model.payload import Payload
from trajudge.environments.serving.run import ServedRun, open_run
from trajudge.environments.verify import ExecutedAction, VerificationResult, Viewpoint, verify
from trajudge.environments.verify.labels import looping, optimality
from trajudge.trajectories import store
from trajudge.trajectories.model import Trajectory, TrajectoryKey
from trajudge.util.errors import UserError
from trajudge.util.validation import read_records

FACTS = "facts.jsonl"
LABELS = "labels.jsonl"
VARIANTS = "variants.jsonl"
RESTORE = "restore the file from a copy, or record again"
COMPARED = ("success", "side_effect", "repetition", "optimality")
# Actions that change no state, wherever they are done.
_IDLE = ("noop(", "scroll(", "hover(")
Facts = Mapping[str, Any]
_Number = Annotated[int, Field(ge=0)]


class _Change(BaseModel):
    kind: Literal["added", "removed", "changed"]
    table: str
    key: str | int
    before: dict[str, Any]
    after: dict[str, Any]


class _Answer(BaseModel):
    kind: str
    right: bool | None


class _Predicate(BaseModel):
    name: str
    holds: bool


class _Shape(BaseModel):
    """What is read of a run's facts. Perturbed runs have neither answers nor predicates; without
    ``content`` they are of an application that nobody knows."""

    key: TrajectoryKey
    app: str
    config: Config
    content: str = ""
    code_key: str = Field(pattern=r"^([0-9a-f]{2})*$")
    changes: tuple[_Change, ...]
    answers: tuple[_Answer, ...] = ()
    predicates: tuple[_Predicate, ...] = ()
    payload: Payload | None = None
    repeated: _Number
    steps: _Number
    shortest: _Number


def _read_facts(folder: Path) -> dict[TrajectoryKey, Facts]:
    """Read the facts of a recording's runs. Raises UserError that names the file and the line, or
    the application whose content is not that of the recording any more."""
    file = folder / FACTS
    missing = "name a folder that env record or data perturb wrote"
    facts: dict[TrajectoryKey, Facts] = {}
    for number, (key, one) in read_records(file, _parsed, missing=missing, damaged=RESTORE):
        if key in facts:
            raise UserError(f"{file}, line {number}: the facts of {key} come twice: keep one line")
        facts[key] = one
    for key, one in facts.items():
        if one.get("content") != content_digest(Config.model_validate(one["config"])):
            raise UserError(
                f"{file}: {key} was recorded with other content of the application {one['app']}, "
                "so its state cannot be made again: record it again, or install the version that "
                "recorded it"
            )
    return facts


def _parsed(line: bytes) -> tuple[TrajectoryKey, Facts]:
    facts = orjson.loads(line)
    return _Shape.model_validate(facts).key, facts


def content_digest(config: Config) -> str:
    """Return what an application holds for a run, as 16 hexadecimal digits: the rows of the data
    profile and the file of its scenarios. The same on every machine."""
    return _digest(config.app, config.profile, config.seed)


@lru_cache(maxsize=256)
def _digest(name: str, profile: int, seed: int) -> str:
    app = load_app(name)
    state = open_state(app, Config(app=name, scenario="", profile=profile, seed=seed))
    try:
        content = f"{app.tables}\n{state.dump()}\n{app.scenario_file}"
    finally:
        state.close()
    return sha256(content.encode()).hexdigest()[:16]


class ReverifiedRun(NamedTuple):
    """A recorded run of a ``folder``, the labels beside it, its facts, and what its state gives;
    None for what the folder does not hold."""

    folder: Path
    trajectory: Trajectory
    recorded: Label | None
    facts: Facts | None
    found: VerificationResult | None
    claimed: Sequence[str] = COMPARED

    @property
    def differences(self) -> list[str]:
        """What of the recorded labels is not what the state gives, or why none can be compared."""
        if self.recorded is None:
            return [f"has no label in {self.folder / LABELS}"]
        if self.found is None:
            return [f"has no facts in {self.folder / FACTS}"]
        pairs = [
            (name, getattr(self.recorded, name), getattr(self.found.labels, name))
            for name in self.claimed
        ]
        return [f"{name} is {old}, the state gives {new}" for name, old, new in pairs if old != new]


def rechecked(folder: Path) -> Iterator[ReverifiedRun]:
    """Verify every run of a recording, or of perturbed trajectories, again. Of the latter a label
    that is open claims nothing, nor does a run of other data. Raises UserError for a folder that is
    none."""
    changed = (folder / VARIANTS).is_file()
    for trajectory, label, facts in _runs(folder):
        if changed and (label is None or facts is None):
            continue
        claimed = [n for n in COMPARED if not changed or getattr(label, n) is not None]
        again = None if facts is None else verified_again(folder, trajectory, facts)
        yield ReverifiedRun(folder, trajectory, label, facts, again, claimed)


def verified_again(
    folder: Path, trajectory: Trajectory, facts: Facts, config: Config | None = None
) -> VerificationResult:
    """Verify a run from its facts, which are in the ``folder``; ``config`` is another case whose
    goal the trajectory has. Raises Infeasible for one that has no goal, and UserError for facts
    that no state can be made from."""
    with _ended(folder, trajectory.key, trajectory.goal, facts, config) as run:
        actions = list(_executed(trajectory))
        result = verify(run.evidence(trajectory.answer, actions, facts["shortest"]))
    # The trace tells less than what was seen when the run was played.
    labels = result.labels._replace(
        repetition=looping(max(result.repeated, facts["repeated"])),
        optimality=optimality(result.labels.success, facts["steps"], result.shortest),
    )
    return result.model_copy(update={"labels": labels})


def other_goals(folder: Path, count: int) -> Iterator[dict[str, Any]]:
    """Yield a line of ``goals.jsonl`` for each run: of ``count`` other goals of its application
    those that its final state decides, with the verdict of their checkers."""
    for trajectory, label, facts in _runs(folder):
        if label is None or facts is None:
            continue
        goals = list(_decided(folder, trajectory, facts, count))
        yield {"key": trajectory.key.model_dump(), "goals": goals}


def _decided(
    folder: Path, trajectory: Trajectory, facts: Facts, count: int
) -> Iterator[dict[str, Any]]:
    """Ask the checkers of other instances of the scenario what they say of this run. Of goals that
    it fails alike two are enough."""
    config = Config.model_validate(facts["config"])
    goals, alike = {trajectory.goal}, Counter[tuple[bool | None, bool | None]]()
    for place in range(1, count + 1):
        other = config.model_copy(update={"instance": config.instance + place})
        try:
            with _ended(folder, trajectory.key, None, facts, other) as run:
                goal = run.goal
        except Infeasible:
            continue
        if goal in goals:
            continue
        goals.add(goal)
        changed = trajectory.model_copy(update={"goal": goal})
        labels = verified_again(folder, changed, facts, other).labels
        outcome = (labels.success, labels.side_effect)
        alike[outcome] += 1
        if None not in outcome and (labels.success or alike[outcome] <= 2):
            verdicts = {"success": labels.success, "side_effect": labels.side_effect}
            yield {"goal": goal, **verdicts, "config": other.model_dump()}


def _runs(folder: Path) -> Iterator[tuple[Trajectory, Label | None, Facts | None]]:
    facts = _read_facts(folder)
    labels = {one.key: one for one in annotation_store.load(folder / LABELS)}
    for entry in store.read(folder):
        if not isinstance(entry, Trajectory):
            raise UserError(f"{entry.source}: {entry.reason}")
        yield entry, labels.get(entry.key), facts.get(entry.key)


@contextmanager
def _ended(
    folder: Path, key: TrajectoryKey, goal: str | None, facts: Facts, config: Config | None
) -> Iterator[ServedRun]:
    """Open a run and bring its state to where the recording left it."""
    at = config or Config.model_validate(facts["config"])
    payload = Payload.model_validate(facts["payload"]) if facts.get("payload") else None
    run = open_run(at, b"", goal=goal, payload=payload)
    run.key = bytes.fromhex(facts["code_key"])
    try:
        for change in facts["changes"]:
            try:
                _carry_out(run, change)
            except (KeyError, TypeError, ValueError, sqlite3.Error) as error:
                raise UserError(
                    f"{folder / FACTS}: {key} has a change of {change['table']!r} that cannot be "
                    f"made ({error}): {RESTORE}"
                ) from error
        yield run
    finally:
        run.state.close()


def _carry_out(run: ServedRun, change: Mapping[str, Any]) -> None:
    table, key = change["table"], change["key"]
    if change["kind"] == "added":
        run.state.add(table, **change["after"])
    elif change["kind"] == "removed":
        run.state.remove(table, key)
    else:
        run.state.change(table, key, **change["after"])


def _executed(trajectory: Trajectory) -> Iterator[ExecutedAction]:
    """Give the trace as far as a trajectory tells it: which of its actions were idle for sure. On
    pages whose tree is not there no two actions are known to be the same."""
    viewpoint = Viewpoint()
    for step in trajectory.steps:
        if step.action is None:
            continue
        view = viewpoint.act(step.observation, step.action)
        idle = step.observation.axtree is not None and step.action.startswith(_IDLE)
        yield ExecutedAction(view, step.action, "", "" if idle else str(step.index + 1))
