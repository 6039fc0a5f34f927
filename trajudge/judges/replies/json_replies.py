"""JSON in a model's reply: in a fence, with prose around it, with small mistakes that are told.

Strict JSON first. Where there is none, comments and trailing commas are taken out, and only those:
a text that was cut off is not completed, and nothing is guessed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from trajudge.judges.replies.parsing import ParseFailure, without_thinking

FALLBACK = "JSON with comments or trailing commas"
# An opening brace in prose closes nowhere: so many of them are stepped over.
_STARTS = 20
_MAX_CHARACTERS = 200_000
# What is never closed goes on to the end, so that every character is looked at once.
_STRING = r'"(?:[^"\\\n]|\\.)*+"?'
_TOKEN = re.compile(rf"{_STRING}|[{{}}]", re.DOTALL)
_COMMENT = re.compile(rf"({_STRING})|//[^\n]*|#[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_TRAILING = re.compile(rf"({_STRING})|,(?=\s*[}}\]])", re.DOTALL)


class Found(NamedTuple):
    """An object of a reply; ``fallback`` says what was mended to read it, "" if nothing."""

    fields: Mapping[str, Any]
    fallback: str


def parse_json(text: str, keys: Collection[str]) -> Found:
    """Parse the one object in the reply that has all of ``keys``; its thinking is ignored.

    Linear in the length of the text. Raises ParseFailure if there is none, if two of them differ,
    or if one names a key twice with different values.
    """
    text = without_thinking(text)[:_MAX_CHARACTERS]
    spans = list(_objects(text))
    for mend in (False, True):
        objects: list[dict[str, Any]] = []
        for span in spans:
            value = _decoded(_mended(span) if mend else span)
            if value is not None and set(keys) <= value.keys() and value not in objects:
                objects.append(value)
        if len(objects) > 1:
            raise ParseFailure("the reply holds two contradicting JSON objects")
        if objects:
            return Found(objects[0], FALLBACK if mend else "")
    raise ParseFailure(f"the reply holds no JSON object with {', '.join(keys)}")


def _objects(text: str) -> Iterator[str]:
    """Yield the outermost balanced ``{...}``; braces in strings do not count."""
    position = 0
    for _ in range(_STARTS):
        start = text.find("{", position)
        if start < 0:
            return
        end = _closing(text, start)
        if end is not None:
            yield text[start:end]
        position = start + 1 if end is None else end


def _closing(text: str, start: int) -> int | None:
    depth = 0
    for token in _TOKEN.finditer(text, start):
        if token[0] == "{":
            depth += 1
        elif token[0] == "}":
            depth -= 1
            if depth == 0:
                return token.end()
    return None


def _mended(text: str) -> str:
    text = _COMMENT.sub(lambda match: match[1] or "", text)
    return _TRAILING.sub(lambda match: match[1] or "", text)


def _decoded(text: str) -> dict[str, Any] | None:
    """Decode the object; None if it is no JSON. Raises ParseFailure if it contradicts itself."""
    try:
        value = json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name, value in pairs:
        if fields.setdefault(name, value) != value:
            raise ParseFailure(f"the reply contradicts itself about {name[:40]!r}")
    return fields


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def number_in(fields: Mapping[str, Any], name: str, low: float, high: float) -> float:
    """Return a number of the object, within limits. Raises ParseFailure."""
    value = fields[name]
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise ParseFailure(f"the reply says {name} = {str(value)[:40]}, not {low:g} to {high:g}")
    return float(value)


def whole_number_in(fields: Mapping[str, Any], name: str, low: int, high: int) -> int:
    """Return a whole number of the object, within limits. Raises ParseFailure."""
    value = number_in(fields, name, low, high)
    if value != int(value):
        raise ParseFailure(f"the reply says {name} = {value:g}, no whole number")
    return int(value)


def flag(fields: Mapping[str, Any], name: str) -> bool:
    """Return a true or false of the object. Raises ParseFailure for anything else."""
    value = fields[name]
    if not isinstance(value, bool):
        raise ParseFailure(f"the reply says {name} = {str(value)[:40]}, neither true nor false")
    return value


def answer_schema(name: str, properties: Mapping[str, Any]) -> dict[str, Any]:
    """Build ``response_format`` for an object of exactly these properties, in this order."""
    schema = {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }
    return {
        "type": "json_schema",
        "json_schema": {"name": name, "strict": True, "schema": schema},
    }
