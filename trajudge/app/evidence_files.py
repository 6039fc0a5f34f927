"""What lies beside a trajectory in its data: the network trace and the facts of the environment."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from trajudge.trajectories.model import Trajectory, TrajectoryKey
from trajudge.util.files import DataFolder, UnsafeFile

MAX_BYTES = 64 * 2**20
MAX_REQUESTS = 2_000
FACTS = "facts.jsonl"
_KINDS = ("added", "removed", "changed")
_SEPARATOR = re.compile(r", (?=\w+ = )")
_AS_ASKED = "as asked"


class NetworkRequest(NamedTuple):
    """A line of the trace; ``status`` 0 where no answer came, ``size`` in bytes, -1 unknown."""

    method: str
    url: str
    status: int
    kind: str
    size: int
    milliseconds: float


class ShownRequests(NamedTuple):
    """The requests of a HAR file, or in words why it cannot be shown; ``left_out`` are those behind
    the first ``MAX_REQUESTS``."""

    file: str
    requests: tuple[NetworkRequest, ...] = ()
    left_out: int = 0
    problem: str = ""


class StateFact(NamedTuple):
    """One part of the facts: a name, and what is known of it."""

    name: str
    text: str
    holds: bool | None = None


def network_trace(trajectory: Trajectory, folder: Path, root: DataFolder) -> ShownRequests | None:
    """Read the HAR file that belongs to the trajectory; None if there is none."""
    key = trajectory.key
    names = (
        f"traces/{trajectory.raw_task_id}.{key.agent}.{key.attempt}.har",
        f"{trajectory.raw_task_id}/network.har",
        f"{key.task_id}/network.har",
    )
    for name in names:
        path = folder / name
        if ".." in Path(name).parts or "\0" in name or not root.has_file(path):
            continue
        try:
            entries = orjson.loads(root.read(path, MAX_BYTES))["log"]["entries"]
            requests = tuple(_request(entry) for entry in entries[:MAX_REQUESTS])
            return ShownRequests(name, requests, max(0, len(entries) - MAX_REQUESTS))
        except (UnsafeFile, OSError, ValueError, KeyError, TypeError, AttributeError):
            return ShownRequests(name, problem=f"{name} is no HAR file that can be read.")
    return None


def _request(entry: dict[str, Any]) -> NetworkRequest:
    request, response = entry["request"], entry.get("response") or {}
    content = response.get("content") or {}
    return NetworkRequest(
        method=str(request.get("method")),
        url=str(request.get("url")),
        status=int(response.get("status") or 0),
        kind=str(content.get("mimeType") or ""),
        size=int(content.get("size", -1)),
        milliseconds=float(entry.get("time") or 0),
    )


def state_facts(key: TrajectoryKey, folder: Path, root: DataFolder) -> tuple[StateFact, ...]:
    """Read the facts that a generated environment recorded of the run; empty if there are none."""
    path = folder / FACTS
    if not root.has_file(path):
        return ()
    try:
        lines = root.read(path, MAX_BYTES).splitlines()
    except (UnsafeFile, OSError):
        return ()
    mark = orjson.dumps(key.task_id)
    for line in lines:
        if mark not in line:
            continue
        try:
            facts = orjson.loads(line)
            if TrajectoryKey.model_validate(facts["key"]) == key:
                return tuple(_facts(facts))
        except (ValueError, KeyError, TypeError):
            continue
    return ()


def _facts(facts: dict[str, Any]) -> Iterator[StateFact]:
    changes = _objects(facts, "changes")
    for each in _objects(facts, "predicates"):
        counts = f"{each.get('found')} found, {each.get('wanted')} wanted"
        text = f"{described(each, changes)}: {counts}"
        yield StateFact("must hold", text, bool(each.get("holds")))
    for each in _objects(facts, "answers"):
        expected, given = _joined(each.get("expected")), _joined(each.get("found"))
        reason = f" ({each['reason']})" if each.get("reason") else ""
        text = f"expected {expected}, in the answer {given or 'none'}{reason}"
        yield StateFact(f"answer ({each.get('kind')})", text, bool(each.get("right")))
    for each in changes:
        inside = each.get("inside")
        text = f"{each.get('kind')} {each.get('table')} {each.get('key')}: {_columns(each)}"
        yield StateFact("changed row", text, bool(inside) if inside is not None else None)
    for name in ("noise", "tampering", "faults"):
        if facts.get(name):
            yield StateFact(name, orjson.dumps(facts[name]).decode())
    for name in ("repeated", "steps", "shortest"):
        if isinstance(facts.get(name), int):
            yield StateFact(name, str(facts[name]))


def _objects(facts: dict[str, Any], name: str) -> list[dict[str, Any]]:
    value = facts.get(name)
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _joined(values: object) -> str:
    return ", ".join(map(str, values)) if isinstance(values, list) else str(values)


def _columns(change: dict[str, Any]) -> str:
    before, after = change.get("before") or {}, change.get("after") or {}
    if not isinstance(before, dict) or not isinstance(after, dict):
        return ""
    return ", ".join(
        f"{name} {before[name]} → {after.get(name)}" if name in before else f"{name} {after[name]}"
        for name in {**before, **after}
    )


class _Expectation(NamedTuple):
    """Kind and table of the expected change; ``key`` is "" where any row will do."""

    kind: str
    table: str
    key: str
    values: dict[str, str]


def described(predicate: Mapping[str, Any], changes: Sequence[Mapping[str, Any]]) -> str:
    """Return what was done where exactly the wanted changes meet the predicate; else what was
    asked for.

    A predicate is called as its scenario writes it (``added purchase: delivery = {delivery}``), so
    that its name is the same in every configuration; nobody reads the names that stand for values.
    """
    name = str(predicate.get("name"))
    expectation = _parsed(name)
    if expectation is None or "{" not in name:
        return name
    met = [change for change in changes if _meets(expectation, change)]
    if not predicate.get("holds") or len(met) != predicate.get("wanted"):
        return _sentence(expectation, expectation.key and "(the one that was meant)", {})
    return "; ".join(
        _sentence(expectation, expectation.key and str(change.get("key")), _row(change))
        for change in met
    )


def _parsed(name: str) -> _Expectation | None:
    """Parse ``KIND TABLE [KEY] [xCOUNT][: COLUMN = VALUE, ...]``; None for another text."""
    head, _, values = name.partition(": ")
    kind, table, *more = [*head.split(" "), "", ""][:4]
    if kind not in _KINDS or not table:
        return None
    key = "" if re.fullmatch(r"x\d+", more[0]) else more[0]
    parts = [part.partition(" = ") for part in _SEPARATOR.split(values) if part]
    return _Expectation(kind, table, key, {column: value for column, _, value in parts})


def _meets(expectation: _Expectation, change: Mapping[str, Any]) -> bool:
    if not change.get("inside"):
        return False
    if (change.get("kind"), change.get("table")) != (expectation.kind, expectation.table):
        return False
    row = _row(change)
    return all(
        "{" in value or str(row.get(column)) == value
        for column, value in expectation.values.items()
    )


def _row(change: Mapping[str, Any]) -> Mapping[str, Any]:
    row = change.get("before" if change.get("kind") == "removed" else "after")
    return row if isinstance(row, dict) else {}


def _sentence(expectation: _Expectation, key: str, row: Mapping[str, Any]) -> str:
    head = " ".join(filter(None, (expectation.kind, expectation.table, key)))
    values = ", ".join(_assignments(expectation.values, row))
    return f"{head}: {values}" if values else head


def _assignments(values: Mapping[str, str], row: Mapping[str, Any]) -> Iterator[str]:
    for column, value in values.items():
        if "{" not in value:
            yield f"{column} = {value}"
        else:
            yield f"{column} = {row[column]}" if column in row else f"{column} {_AS_ASKED}"
