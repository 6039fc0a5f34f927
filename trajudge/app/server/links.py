"""Addresses of pages, with every part quoted."""

from __future__ import annotations

from urllib.parse import quote, unquote, urlencode

from trajudge.trajectories.model import TrajectoryKey
from trajudge.util.jsonl import without_surrogates

_MARK = "~"


def address(*parts: str | int, **query: str | int | None) -> str:
    """Join parts of a path and a query; a query's None and "" are left out."""
    path = "/" + "/".join(_part(str(part)) for part in parts)
    named = {name: value for name, value in query.items() if value not in (None, "")}
    return path + ("?" + urlencode(named, errors="replace") if named else "")


def trajectory_link(key: TrajectoryKey, **query: str | int | None) -> str:
    """Return the address of a trajectory's page."""
    return address("t", key.benchmark, key.agent, key.task_id, key.attempt, **query)


def read_part(quoted: str) -> str:
    """Return the text of a quoted part of an address that ``address`` made."""
    text = unquote(quoted)
    return text[1:] if text.startswith(_MARK) else text


def _part(text: str) -> str:
    # A browser takes "." and ".." out of a path, quoted or not: they are marked. So is what begins
    # with the mark itself.
    marked = _MARK + text if text in (".", "..") or text.startswith(_MARK) else text
    return quote(str(without_surrogates(marked)), safe="")
