"""What lies beside a trajectory in its data: the network trace and the facts of the environment."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from trajudge.trajectories.model import Trajectory, TrajectoryKey
from trajudge.util.files import DataFolder, UnsafeFile

MAX_BYTES = 64 * 2**20
MAX_REQUESTS = 2_000
FACTS = "facts.jsonl"
_PLACEHOLDER = re.compile(r"\{[^{}]*\}")


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
        # Names in braces stand for values, which the changed rows show.
        name = _PLACEHOLDER.sub("…", str(each.get("name")))
        text = f"{name}: {each.get('found')} found, {each.get('wanted')} wanted"
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
