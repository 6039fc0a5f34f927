"""A text that a pattern matches, built from the pattern and checked against it."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from trajudge.rules.errors import InvalidValue
from trajudge.rules.limits import fullmatch

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from re import _parser as parser  # type: ignore[attr-defined]

_MOST_REPEATS = 64
_CATEGORIES = {
    "CATEGORY_DIGIT": "1",
    "CATEGORY_WORD": "a",
    "CATEGORY_SPACE": " ",
    "CATEGORY_NOT_DIGIT": "a",
    "CATEGORY_NOT_SPACE": "a",
    "CATEGORY_NOT_WORD": "-",
}


def example(pattern: str, filler: str = "") -> str | None:
    """Return a text that the whole pattern matches; None if none of a few attempts does.

    ``filler`` stands where the pattern allows any text. Look-aheads are met by writing what they
    ask for in their place.
    """
    try:
        parsed = parser.parse(pattern)
    except (re.error, RecursionError, OverflowError):
        return None
    for between in dict.fromkeys((filler, "", "x", " ")):
        text = "".join(_walk(parsed, between))
        try:
            if fullmatch(pattern, text):
                return text
        except InvalidValue:
            return None
    return None


def refused(pattern: str) -> str | None:
    """Return a text that one of the pattern's negative look-aheads names and the whole pattern
    refuses; None if there is none."""
    try:
        parsed = parser.parse(pattern)
        banned = ["".join(_walk(value[1], "")) for value in _assertions(parsed)]
        return next((text for text in banned if not fullmatch(pattern, text)), None)
    except (re.error, RecursionError, OverflowError, InvalidValue):
        return None


def _assertions(parsed: Any) -> Iterator[Any]:
    """Yield the negative look-aheads of a pattern, at any depth of its groups."""
    for code, value in parsed:
        if str(code) == "ASSERT_NOT":
            yield value
        elif str(code) == "SUBPATTERN":
            yield from _assertions(value[3])


def _walk(parsed: Any, filler: str) -> Iterator[str]:
    for code, value in parsed:
        yield _part(str(code), value, filler)


def _part(code: str, value: Any, filler: str) -> str:
    """Return what one part of a pattern stands for."""
    if code in _ONE_CHARACTER:
        return str(_ONE_CHARACTER[code](value))
    if code == "BRANCH":
        return "".join(_walk(value[1][0], filler))
    if code == "SUBPATTERN":
        return "".join(_walk(value[3], filler))
    if code == "ASSERT":
        return "".join(_walk(value[1], filler)) if value[0] > 0 else ""
    return _repeated(value, filler) if "REPEAT" in code else ""


def _repeated(value: Any, filler: str) -> str:
    least, _, inner = value
    least = int(least)
    one = "".join(_walk(inner, filler))
    if str(inner[0][0]) == "ANY" and (filler or not least):
        return filler
    return one * min(least, _MOST_REPEATS)


def _one_of(members: Any) -> str:
    """Return a character of a set."""
    code, value = members[0]
    if str(code) == "NEGATE":
        banned = {chr(member) for kind, member in members[1:] if str(kind) == "LITERAL"}
        return next(char for char in "ax1-_" if char not in banned)
    if str(code) == "LITERAL":
        return chr(int(value))
    if str(code) == "RANGE":
        return chr(int(value[0]))
    return _CATEGORIES.get(str(value), "a")


# A full stop in a pattern is most often meant as one.
_ONE_CHARACTER: dict[str, Callable[[Any], str]] = {
    "LITERAL": chr,
    "NOT_LITERAL": lambda value: "a" if value != ord("a") else "b",
    "IN": _one_of,
    "ANY": lambda _: ".",
}
