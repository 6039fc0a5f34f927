"""location-name: the name of a place.

Normal form: its words, as in ``text``, without articles, prepositions, ``and`` and punctuation,
common abbreviations written out, sorted: word order does not matter, every remaining word and
number does. ``Gate 1`` is not ``Gate 2``, ``The Oaklander Hotel`` is ``Oaklander Hotel, The``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from trajudge.rules.errors import InvalidValue
from trajudge.rules.limits import SCALAR_CHARS
from trajudge.rules.values.model import Kind
from trajudge.rules.values.texts.text import normal_text, raw_text, texts

if TYPE_CHECKING:
    from pydantic import JsonValue

_SMALL_WORDS = frozenset(["the", "a", "an", "of", "at", "by", "in", "on", "and"])
_WRITTEN_OUT = {
    "st": "street",
    "ave": "avenue",
    "av": "avenue",
    "rd": "road",
    "blvd": "boulevard",
    "dr": "drive",
    "univ": "university",
    "intl": "international",
    "ctr": "center",
    "centre": "center",
    "theatre": "theater",
    "dept": "department",
    "mt": "mount",
    "ft": "fort",
}
_WORD = re.compile(r"\d+(?:\.\d+)+|[^\W_]+")


def parse(raw: JsonValue) -> tuple[str, ...]:
    """Return the words that matter, sorted."""
    text = normal_text(raw_text(raw, SCALAR_CHARS)).replace("'", "")
    words = [_WRITTEN_OUT.get(word, word) for word in _WORD.findall(text)]
    kept = [word for word in words if word not in _SMALL_WORDS] or words
    if not kept:
        raise InvalidValue("not a name")
    return tuple(sorted(kept))


def show(words: tuple[str, ...]) -> str:
    """Return the sorted words."""
    return " ".join(words)


KIND = Kind(parse=parse, show=show, texts=texts)
