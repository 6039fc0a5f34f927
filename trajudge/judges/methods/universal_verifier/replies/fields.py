"""Fields of a stage's JSON reply, checked; every check raises ParseFailure with one sentence."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from trajudge.judges.replies import ParseFailure, parse_json

Fields = Mapping[str, Any]


def object_with(text: str, *keys: str) -> Fields:
    """Parse the reply's object with all of ``keys``."""
    return parse_json(text, keys).fields


def entries(fields: Fields, name: str, count: int | None = None) -> Sequence[Fields]:
    """Return a list of objects, of exactly ``count`` where given."""
    listed = fields.get(name)
    if not isinstance(listed, list) or not all(isinstance(entry, dict) for entry in listed):
        raise ParseFailure(f"{name} is no list of objects")
    if count is not None and len(listed) != count:
        raise ParseFailure(f"{name} has {len(listed)} entries, not {count}")
    return listed


def indexed(fields: Fields, name: str, indices: Sequence[int]) -> Sequence[Fields]:
    """Return the entries of exactly these criteria, in this order."""
    listed = entries(fields, name, len(indices))
    for entry, index in zip(listed, indices, strict=True):
        number = entry.get("criterion_idx")
        if isinstance(number, bool) or number != index:
            raise ParseFailure(f"{name}: criterion_idx {str(number)[:20]} where {index} belongs")
    return listed


def text_of(fields: Fields, name: str, *, may_be_empty: bool = False) -> str:
    """Return a text."""
    value = fields.get(name)
    if not isinstance(value, str) or not (may_be_empty or value.strip()):
        raise ParseFailure(f"{name} is no text" if may_be_empty else f"{name} is missing or empty")
    return value


def numeric(fields: Fields, name: str, low: float = -math.inf, high: float = math.inf) -> float:
    """Return a number within limits."""
    value = fields.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ParseFailure(f"{name} is no number")
    if not low <= value <= high:
        raise ParseFailure(f"{name} = {value:g} is not from {low:g} to {high:g}")
    return float(value)


def optional_flag(fields: Fields, name: str) -> bool | None:
    """Return a true or false, None for anything else."""
    value = fields.get(name)
    return value if isinstance(value, bool) else None


def required_flag(fields: Fields, name: str) -> bool:
    """Return a true or false."""
    value = optional_flag(fields, name)
    if value is None:
        raise ParseFailure(f"{name} is missing, or neither true nor false")
    return value
