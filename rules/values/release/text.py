"""The release's common treatment of text, and its string and location-name kinds.

A text of the form ``^...$`` is left alone and honoured as a pattern whoever wrote it. Letters that
have no Latin relative are kept here, where the release spells them out in Latin letters.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

from trajudge.rules.errors import InvalidValue
from trajudge.rules.limits import (
    SCALAR_CHARS,
    TEXT_CHARS,
    bounded,
    fullmatch,
    is_pattern,
    nfkc,
    unicode_text,
)

if TYPE_CHECKING:
    from pydantic import JsonValue

_SIGNS = str.maketrans(dict.fromkeys("™®℠©"))
_HYPHEN = r"[-‐‑‒–—―−﹘﹣－]"
_AT_LETTER = re.compile(rf"(?<=[A-Za-z]){_HYPHEN}|{_HYPHEN}(?=[A-Za-z])")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f\u200b-\u200f\u2060\ufeff]")
_ASCII = str.maketrans(
    dict.fromkeys("‘’‚‛′ʹʼ´", "'")
    | dict.fromkeys("“”„‟″«»", '"')
    | dict.fromkeys("‐‑‒–−﹣－", "-")
    | dict.fromkeys("—―﹘⁃", "--")
    | {"ø": "o", "Ø": "O", "ł": "l", "Ł": "L", "đ": "d", "Đ": "D", "æ": "ae", "Æ": "AE"}
    | {"œ": "oe", "Œ": "OE", "ı": "i", "ð": "d", "Ð": "D", "þ": "th", "Þ": "Th", "ß": "ss"}
    | {"€": "EUR", "£": "PS", "¥": "Y=", "×": "x", "·": "*", "°": "deg", "⁄": "/", "…": "..."}
)
_EDGES = "'\"`.,;:!?"


def _latin(text: str) -> str:
    if text.isascii():
        return text
    text = unicodedata.normalize("NFD", text.translate(_ASCII))
    digits = (str(unicodedata.decimal(char, char)) for char in text)
    return "".join(char for char in digits if not unicodedata.combining(char))


def treated(text: str) -> str:
    """Return text after the release's common treatment; a pattern as it is."""
    if is_pattern(text):
        return text
    text = nfkc(unicode_text(text).translate(_SIGNS))
    text = _CONTROL.sub("", _AT_LETTER.sub(" ", text))
    return " ".join(_latin(text).split()).casefold()


def as_text(raw: JsonValue, limit: int = SCALAR_CHARS) -> JsonValue:
    """Return a text after the common treatment; anything else as it is."""
    return treated(bounded(raw, limit)) if isinstance(raw, str) else raw


def scalar_text(raw: JsonValue) -> str:
    """Return the text of any value as Python would print it, bounded."""
    try:
        return bounded(str(raw), TEXT_CHARS)
    except (ValueError, RecursionError) as error:
        raise InvalidValue("not a text") from error


def parse(raw: JsonValue) -> str:
    """Read a string: whatever is falsy is the empty text."""
    return treated(bounded(scalar_text(raw), TEXT_CHARS)) if raw else ""


def parse_name(raw: JsonValue) -> str:
    """location-name."""
    if raw is None:
        raise InvalidValue("nothing")
    return parse(raw).lower()


def same(one: str, other: str) -> bool:
    """Equal, or either is a pattern that matches the other, or equal without edge punctuation."""
    if one == other or one.strip(_EDGES) == other.strip(_EDGES):
        return True
    return (is_pattern(one) and fullmatch(one, other)) or (
        is_pattern(other) and fullmatch(other, one)
    )


def _common_length(one: str, other: str) -> int:
    """Length of the longest common subsequence, by bit-parallel dynamic programming."""
    positions: dict[str, int] = {}
    for index, char in enumerate(one):
        positions[char] = positions.get(char, 0) | 1 << index
    full = (1 << len(one)) - 1
    row = full
    for char in other:
        matched = row & positions.get(char, 0)
        row = (row + matched) | (row - matched)
        row &= full
    return len(one) - row.bit_count()


def likeness(one: str, other: str) -> int:
    """Per cent of two names' letters in common, in order, once their words are sorted."""
    first, second = (
        " ".join(sorted(re.sub(r"[^\w]", " ", name).replace("_", " ").split()))
        for name in (one[:SCALAR_CHARS], other[:SCALAR_CHARS])
    )
    if not first or not second:
        return 100 if first == second else 0
    return round(200 * _common_length(first, second) / (len(first) + len(second)))


def same_name(one: str, other: str) -> bool:
    """Return whether names are 80 % alike. A name is never a pattern; the empty one equals itself
    alone."""
    if not one or not other:
        return one == other
    return likeness(one, other) >= 80
