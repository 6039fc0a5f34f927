"""string_list: several texts in any order.

Normal form: the list of the texts' normal forms (see ``text``), sorted, duplicates kept. Read are a
JSON list, whose items are one text each, and one text with commas between the items. Blank items
are dropped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trajudge.rules.errors import TooLarge
from trajudge.rules.limits import TEXT_CHARS
from trajudge.rules.values.model import Kind
from trajudge.rules.values.texts.text import normal_text, raw_text

if TYPE_CHECKING:
    from pydantic import JsonValue

MAX_ITEMS = 10_000


def parse(raw: JsonValue) -> tuple[str, ...]:
    """Return the items' normal forms, sorted."""
    parts = raw_text(raw).split(",") if not isinstance(raw, list) else raw
    if len(parts) > MAX_ITEMS:
        raise TooLarge(f"a list of more than {MAX_ITEMS:,} items")
    items = [raw_text(part, TEXT_CHARS // 10) for part in parts]
    return tuple(sorted(filter(None, map(normal_text, items))))


def show(items: tuple[str, ...]) -> JsonValue:
    """Return the sorted list."""
    return list(items)


KIND = Kind(parse=parse, show=show, is_list=lambda _: True, nothing=frozenset())
