"""null: no value at all. Normal form: None.

Read are None, blank text, the empty list and object, and the words with which agents say that
there is none. Anything else is a value, zero and false included.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trajudge.rules.errors import InvalidValue
from trajudge.rules.limits import SCALAR_CHARS
from trajudge.rules.values.model import Kind
from trajudge.rules.values.texts.text import normal_text

if TYPE_CHECKING:
    from pydantic import JsonValue

WORDS = frozenset({"", "n/a", "na", "nan", "null", "none"})


def parse(raw: JsonValue) -> None:
    """None, or InvalidValue for a value."""
    if raw is None or raw in ([], {}):
        return
    if isinstance(raw, str) and len(raw) <= SCALAR_CHARS and normal_text(raw) in WORDS:
        return
    raise InvalidValue("a value where none is expected")


def show(value: None) -> None:
    """Nothing."""
    return value


KIND = Kind(parse=parse, show=show, is_list=lambda _: True)
