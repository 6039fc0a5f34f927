"""boolean: a truth value. Normal form: ``true`` or ``false``.

Read are JSON truth values and the words true, t, yes, y, on and false, f, no, n, off, whatever
their case and closing punctuation. Numbers are not truth values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trajudge.rules.errors import InvalidValue
from trajudge.rules.limits import SCALAR_CHARS
from trajudge.rules.values.model import Kind
from trajudge.rules.values.texts.text import normal_text, raw_text

if TYPE_CHECKING:
    from pydantic import JsonValue

_WORDS = dict.fromkeys(("true", "t", "yes", "y", "on"), True) | dict.fromkeys(
    ("false", "f", "no", "n", "off"), False
)


def parse(raw: JsonValue) -> bool:
    """Return the truth value that a JSON truth value or a word states."""
    if isinstance(raw, bool):
        return raw
    value = _WORDS.get(normal_text(raw_text(raw, SCALAR_CHARS)))
    if value is None:
        raise InvalidValue("neither yes nor no")
    return value


def show(value: bool) -> str:
    """Show ``true`` or ``false``."""
    return "true" if value else "false"


KIND = Kind(parse=parse, show=show)
