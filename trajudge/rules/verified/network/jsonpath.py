"""JSONPath as the specifications use it: names, positions, ``*`` and filters by comparisons.

``$.a.b``, ``$['a-b']``, ``$.a[0]``, ``$.a[*].b``, ``$.a[?(@.b == 1)].c``,
``$.a[?(@.b == 1 && @.c[0].d == 'x')].e``. No scripts, no recursion: a path is a list of steps, and
following it takes time linear in what it visits.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

from trajudge.rules.errors import BadPattern

_LITERAL = r"""'[^']*'|"[^"]*"|-?\d+(?:\.\d+)?|true|false|null"""
_FIELD = r"\.[\w-]+(?:\.[\w-]+|\[\d{1,6}\])*"
_COMPARISON = rf"@({_FIELD})\s*(==|!=|<=|>=|<|>)\s*({_LITERAL})"
_ANY_COMPARISON = re.sub(r"\((?!\?)", "(?:", _COMPARISON)
_STEP = re.compile(
    rf"""\.(?P<name>[\w-]+|\*)
      | \[\s*(?P<quoted>'[^']*'|"[^"]*")\s*\]
      | \[\s*(?P<position>-?\d{{1,6}}|\*)\s*\]
      | \[\?\(\s*(?P<filter>{_ANY_COMPARISON}(?:\s*&&\s*{_ANY_COMPARISON})*)\s*\)\]""",
    re.VERBOSE,
)
_EACH_COMPARISON = re.compile(_COMPARISON)
_SIGNS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_WORDS = {"true": True, "false": False, "null": None}
MAX_FOUND = 10_000


class PathFilter(NamedTuple):
    """``[?(@.a sign value)]``; ``place`` is ``.a``, or leads further in (``.a[0].b``); ``also``
    are comparisons that must hold besides (``&&``)."""

    place: str
    sign: str
    value: Any
    also: tuple[PathFilter, ...] = ()


Step: TypeAlias = str | int | PathFilter
EVERY = "*"


class Path(NamedTuple):
    """The steps of a path; ``several`` if it may lead to more than one place."""

    steps: tuple[Step, ...]
    several: bool


@lru_cache(maxsize=1024)
def compiled(path: str) -> Path:
    """Return the steps of a path that begins with ``$``. Raises BadPattern for any other text."""
    if not path.startswith("$"):
        raise BadPattern(f"the path {path[:60]!r} does not begin with $")
    steps: list[Step] = []
    at = 1
    while at < len(path):
        step = _STEP.match(path, at)
        if step is None:
            raise BadPattern(f"the path {path[:60]!r} is not understood at {path[at : at + 20]!r}")
        steps.append(_step(step))
        at = step.end()
    several = any(step == EVERY or isinstance(step, PathFilter) for step in steps)
    return Path(tuple(steps), several)


def _step(match: re.Match[str]) -> Step:
    if match["filter"]:
        first, *others = (
            PathFilter(found[1], found[2], _literal(found[3]))
            for found in _EACH_COMPARISON.finditer(match["filter"])
        )
        return first._replace(also=tuple(others))
    if match["quoted"]:
        return match["quoted"][1:-1]
    if match["position"] and match["position"] != EVERY:
        return int(match["position"])
    return match["name"] or EVERY


def _literal(text: str) -> Any:
    if text in _WORDS:
        return _WORDS[text]
    if text[0] in "'\"":
        return text[1:-1]
    return float(text) if "." in text else int(text)


def find(path: str, data: Any) -> list[Any]:
    """Return the values at a path, in order; none where it leads nowhere. Raises BadPattern."""
    found = [data]
    for step in compiled(path).steps:
        found = [value for item in found for value in _follow(step, item)][:MAX_FOUND]
    return found


def _follow(step: Step, item: Any) -> Iterator[Any]:
    if isinstance(step, PathFilter):
        yield from (value for value in _items(item) if _holds(step, value))
    elif step == EVERY:
        yield from _items(item)
    elif isinstance(step, int):
        if isinstance(item, list) and -len(item) <= step < len(item):
            yield item[step]
    elif isinstance(item, dict) and step in item:
        yield item[step]


def _items(item: Any) -> Iterator[Any]:
    if isinstance(item, dict):
        yield from item.values()
    elif isinstance(item, list):
        yield from item


def _holds(step: PathFilter, item: Any) -> bool:
    there = find(f"${step.place}", item) if isinstance(item, dict) else []
    try:
        held = bool(there) and _SIGNS[step.sign](there[0], step.value)
    except TypeError:
        return False
    return held and all(_holds(other, item) for other in step.also)
