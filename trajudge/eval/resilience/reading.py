"""Experiments with faults on disk: recordings, runs behind the proxy, the user's own outcomes, and
the pairs of runs with and without faults.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, Field, ValidationError

from trajudge.annotations import store as annotation_store
from trajudge.eval.resilience.settings import ResilienceConfig
from trajudge.judges.model import Usage
from trajudge.judges.models import KnownPrice, OwnModels, listed_price
from trajudge.trajectories import store
from trajudge.trajectories.model import Trajectory
from trajudge.util.errors import UserError
from trajudge.util.files import open_regular, read_text, read_utf8, refuse_repeated
from trajudge.util.validation import first_error

CLEAN = "clean"

LATENCY_PARTS = ("model", "site", "injected", "proxy", "agent")


class PairKey(NamedTuple):
    """What a run shares with its pair. ``attempt`` tells seeds of one task apart."""

    task: str
    agent: str
    attempt: int


class MetFault(NamedTuple):
    """A fault in a run: how many page loads it was planned at, fired at and recovered from."""

    fault: str
    planned: int
    fired: int
    recovered: int
    means: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class RunFigures:
    """What a run cost and which faults it met. None is what is not known: never 0.

    ``tokens`` are all of prompt and reply, ``latency`` seconds by part.
    """

    page_loads: int | None
    model_calls: int | None
    tokens: int | None
    dollars: float | None
    seconds: float | None
    latency: Mapping[str, float]
    faults: tuple[MetFault, ...] = ()


@dataclass(frozen=True, kw_only=True)
class FaultRun(RunFigures):
    """A run and what it cost; ``success`` None is open. ``stalled``: an action or a page took
    longer than the browser waits, as on a busy machine."""

    key: PairKey
    success: bool | None
    side_effect: bool | None = None
    steps: int | None = None
    stalled: bool = False

    @property
    def fired(self) -> int:
        """How often a fault of the plan fired."""
        return sum(met.fired for met in self.faults)


@dataclass(frozen=True)
class FaultSpan:
    """What a plan says of one fault."""

    id: str
    kind: str
    policy: str
    accessibility: str = ""

    @property
    def described(self) -> str:
        return f"{self.kind}, {self.accessibility}" if self.accessibility else self.kind


@dataclass(frozen=True)
class ExperimentArm:
    """The runs under one plan; their trajectories, if they have any, are in
    ``folders``."""

    name: str
    runs: Sequence[FaultRun]
    faults: tuple[FaultSpan, ...] = ()
    folders: tuple[str, ...] = ()

    @property
    def by_key(self) -> Mapping[PairKey, FaultRun]:
        return {run.key: run for run in self.runs}


class FaultPair(NamedTuple):
    """The same task by the same agent, without faults and with them."""

    clean: FaultRun
    faulted: FaultRun


@dataclass(frozen=True)
class FaultExperiment:
    """A clean arm and the faulted ones; ``notes`` say what is missing."""

    clean: ExperimentArm
    faulted: Sequence[ExperimentArm]
    notes: tuple[str, ...] = ()

    @property
    def agents(self) -> list[str]:
        """Names of the agents that have runs, sorted."""
        return sorted({run.key.agent for arm in self.arms for run in arm.runs})

    @property
    def arms(self) -> list[ExperimentArm]:
        return [self.clean, *self.faulted]

    def pairs(self, arm: ExperimentArm, agent: str | None = None) -> list[FaultPair]:
        """Return the pairs of an arm whose outcomes are known on both sides."""
        return list(self._pairs(arm, agent))

    def _pairs(self, arm: ExperimentArm, agent: str | None) -> Iterator[FaultPair]:
        clean = self.clean.by_key
        for run in arm.runs:
            pair = clean.get(run.key)
            known = pair is not None and pair.success is not None and run.success is not None
            if known and pair is not None and agent in (None, run.key.agent):
                yield FaultPair(pair, run)


def span_of(fault: Mapping[str, Any]) -> FaultSpan:
    """Read a fault of a plan's JSON; a policy may be written as text or as an object."""
    policy = fault.get("policy", "")
    kind = str(fault.get("kind", ""))
    shown = policy if isinstance(policy, str) else str(policy)
    accessible = str(fault.get("accessibility", "full")) if kind == "popup" else ""
    return FaultSpan(str(fault.get("id", "")), kind, shown, accessible)


