"""Experiments on disk: recordings of our environments, and runs of any agent behind the proxy."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, NamedTuple

from trajudge.annotations import store as annotation_store
from trajudge.eval.resilience.events import PriceOf, TaskFigures, ended_tasks, read_events
from trajudge.eval.resilience.outcomes import OutcomeFile, OutcomePlace, TaskOutcome
from trajudge.eval.resilience.records import (
    CLEAN,
    ExperimentArm,
    FaultExperiment,
    FaultRun,
    FaultSpan,
    PairKey,
    RunFigures,
    span_of,
)
from trajudge.eval.resilience.settings import ResilienceConfig
from trajudge.judges.models.own import OwnModels
from trajudge.judges.models.prices import KnownPrice, listed_price
from trajudge.trajectories import store
from trajudge.trajectories.model import Trajectory
from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.local.folders import refuse_repeated
from trajudge.trajectories.util.safe_files import open_regular

ARMS = "resilience.json"
# Errors of actions that say that the browser was too slow, not what the page did.
_STALLED = re.compile(r"Timeout \d+ms exceeded|does not answer|did not load within")
_BEHIND = ("clean", "faulted", "outcomes")  # options of runs behind the proxy
_AGENT = "agent"  # of runs that name none
_RESTORE = "restore it from a copy, or record or run again"
_NAMED = 5  # of what is left out
_UNMEASURED: dict[str, Any] = {"model_calls": None, "tokens": None, "dollars": None}


class ProxyFolders(NamedTuple):
    """Folders of ``trajudge proxy`` runs without faults and with them, and the file that says which
    tasks succeeded."""

    clean: Path
    faulted: Sequence[Path]
    outcomes: Path


def read_experiment(config: ResilienceConfig) -> FaultExperiment:
    """Read what the settings name. Raises UserError for neither or both of the two forms."""
    own = OwnModels(None, config.prices)

    def price_of(model: str) -> KnownPrice:
        return own.price(model) or listed_price(model)

    behind = [getattr(config, name) for name in _BEHIND]
    if config.recordings and not any(behind):
        return read_recordings(config.recordings, price_of)
    if config.clean and config.faulted and config.outcomes and not config.recordings:
        given = ProxyFolders(config.clean, config.faulted, config.outcomes)
        return read_proxy_runs(given, price_of)
    either = "folders of  trajudge env record --faults , or --clean, --faulted and --outcomes"
    if config.recordings:
        raise UserError(f"{config.recordings[0]}: name {either}, not both")
    absent = [f"--{name}" for name in _BEHIND if not getattr(config, name)]
    raise UserError(
        f"{' and '.join(absent)} must be named, too: name {either}"
        if any(behind)
        else f"name {either}"
    )


def read_recordings(folders: Sequence[Path], price_of: PriceOf) -> FaultExperiment:
    """Read what ``trajudge env record --faults`` wrote; several folders (of other agents, say) are
    one experiment. An arm that is not recorded yet is left out, and noted. Raises UserError."""
    refuse_repeated(folders)
    arms: dict[str, ExperimentArm] = {}
    notes = []
    for folder in folders:
        for name, faults in _planned_arms(folder).items():
            place = folder / name
            runs = list(_recorded_runs(place, price_of)) if place.is_dir() else []
            if not runs:
                notes.append(f"{place}: holds no finished run yet")
                continue
            known = arms.get(name)
            if known is not None and known.faults != faults:
                raise UserError(f"{folder}: arm {name!r} has another plan than in {folders[0]}")
            before = known.runs if known else ()
            places = (*(known.folders if known else ()), str(place))
            arms[name] = ExperimentArm(name, [*before, *runs], faults, places)
    if CLEAN not in arms or len(arms) < 2:
        raise UserError(
            f"{folders[0]}: no clean arm beside a faulted one: record them with  "
            "trajudge env record --faults PLAN"
        )
    for arm in arms.values():
        _check_keys(arm)
    faulted = [arm for name, arm in arms.items() if name != CLEAN]
    return FaultExperiment(arms[CLEAN], faulted, notes=tuple(notes))


def read_proxy_runs(given: ProxyFolders, price_of: PriceOf) -> FaultExperiment:
    """Read runs of any agent behind the proxy, with its outcomes. Raises UserError."""
    outcomes = OutcomeFile.read(given.outcomes)
    names = [CLEAN, *(place.name for place in given.faulted)]
    if len(set(names)) < len(names):
        raise UserError(
            f"--faulted {' '.join(map(str, given.faulted))}: the folders' names are those of the "
            f"arms: give each a name of its own, other than {CLEAN!r}"
        )
    arms: list[ExperimentArm] = []
    notes: list[str] = []
    used: set[OutcomePlace | None] = set()
    for name, place in zip(names, (given.clean, *given.faulted), strict=True):
        tasks = list(_proxy_tasks(place, price_of))
        places = [outcomes.place_of(name, task.task, task.seed) for task in tasks]
        runs = [
            _proxy_run(task, outcomes.outcomes[at])
            for task, at in zip(tasks, places, strict=True)
            if at
        ]
        if not runs:
            raise UserError(
                f"{place}: holds no ended task whose outcome {given.outcomes} names for {name!r}"
            )
        arms.append(ExperimentArm(name, runs, _plan_of(place)))
        _check_keys(arms[-1])
        used.update(places)
        alone = [task.task for task, at in zip(tasks, places, strict=True) if not at]
        notes += _left_out("ended tasks without an outcome", alone, place)
    idle = [f"{at.task} ({at.arm})" for at in outcomes.outcomes if at not in used]
    notes += _left_out("outcomes of which no folder holds the task", idle, given.outcomes)
    return FaultExperiment(arms[0], arms[1:], notes=tuple(notes))


def _left_out(what: str, names: Sequence[str], place: Path) -> list[str]:
    """Say what of ``place`` is left out, by number and the first names. A screen may cut the end,
    and a path may be long."""
    first = ", ".join([*names[:_NAMED], *(["..."] if len(names) > _NAMED else [])])
    return [f"{what} are left out: {len(names)} ({first}), in {place}"] if names else []


def _planned_arms(folder: Path) -> dict[str, tuple[FaultSpan, ...]]:
    """Read the arms and their faults; of a recording that is under way, those that have begun."""
    path = folder / ARMS
    if path.exists():
        arms = _json(path).get("arms")
        if not isinstance(arms, dict):
            raise UserError(f"{path}: names no arms: {_RESTORE}")
        return {name: _spans(plan, path) for name, plan in arms.items()}
    found = {}
    for child in sorted(folder.iterdir()) if folder.is_dir() else ():
        header = _header(child)
        if "arm" in header:
            found[str(header["arm"])] = _spans(header.get("plan", {}), child)
    if not found:
        raise UserError(
            f"{folder}: no recording with faults: trajudge env record --faults makes one"
        )
    return found


def _header(child: Path) -> Mapping[str, Any]:
    """Read what a recording is of, finished or not."""
    for name in ("recording.json", "runs.jsonl"):
        path = child / name
        if path.exists():
            header = _json(path, first_line=name.endswith("l")).get("what")
            if not isinstance(header, dict):
                raise UserError(f"{path}: does not say what is recorded: {_RESTORE}")
            return header
    return {}


def _spans(plan: object, place: Path) -> tuple[FaultSpan, ...]:
    """Read the faults of a plan. Raises UserError, naming ``place``, for what is none."""
    faults = plan.get("faults", []) if isinstance(plan, dict) else None
    if not isinstance(faults, list) or not all(isinstance(fault, dict) for fault in faults):
        raise UserError(f"{place}: a plan there is no object with a list of faults: {_RESTORE}")
    return tuple(map(span_of, faults))


def _recorded_runs(place: Path, price_of: PriceOf) -> Iterator[FaultRun]:
    """Yield the runs of an arm: trajectories, their labels, and the proxy's events."""
    if store.find_file(place) is None:
        return
    labels = {label.key: label for label in annotation_store.load(place / "labels.jsonl")}
    for trajectory in store.read(place):
        if not isinstance(trajectory, Trajectory):
            raise UserError(f"{place}: {trajectory.reason}")
        key, label = trajectory.key, labels.get(trajectory.key)
        events = place / "events" / f"{trajectory.raw_task_id}.{key.agent}.{key.attempt}.jsonl"
        figures = next(ended_tasks(read_events(events), price_of), None)
        if figures is None:
            raise UserError(f"{events}: its task did not end")
        told = trajectory.telemetry
        yield _run(
            PairKey(f"{key.benchmark}/{key.task_id}", key.agent, key.attempt),
            replace(figures, **_asked(told)) if "n_calls" in told else figures,
            success=label.success if label else None,
            side_effect=label.side_effect if label else None,
            steps=len(trajectory.steps) - 1,
            stalled=any(
                _STALLED.search(one.observation.page_error or "") for one in trajectory.steps
            ),
        )


