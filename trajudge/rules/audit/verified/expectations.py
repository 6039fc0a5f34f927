"""What a task's specification expects, as data, documents and bodies that a run can hold.

Of alternatives the first is taken, for a pattern a text that it matches, and what a path names is
written where the path leads.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import msgspec

from trajudge.rules.audit.verified.examples import example
from trajudge.rules.verified.dataset import NetworkCheck
from trajudge.rules.verified.network.jsonpath import EVERY, PathFilter, compiled
from trajudge.rules.verified.network.patterns import HOLE, is_pattern


class Unsatisfiable(Exception):
    """No text can be built for a part of the specification; the message names it."""


def rendered(text: str, hosts: Mapping[str, tuple[str, ...]]) -> str:
    """Return the text with the sites' addresses for their placeholders."""
    for name, bases in hosts.items():
        text = text.replace(name, bases[0])
    return text


def matching_text(value: str, filler: str = "") -> str:
    """Return the text itself, or one that matches it. Raises Unsatisfiable."""
    if not is_pattern(value):
        return value
    found = example(value, filler)
    if found is None:
        raise Unsatisfiable(f"no text was found that the pattern {value[:200]!r} matches")
    return found


def expected_data(
    schema: Mapping[str, Any], value: Any, hosts: Mapping[str, tuple[str, ...]]
) -> Any:
    """Return expected data with the first of alternatives and a text for every pattern."""
    if isinstance(value, str):
        return rendered(HOLE.sub("1", matching_text(value)), hosts)
    if schema.get("type") == "array" and isinstance(value, list):
        return [expected_data(schema.get("items") or {}, item, hosts) for item in value]
    if isinstance(value, list) and schema.get("format") == "coordinates":
        return value[0] if value and isinstance(value[0], list | dict) else value
    if isinstance(value, list) and value:
        return expected_data(schema, value[0], hosts)
    if isinstance(value, dict):
        known = schema.get("properties") or {}
        return {
            key: expected_data(known.get(key) or {}, item, hosts) for key, item in value.items()
        }
    return value


def encoded(value: Any) -> str:
    """Return a value as JSON."""
    return msgspec.json.encode(value).decode()


def posted(check: NetworkCheck, hosts: Mapping[str, tuple[str, ...]]) -> dict[str, Any]:
    """Return a form where all fields are texts at the top, else a JSON document."""
    fields = check.expected.post_data or {}
    nested = any(key.startswith("$") and not key.startswith("$.^") for key in fields)
    typed = any(not isinstance(value, str | None) for value in fields.values())
    document = expected_document(fields, check, hosts)
    if nested or typed:
        return {"mimeType": "application/json", "text": encoded(document)}
    return {
        "mimeType": "application/x-www-form-urlencoded",
        "text": urlencode(document) or "form_key=1",
    }


def expected_document(
    fields: Mapping[str, Any], check: NetworkCheck, hosts: Mapping[str, tuple[str, ...]]
) -> dict[str, Any]:
    """Return an object that has every field, where its path says. Fields that must be absent
    are."""
    schema = ((check.post_data_schema or {}).get("properties")) or {}
    made: dict[str, Any] = {}
    for key, expected in fields.items():
        if expected is None:
            continue
        value = expected_data(schema.get(key) or {}, expected, hosts)
        pattern = key[2:] if key.startswith("$.^") else key
        if is_pattern(pattern):
            made[matching_text(pattern)] = value
        elif key.startswith("$"):
            # A path that may lead to several places has one item of the list at each.
            several = compiled(key).several and isinstance(value, list)
            for item in value if several else [value]:
                _place(made, list(compiled(key).steps), item)
        else:
            made[HOLE.sub("1", key)] = value
    return made


def _place(made: Any, steps: list[Any], value: Any) -> None:
    """Write a value where the steps lead, making objects and lists on the way."""
    step, rest = steps[0], steps[1:]
    if isinstance(step, PathFilter) or step == EVERY:
        tests = (step, *step.also) if isinstance(step, PathFilter) else ()
        row: dict[str, Any] = {}
        for test in tests:
            _place(row, list(compiled(f"${test.place}").steps), test.value)
        made.append(row)
        step = len(made) - 1
    if isinstance(step, int):
        made.extend({} for _ in range(step + 1 - len(made)))
    if not rest:
        made[step] = value
        return
    lists = isinstance(rest[0], int | PathFilter) or rest[0] == EVERY
    there = made[step] if isinstance(step, int) else made.setdefault(step, [] if lists else {})
    _place(there, rest, value)
