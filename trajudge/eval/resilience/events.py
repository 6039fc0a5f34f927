"""The proxy's events of a task as the figures of a run."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field, ValidationError

from trajudge.eval.resilience.records import LATENCY_PARTS, MetFault, RunFigures
from trajudge.judges.model import Usage
from trajudge.judges.models.prices import KnownPrice
from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.safe_files import read_utf8
from trajudge.trajectories.util.validation import first_error

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
        raise UserError(f"{path}: cannot be read ({error.strerror or error})") from error
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
