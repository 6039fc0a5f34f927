"""Where a task's time went: each moment belongs to one part, however many requests overlap.

A moment in which a model call is under way is the model's; else it is injected, if a fault holds a
request back; else the site's; else the proxy's own. What is left belongs to the agent.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple, get_args

Part = Literal["model", "injected", "site", "proxy"]
PARTS: tuple[Part, ...] = get_args(Part)


class Span(NamedTuple):
    """A part's interval, in seconds of one clock."""

    part: Part
    start: float
    end: float


def split(spans: Iterable[Span], start: float, end: float) -> dict[str, float]:
    """Return seconds per part, and of the ``agent``, between ``start`` and ``end``; the five sum to
    the whole. Spans are cut at both."""
    edges: list[tuple[float, int, Part]] = []
    for span in spans:
        first, last = max(span.start, start), min(span.end, end)
        if last > first:
            edges += [(first, 1, span.part), (last, -1, span.part)]
    edges.sort(key=lambda edge: edge[0])
    seconds = dict.fromkeys((*PARTS, "agent"), 0.0)
    under_way = dict.fromkeys(PARTS, 0)
    moment = start
    for at, change, part in edges:
        seconds[_owner(under_way)] += at - moment
        moment = at
        under_way[part] += change
    seconds["agent"] += max(0.0, end - moment)
    return seconds


def _owner(under_way: dict[Part, int]) -> str:
    return next((part for part in PARTS if under_way[part]), "agent")
