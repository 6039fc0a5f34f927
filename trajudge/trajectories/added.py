"""Fields that a record on disk gains in a later version: absent means the default.

A record that leaves such a field out, and one that was written before the field existed, are the
same record: ``stable_dump`` gives both the same content, so that hashes and comparisons of earlier
files stay valid.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from pydantic import Field

from trajudge.trajectories.model import Record, defaults_of

_MARK = "added"


def added(default: Any = ..., **constraints: Any) -> Any:
    """Declare a field that earlier versions did not write; the default is what they did.

    Takes what ``pydantic.Field`` takes; ``default`` or ``default_factory`` is required.
    """
    return Field(default, json_schema_extra={_MARK: True}, **constraints)


def absent_fields(record: Record) -> set[str]:
    """Name the added fields of a record that have their default: files leave them out, so that a
    record without news has the bytes that it had before the fields existed."""
    return {name for name, default in _added(type(record)) if getattr(record, name) == default}


@cache
def _added(kind: type[Record]) -> tuple[tuple[str, Any], ...]:
    """Return name and default of the fields that ``added`` declares, in their order."""
    return tuple(
        (name, default)
        for name, default in defaults_of(kind).items()
        if isinstance(extra := kind.model_fields[name].json_schema_extra, dict)
        and extra.get(_MARK) is True
    )


def stable_dump(record: Record) -> dict[str, Any]:
    """Dump a record as JSON values, without added fields that have their default, at any depth."""
    content: dict[str, Any] = record.model_dump(mode="json")
    absent = absent_fields(record)
    for name in type(record).model_fields:
        value = getattr(record, name)
        if name in absent:
            del content[name]
        elif isinstance(value, Record):
            content[name] = stable_dump(value)
        elif isinstance(value, tuple):
            content[name] = [
                stable_dump(entry) if isinstance(entry, Record) else content[name][position]
                for position, entry in enumerate(value)
            ]
    return content
