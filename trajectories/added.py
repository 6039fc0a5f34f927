"""Fields that a record on disk gains in a later version: absent means the default.

A record that leaves such a field out, and one that was written before the field existed, are the
same record: ``stable_dump`` gives both the same content, so that hashes and comparisons of earlier
files stay valid.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field

from trajudge.trajectories.model import Record

_MARK = "added"


def added(default: Any = ..., **constraints: Any) -> Any:
    """Declare a field that earlier versions did not write; the default is what they did.

    Takes what ``pydantic.Field`` takes; ``default`` or ``default_factory`` is required.
    """
    return Field(default, json_schema_extra={_MARK: True}, **constraints)


def stable_dump(record: Record) -> dict[str, Any]:
    """Dump a record as JSON values, without added fields that have their default, at any depth."""
    content: dict[str, Any] = record.model_dump(mode="json")
    for name, field in type(record).model_fields.items():
        value = getattr(record, name)
        extra = field.json_schema_extra
        is_added = isinstance(extra, dict) and extra.get(_MARK) is True
        if is_added and value == field.get_default(call_default_factory=True):
            del content[name]
        elif isinstance(value, Record):
            content[name] = stable_dump(value)
        elif isinstance(value, tuple):
            content[name] = [
                stable_dump(item) if isinstance(item, Record) else content[name][position]
                for position, item in enumerate(value)
            ]
    return content
