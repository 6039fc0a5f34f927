"""Addresses of pages, with every part quoted."""

from __future__ import annotations

from urllib.parse import quote, urlencode

from trajudge.trajectories.model import TrajectoryKey
from trajudge.trajectories.util.surrogates import without_surrogates


def address(*parts: str | int, **query: str | int | None) -> str:
    """Join parts of a path and a query; a query's None and "" are left out."""
    # A part "." or ".." would be taken out by a browser, an empty one is no part of a route.
    path = "/" + "/".join(_part(str(part)) for part in parts)
    named = {name: value for name, value in query.items() if value not in (None, "")}
    return path + ("?" + urlencode(named, errors="replace") if named else "")


def trajectory_link(key: TrajectoryKey, **query: str | int | None) -> str:
    """Return the address of a trajectory's page."""
    return address("t", key.benchmark, key.agent, key.task_id, key.attempt, **query)


def _part(text: str) -> str:
    quoted = quote(str(without_surrogates(text)), safe="")
    return quoted.replace(".", "%2E") if text.strip(".") == "" else quoted