PriceOf = Callable[[str], KnownPrice]

_COUNTS = ("input", "cache_read", "cache_write", "output")

_Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]

_Number = Annotated[int, Field(ge=0)]


class _Exposed(BaseModel):
    fault: str
    planned: list[_Number]
    fired: list[_Number]


class _TaskEnd(BaseModel):
    """What the figures take from a ``task_end``, as the two below from their events."""

    task: str
    seed: int
    page_loads: _Number
    seconds: _Amount
    latency: dict[str, _Amount]
    exposure: list[_Exposed]


class _ModelCall(BaseModel):
    model: str | None = None
    usage: dict[str, _Number | None] | None = None


class _Recovery(BaseModel):
    fault: str
    recovered: bool | None
    means: str


_SHAPES: Mapping[str, type[BaseModel]] = {
    "task_end": _TaskEnd,
    "model": _ModelCall,
    "recovery": _Recovery,
}


@dataclass(frozen=True, kw_only=True)
class TaskFigures(RunFigures):
    """What the proxy measured of one task."""

    task: str
    seed: int


def read_events(path: Path) -> list[dict[str, Any]]:
    """Return the events of a log. Raises UserError that names the file and the line."""
    events = []
    try:
        lines = read_utf8(path).splitlines()
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from error
    for number, line in enumerate(lines, 1):
        try:
            event = json.loads(line)
        except ValueError:
            if number == len(lines):  # what a kill cut off
                break
            raise UserError(f"{path}, line {number}: no JSON; trajudge proxy writes it") from None
        if not isinstance(event, dict) or not isinstance(event.get("type"), str):
            raise UserError(f"{path}, line {number}: no event of trajudge proxy")
        _check_shape(event, f"{path}, line {number}")
        events.append(event)
    return events


def _check_shape(event: Mapping[str, Any], place: str) -> None:
    """Raise UserError for an event that lacks what the figures are made of."""
    if shape := _SHAPES.get(event["type"]):
        try:
            shape.model_validate(event)
        except ValidationError as error:
            wrong = first_error(error, "the event")
            raise UserError(
                f"{place}: the {event['type']} event is damaged: {wrong}: restore the file from a "
                "copy, or run the task again"
            ) from None


def ended_tasks(events: Sequence[Mapping[str, Any]], price_of: PriceOf) -> Iterator[TaskFigures]:
    """Yield the tasks of a log that ended. Tasks may overlap, each under a name of its own."""
    open_events: dict[str, list[Mapping[str, Any]]] = {}
    for event in events:
        name = str(event.get("task", ""))
        if event["type"] == "task":
            open_events[name] = []
        elif name in open_events:
            open_events[name].append(event)
            if event["type"] == "task_end":
                yield _figures(open_events.pop(name), price_of)


def _figures(events: Sequence[Mapping[str, Any]], price_of: PriceOf) -> TaskFigures:
    end = events[-1]
    calls = [event for event in events if event["type"] == "model"]
    usages = [call.get("usage") for call in calls]
    counts = [_tokens(usage) for usage in usages]
    costs = [_dollars(call, price_of) for call in calls]
    latency = {part: float(end["latency"].get(part, 0.0)) for part in LATENCY_PARTS}
    return TaskFigures(
        task=str(end["task"]),
        seed=int(end["seed"]),
        page_loads=int(end["page_loads"]),
        model_calls=len(calls),
        tokens=_sum(counts),
        dollars=_sum(costs),
        seconds=float(end["seconds"]),
        latency=latency,
        faults=tuple(_met(end, events)),
    )


def _met(end: Mapping[str, Any], events: Iterable[Mapping[str, Any]]) -> Iterator[MetFault]:
    """Yield what came of each fault; the ``recovery`` events say what it was recovered by."""
    recoveries = [event for event in events if event["type"] == "recovery"]
    for exposure in end["exposure"]:
        mine = [event for event in recoveries if event["fault"] == exposure["fault"]]
        yield MetFault(
            fault=str(exposure["fault"]),
            planned=len(exposure["planned"]),
            fired=len(exposure["fired"]),
            recovered=sum(event["recovered"] is True for event in mine),
            means=tuple(str(event["means"]) for event in mine),
        )


