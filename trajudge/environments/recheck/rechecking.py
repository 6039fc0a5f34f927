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
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from trajudge.annotations import store as annotation_store
from trajudge.annotations.model import Label
from trajudge.environments.model.binding import Infeasible
from trajudge.environments.model.config import Config
from trajudge.environments.model.payload import Payload
from trajudge.environments.recheck.facts import FACTS, RESTORE, Facts, read_facts
from trajudge.environments.serving.run import ServedRun, open_run
from trajudge.environments.verify import ExecutedAction, verify
from trajudge.environments.verify.labels import looping, optimality
from trajudge.environments.verify.model import Labels
from trajudge.trajectories import store
from trajudge.trajectories.model import Trajectory
from trajudge.util.errors import UserError

LABELS = "labels.jsonl"
VARIANTS = "variants.jsonl"
# What a state is made of.
_NEEDED = ("config", "code_key", "changes")
COMPARED = ("success", "side_effect", "repetition", "optimality")
# Actions that change no state, wherever they are done.
_IDLE = ("noop(", "scroll(", "hover(")


class ReverifiedRun(NamedTuple):
    """A recorded run of a ``folder``, the labels beside it, and those that its state gives; None
    for what the folder does not hold."""

    folder: Path
    trajectory: Trajectory
    recorded: Label | None
    found: Labels | None
    claimed: Sequence[str] = COMPARED

    @property
    def differences(self) -> list[str]:
        """What of the recorded labels is not what the state gives, or why none can be compared."""
        if self.recorded is None:
            return [f"has no label in {self.folder / LABELS}"]
        if self.found is None:
            return [f"has no facts in {self.folder / FACTS}"]
        return [
            f"{name} is {getattr(self.recorded, name)}, the state gives {getattr(self.found, name)}"
            for name in self.claimed
            if getattr(self.recorded, name) != getattr(self.found, name)
        ]


def rechecked(folder: Path) -> Iterator[ReverifiedRun]:
    """Verify every run of a recording, or of perturbed trajectories, again. Of the latter a label
    that is open claims nothing, nor does a run of other data. Raises UserError for a folder that is
    none."""
    changed = (folder / VARIANTS).is_file()
    for trajectory, label, facts in _runs(folder):
        if changed and (label is None or facts is None):
            continue
        claimed = [n for n in COMPARED if not changed or getattr(label, n) is not None]
        again = None if facts is None else labels_again(trajectory, facts, file=folder / FACTS)
        yield ReverifiedRun(folder, trajectory, label, again, claimed)


def labels_again(
    trajectory: Trajectory,
    facts: Mapping[str, Any],
    config: Config | None = None,
    *,
    file: Path = Path(FACTS),
) -> Labels:
    """Derive the labels of a run from its facts, which stand in ``file``; ``config`` is another
    case whose goal the trajectory has. Raises Infeasible for one that has no goal, and UserError
    for facts that no state can be made from."""
    with _ended(trajectory, facts, config, file=file) as run:
        actions = list(_executed(trajectory))
        evidence = verify(run.evidence(trajectory.answer, actions, facts.get("shortest", 0)))
    times = max(evidence.repeated, facts.get("repeated", 0))
    success = evidence.labels.success
    length = facts.get("steps", len(actions))
    return evidence.labels._replace(
        repetition=looping(times), optimality=optimality(success, length, evidence.shortest)
    )


def other_goals(folder: Path, count: int) -> Iterator[dict[str, Any]]:
    """Yield a line of ``goals.jsonl`` for each run: of ``count`` other goals of its application
    those that its final state decides, with the verdict of their checkers."""
    for trajectory, label, facts in _runs(folder):
        if label is None or facts is None:
            continue
        goals = list(_decided(trajectory, facts, count, folder / FACTS))
        yield {"key": trajectory.key.model_dump(), "goals": goals}


def _decided(
    trajectory: Trajectory, facts: Mapping[str, Any], count: int, file: Path
) -> Iterator[dict[str, Any]]:
    """Ask the checkers of other instances of the scenario what they say of this run. Of goals that
    it fails alike two are enough."""
    config = Config.model_validate(facts["config"])
    goals, alike = {trajectory.goal}, Counter[tuple[bool | None, bool | None]]()
    for place in range(1, count + 1):
        other = config.model_copy(update={"instance": config.instance + place})
        try:
            goal = _goal(trajectory, facts, other, file)
        except Infeasible:
            continue
        if goal in goals:
            continue
        goals.add(goal)
        changed = trajectory.model_copy(update={"goal": goal})
        labels = labels_again(changed, facts, other, file=file)
        outcome = (labels.success, labels.side_effect)
        alike[outcome] += 1
        if None not in outcome and (labels.success or alike[outcome] <= 2):
            verdicts = {"success": labels.success, "side_effect": labels.side_effect}
            yield {"goal": goal, **verdicts, "config": other.model_dump()}


def _goal(trajectory: Trajectory, facts: Mapping[str, Any], config: Config, file: Path) -> str:
    with _ended(trajectory.model_copy(update={"goal": ""}), facts, config, file=file) as run:
        return run.goal


def _runs(folder: Path) -> Iterator[tuple[Trajectory, Label | None, Facts | None]]:
    facts = read_facts(folder)
    labels = {one.key: one for one in annotation_store.load(folder / LABELS)}
    for entry in store.read(folder):
        if not isinstance(entry, Trajectory):
            raise UserError(f"{entry.source}: {entry.reason}")
        known = facts.get(entry.key)
        if missing := [name for name in _NEEDED if known is not None and name not in known]:
            raise UserError(
                f"{folder / FACTS}: {entry.key} has no {missing[0]!r}, so its state cannot be made "
                "again: record it with this version"
            )
        yield entry, labels.get(entry.key), known


@contextmanager
def _ended(
    trajectory: Trajectory, facts: Mapping[str, Any], config: Config | None, *, file: Path
) -> Iterator[ServedRun]:
    """Open the run and bring its state to where the recording left it."""
    at = config or Config.model_validate(facts["config"])
    payload = Payload.model_validate(facts["payload"]) if facts.get("payload") else None
    run = open_run(at, b"", goal=trajectory.goal or None, payload=payload)
    run.key = bytes.fromhex(facts["code_key"])
    try:
        for change in facts["changes"]:
            try:
                _carry_out(run, change)
            except (KeyError, TypeError, ValueError, sqlite3.Error) as error:
                raise UserError(
                    f"{file}: {trajectory.key} has a change of {change['table']!r} that cannot be "
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
    for step in trajectory.steps:
        if step.action is None:
            continue
        page = step.observation
        place = f"{page.url} {sha256((page.axtree or '').encode()).hexdigest()[:16]}"
        idle = page.axtree is not None and step.action.startswith(_IDLE)
        yield ExecutedAction(place, step.action, "", "" if idle else str(step.index + 1))
