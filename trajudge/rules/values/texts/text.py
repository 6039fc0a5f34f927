"""string: free text as a reader sees it.

Normal form: NFKC, without trademark signs, control and invisible characters and Latin accents;
typographic quotes, primes and dashes as their ASCII relatives; a hyphen that joins a letter to a
word is a space; white space collapsed; case folded; a pair of quotes around the whole and
punctuation at its end dropped. A leading or trailing sign (``-5``, ``A-``), a decimal point and
an inch mark stay: they carry meaning. Numbers given for a text are their decimal digits.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

from trajudge.rules.errors import InvalidValue
from trajudge.rules.limits import TEXT_CHARS, bounded, nfkc, unicode_text
from trajudge.rules.values.decimals import from_json, show
from trajudge.rules.values.model import Kind

if TYPE_CHECKING:
    from pydantic import JsonValue

_TYPOGRAPHY = {
    **dict.fromkeys(map(ord, "™®℠©"), None),
    **dict.fromkeys(map(ord, "‘’‚‛′ʹʼ`´"), "'"),
    **dict.fromkeys(map(ord, "“”„‟″«»"), '"'),
    **dict.fromkeys(map(ord, "‐‑‒–—―−⁃﹘﹣－"), "-"),
    **dict.fromkeys(map(ord, "\t\n\v\f\r\x1c\x1d\x1e\x1f\x85\u2028\u2029"), " "),
    **dict.fromkeys((*range(9), *range(14, 28), *range(0x7F, 0x85), *range(0x86, 0xA0)), None),
    **dict.fromkeys((0xAD, 0x61C, *range(0x200B, 0x2010), *range(0x202A, 0x202F)), None),
    **dict.fromkeys((*range(0x2060, 0x2070), *range(0xFE00, 0xFE10), 0xFEFF), None),
}
_LETTERS = str.maketrans(
    {"ø": "o", "Ø": "O", "ł": "l", "Ł": "L", "đ": "d", "Đ": "D", "æ": "ae", "Æ": "AE"}
    | {"œ": "oe", "Œ": "OE", "ı": "i", "ð": "d", "Ð": "D", "þ": "th", "Þ": "Th"}
)
_ACCENT = re.compile(r"(?<=[A-Za-z])[\u0300-\u036f]+")
_JOINING_HYPHEN = re.compile(r"(?<=[^\W\d_])-+(?=\w)|(?<=\w)-+(?=[^\W\d_])")
_ENDING = frozenset(" .,;:!?")
_QUOTES = frozenset("'\"")


def strip_invisible(text: str) -> str:
    """Return the text with its case and accents, without what a reader does not see."""
    if text.isascii() and text.isprintable():
        return " ".join(text.replace("`", "'").split())
    text = unicode_text(text).translate(_TYPOGRAPHY)
    text = nfkc(text).translate(_TYPOGRAPHY)
    return " ".join(text.split())


def unaccented(text: str) -> str:
    """Latin letters without their accents; other scripts as they are."""
    if text.isascii():
        return text
    text = _ACCENT.sub("", unicodedata.normalize("NFD", text.translate(_LETTERS)))
    return unicodedata.normalize("NFC", text)


def casefold_unaccented(text: str) -> str:
    """Tidy text without accents and case. Folding twice changes nothing."""
    text = unaccented(strip_invisible(text)).casefold()
    while not text.isascii() and (again := unaccented(strip_invisible(text)).casefold()) != text:
        text = again
    return text


def _bare(text: str) -> str:
    """Without closing punctuation and without quotes around the whole, unless nothing remains."""
    start, end = 0, len(text)
    while True:
        inner_start, inner_end = start, end
        while inner_end > inner_start and text[inner_end - 1] in _ENDING:
            inner_end -= 1
        if inner_end - inner_start > 2 and text[inner_start] == text[inner_end - 1] in _QUOTES:
            inner_start, inner_end = inner_start + 1, inner_end - 1
        while inner_start < inner_end and text[inner_start] == " ":
            inner_start += 1
        if inner_start == inner_end or (inner_start, inner_end) == (start, end):
            return text[start:end]
        start, end = inner_start, inner_end


def normal_text(text: str) -> str:
    """Return the normal form of free text."""
    text = casefold_unaccented(text)
    if "-" in text:
        text = _JOINING_HYPHEN.sub(" ", text)
    return _bare(text)


def raw_text(raw: JsonValue, limit: int = TEXT_CHARS) -> str:
    """Return the text of a text or a number. Raises InvalidValue for lists and objects."""
    if isinstance(raw, str):
        return bounded(raw, limit)
    if isinstance(raw, bool):
        return "true" if raw else "false"
    if isinstance(raw, int | float):
        return show(from_json(raw))
    what = "nothing" if raw is None else "a list" if isinstance(raw, list) else "an object"
    raise InvalidValue(f"{what} where one value is expected")


def parse(raw: JsonValue) -> str:
    """Return the normal form itself."""
    return normal_text(raw_text(raw))


def texts(raw: JsonValue) -> tuple[str, str]:
    """Return what a specification's pattern is matched against: the tidy text, and the normal
    form."""
    text = raw_text(raw)
    return strip_invisible(text), normal_text(text)


KIND = Kind(parse=parse, show=str, texts=texts)