def _asked(telemetry: Mapping[str, float]) -> dict[str, Any]:
    """Return what a model agent of ours counted of its calls, which no proxy sees."""
    tokens = telemetry["cum_input_tokens"] + telemetry["cum_output_tokens"]
    return {
        "model_calls": int(telemetry["n_calls"]),
        "tokens": int(tokens),
        "dollars": telemetry.get("cost"),
    }


def _proxy_tasks(place: Path, price_of: PriceOf) -> Iterator[TaskFigures]:
    """Yield the ended tasks below a folder. Calls that no --api had measured are not known.

    Raises UserError, also for a folder that is none.
    """
    if not place.is_dir():
        raise UserError(f"{place}: no such folder: name one that  trajudge proxy run  wrote")
    for log in sorted(place.rglob("events.jsonl")):
        events = read_events(log)
        measured = any(event.get("apis") for event in events if event["type"] == "proxy")
        for figures in ended_tasks(events, price_of):
            yield figures if measured else replace(figures, **_UNMEASURED)


def _proxy_run(figures: TaskFigures, outcome: TaskOutcome) -> FaultRun:
    key = PairKey(figures.task, outcome.agent or _AGENT, figures.seed)
    return _run(key, figures, success=outcome.success, steps=outcome.steps)


def _plan_of(place: Path) -> tuple[FaultSpan, ...]:
    """Read the faults of the plans below a folder, each once."""
    found: dict[str, FaultSpan] = {}
    for path in sorted(place.rglob("plan.json")):
        found |= {span.id: span for span in _spans(_json(path), path)}
    return tuple(found.values())


def _run(key: PairKey, figures: RunFigures, **outcome: Any) -> FaultRun:
    measured = {part.name: getattr(figures, part.name) for part in fields(RunFigures)}
    return FaultRun(key=key, **measured, **outcome)


def _check_keys(arm: ExperimentArm) -> None:
    """Raise UserError for an arm that holds a run twice: it has no single pair."""
    if len(arm.by_key) == len(arm.runs):
        return
    seen: set[PairKey] = set()
    for run in arm.runs:
        if run.key in seen:
            raise UserError(
                f"arm {arm.name!r} holds task {run.key.task!r} of {run.key.agent} with seed "
                f"{run.key.attempt} twice: give each run a --task or --seed of its own"
            )
        seen.add(run.key)


def _json(path: Path, *, first_line: bool = False) -> dict[str, Any]:
    """Read an object from a file, or from its first line. Raises UserError."""
    try:
        with open_regular(path, sparse=False) as file:
            content = json.loads(file.readline() if first_line else file.read())
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror or error})") from error
    except ValueError as error:
        raise UserError(f"{path}: is damaged, no JSON ({error}): {_RESTORE}") from error
    if not isinstance(content, dict):
        raise UserError(f"{path}: is damaged, no JSON object: {_RESTORE}")
    return content