def _tokens(usage: Mapping[str, int | None] | None) -> int | None:
    """Add up what a call states; None where it states neither prompt nor reply."""
    if not usage or usage.get("input") is None or usage.get("output") is None:
        return None
    return sum(usage.get(name) or 0 for name in _COUNTS)


def _dollars(call: Mapping[str, Any], price_of: PriceOf) -> float | None:
    usage = call.get("usage")
    if _tokens(usage) is None or usage is None:
        return None
    counted = Usage(**{name: usage.get(name) or 0 for name in (*_COUNTS, "reasoning")})
    return price_of(str(call.get("model") or "")).cost(counted)


def _sum(values: Sequence[Any]) -> Any:
    """Add up; None where a value is not known."""
    return None if any(value is None for value in values) else sum(values)


_TRUTHS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False, "": None}


class TaskOutcome(NamedTuple):
    """How a run of a task ended."""

    success: bool | None
    agent: str
    steps: int | None


class OutcomePlace(NamedTuple):
    """Which run an outcome is of; without a seed, each run of the task."""

    arm: str
    task: str
    seed: int | None


@dataclass(frozen=True)
class OutcomeFile:
    """Outcomes by arm, task and seed, which a file may leave out."""

    path: Path
    outcomes: Mapping[OutcomePlace, TaskOutcome]

    @classmethod
    def read(cls, path: Path) -> OutcomeFile:
        """Read a file. Raises UserError that names the line and the value."""
        outcomes: dict[OutcomePlace, TaskOutcome] = {}
        for number, row in _rows(path):
            task = str(row.get("task") or "")
            arm = str(row.get("arm") or "")
            if not task or not arm or "success" not in row:
                raise UserError(f"{path}, line {number}: needs the columns task, arm and success")
            place = OutcomePlace(arm, task, _number(path, number, row, "seed"))
            if place in outcomes:
                raise UserError(f"{path}, line {number}: {task!r} has an outcome already")
            outcomes[place] = TaskOutcome(
                _truth(path, number, row["success"]),
                _word(row, "agent") or "",
                _number(path, number, row, "steps"),
            )
        return cls(path, outcomes)

    def place_of(self, arm: str, task: str, seed: int) -> OutcomePlace | None:
        """Return where a run's outcome stands: the line that names most of it; None for none."""
        places = (OutcomePlace(arm, task, seed), OutcomePlace(arm, task, None))
        return next((place for place in places if place in self.outcomes), None)


def _rows(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    try:
        text = read_text(path)
    except OSError as error:
        raise UserError(f"--outcomes {path}: cannot be read ({error.strerror})") from error
    if path.suffix != ".jsonl":
        reader = csv.DictReader(io.StringIO(text, newline=""))
        yield from ((number, row) for number, row in enumerate(reader, 2))
        return
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                row = json.loads(line)
            except ValueError:
                row = None
            if not isinstance(row, dict):
                raise UserError(f"{path}, line {number}: no JSON object")
            yield number, row


def _truth(path: Path, number: int, value: Any) -> bool | None:
    word = "" if value is None else str(value).strip().lower()
    if word not in _TRUTHS:
        raise UserError(
            f"{path}, line {number}: success is {value!r:.40}: write true, false, or nothing where "
            "it is not known"
        )
    return _TRUTHS[word]


def _word(row: Mapping[str, Any], name: str) -> str | None:
    value = row.get(name)
    return str(value) if value not in (None, "") else None


def _number(path: Path, line: int, row: Mapping[str, Any], name: str) -> int | None:
    value = row.get(name)
    if value in (None, ""):
        return None
    try:
        return int(str(value))
    except ValueError:
        raise UserError(f"{path}, line {line}: {name} is {value!r:.40}, no whole number") from None


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
        raise UserError(f"{path}: cannot be read ({error.strerror})") from error
    except ValueError as error:
        raise UserError(f"{path}: is damaged, no JSON ({error}): {_RESTORE}") from error
    if not isinstance(content, dict):
        raise UserError(f"{path}: is damaged, no JSON object: {_RESTORE}")
    return content
