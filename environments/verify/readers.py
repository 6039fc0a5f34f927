"""Values of one kind in one piece of tidy text: normal form, and whether it is clearly of the kind.

What only looks like a number (a date, an order's number, ``of 5``, ``2nd``) is none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from trajudge.environments.model.spec import TODAY
from trajudge.rules.errors import InvalidValue
from trajudge.rules.values import normalise
from trajudge.rules.values.quantities.date import MONTHS
from trajudge.rules.values.quantities.number import SCALES, SMALL, TENS
from trajudge.rules.values.texts.text import normal_text

Piece = str | int | float


class Candidate(NamedTuple):
    """A candidate; ``sure`` is False for what a reader may not take for one."""

    form: str
    sure: bool


_AMOUNT = r"\d(?:[\d.,]*\d)?"
_MARKED = re.compile(
    rf"-?(?:us)?[$€£¥] ?-?{_AMOUNT}|\b(?:usd|eur|gbp) ?-?{_AMOUNT}"
    rf"|(?<![\w.,$€£¥])-?{_AMOUNT} ?(?:[$€£¥]|(?:dollars?|euros?|pounds?|usd|eur|gbp|cents?)\b)",
    re.IGNORECASE,
)
_BARE_MONEY = re.compile(r"(?<![\w.,])-?\d[\d,]*\.\d\d(?![\w%]|[.,]\d)")
_NAME = "|".join(sorted(MONTHS, key=len, reverse=True))
_ISO = re.compile(r"(?<![\w-])\d{4}([-/.])\d{1,2}\1\d{1,2}(?![\w-])")
_NAMED = re.compile(
    rf"\b(?:(?:{_NAME})\.? \d{{1,2}}(?:st|nd|rd|th)?(?:,? \d{{4}})?"
    rf"|\d{{1,2}}(?:st|nd|rd|th)?(?: of | |-)(?:{_NAME})\b\.?(?:,? ?-?\d{{4}})?)(?!\w)",
    re.IGNORECASE,
)
_SLASHED = re.compile(r"(?<![\w/.-])(\d{1,2})([/.-])(\d{1,2})\2(\d{4})(?![\w/-])")
_UNIT = r"(?:weeks?|days?|hours?|hrs?|h|minutes?|mins?|m|seconds?|secs?|s)\b\.?"
_PART = rf"(?:\d[\d,]*(?:\.\d+)?|\ban?) ?-?{_UNIT}"
_DURATION = re.compile(rf"(?<![\w.,]){_PART}(?:(?:,? and |, ?| )?{_PART})*", re.IGNORECASE)
_CLOCK = re.compile(r"(?<![\w:.])\d{1,3}:[0-5]\d(?::[0-5]\d)?(?![\w:])")
_TIME = re.compile(r"\b\d{1,2}:\d{2}(?::\d{2})?\b")
_IDENTIFIER = re.compile(
    r"(?:[^\W\d_]+[-_#]?|#)\d[\w-]*|\b\d+-?[^\W\d_]+-?\d[\w-]*|\b\d+[A-Z](?=[A-Z\d]{4})[A-Z\d]+"
)
_ORDINAL = re.compile(r"\b\d+(?:st|nd|rd|th)\b", re.IGNORECASE)
_SCALE_END = re.compile(r"(?<=\d)(?: ?/ ?| (?:out )?of )\d+(?:\.\d+)?", re.IGNORECASE)
_NUMBER = re.compile(r"(?:(?<![\w.,)])-)?(?<![\w.])(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?!\d)")
_NUMBER_WORD = "|".join(sorted({*SMALL, *TENS, *SCALES, "hundred"}, key=len, reverse=True))
_IN_WORDS = re.compile(rf"\b(?:{_NUMBER_WORD})(?:[ -](?:and )?(?:{_NUMBER_WORD}))*\b", re.I)
_COUNTING = re.compile(r"\s+(?!(?:or|and|to|but|maybe|perhaps|possibly)\b)[^\W\d_]{2,}", re.I)
_TOKEN = re.compile(r"[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*")


def _normal(kind: str, text: str | float) -> str:
    """Return the normal form, or the text itself where it is no value of its kind (``$1,23``)."""
    try:
        return str(normalise(kind, text))
    except InvalidValue:
        return str(text)


def money(piece: Piece) -> Iterator[Candidate]:
    """Amounts with a currency or two decimals; bare numbers that count nothing are doubtful."""
    if not isinstance(piece, str):
        yield Candidate(_normal("currency", piece), True)
        return
    for found in _MARKED.finditer(piece):
        yield Candidate(_normal("currency", found[0].replace("$ ", "$")), True)
    rest = _without(piece, _MARKED, _ISO, _NAMED, _TIME, _IDENTIFIER, _ORDINAL, _SCALE_END)
    for found in _BARE_MONEY.finditer(rest):
        yield Candidate(_normal("currency", found[0]), True)
    rest = _BARE_MONEY.sub(" ", rest)
    for found in _NUMBER.finditer(rest):
        if not _COUNTING.match(rest, found.end()):
            yield Candidate(_normal("currency", found[0]), False)


def number(piece: Piece) -> Iterator[Candidate]:
    """Numbers in digits; those in words are doubtful."""
    if not isinstance(piece, str):
        yield Candidate(_normal("number", piece), True)
        return
    rest = _without(piece, _MARKED, _ISO, _NAMED, _SLASHED, _TIME, _IDENTIFIER, _ORDINAL)
    rest = _SCALE_END.sub(" ", rest)
    for found in _NUMBER.finditer(rest):
        yield Candidate(_normal("number", found[0]), True)
    for found in _IN_WORDS.finditer(rest):
        yield Candidate(_normal("number", found[0]), False)


def date(piece: Piece) -> Iterator[Candidate]:
    """Days with their year; the readings of ``03/04/2026`` and of a day without a year (this year
    or the last) are doubtful."""
    if not isinstance(piece, str):
        return
    for found in _ISO.finditer(piece):
        yield Candidate(_normal("date", found[0]), True)
    for found in _NAMED.finditer(piece):
        form = _normal("date", found[0])
        if not form.startswith("--"):
            yield Candidate(form, True)
            continue
        this = int(TODAY[:4])
        yield from (Candidate(f"{year}{form[1:]}", False) for year in (this, this - 1))
    for found in _SLASHED.finditer(piece):
        first, _, second, year = found.groups()
        orders = {(first, second), (second, first)}
        forms = {f"{year}-{int(m):02}-{int(d):02}" for m, d in orders if int(m) <= 12}
        for form in sorted(forms):
            yield Candidate(form, len(forms) == 1)


def duration(piece: Piece) -> Iterator[Candidate]:
    """Yield times with units; a clock (``1:35``) is doubtful."""
    if not isinstance(piece, str):
        return
    for found in _DURATION.finditer(piece):
        yield Candidate(_normal("duration", found[0]), True)
    for found in _CLOCK.finditer(_DURATION.sub(" ", piece)):
        yield Candidate(_normal("duration", found[0]), False)


BY_KIND: Mapping[str, Callable[[Piece], Iterator[Candidate]]] = {
    "money": money,
    "number": number,
    "date": date,
    "duration": duration,
}


def names(piece: Piece, among: tuple[str, ...]) -> Iterator[Candidate]:
    """Yield the names of ``among`` that the text mentions, the longest at each place; a text that
    mentions none is itself a candidate."""
    text = normal_text(str(piece))
    found = [match[0] for match in _any_of(among).finditer(text)] if among else []
    yield from (Candidate(name, True) for name in found or [text])


@lru_cache(maxsize=512)
def _any_of(among: tuple[str, ...]) -> re.Pattern[str]:
    forms = sorted({normal_text(name) for name in among}, key=lambda form: (-len(form), form))
    return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, forms))})(?!\w)")


def codes(piece: Piece, like: str) -> Iterator[Candidate]:
    """Tokens as long as a code, in capitals and digits; those without a digit may be words. Hyphens
    between groups are left out. The right code counts in small letters too."""
    length = len(_bare(like))
    for found in _TOKEN.finditer(str(piece)):
        token = found[0].replace("-", "")
        if token.upper() == _bare(like):
            yield Candidate(token.upper(), True)
        elif len(token) == length and token == token.upper():
            yield Candidate(token, not token.isalpha() and not token.isdigit())


def _bare(code: str) -> str:
    return code.replace("-", "").upper()


def _without(text: str, *patterns: re.Pattern[str]) -> str:
    """Return the text with everything that the patterns match blanked out."""
    for pattern in patterns:
        text = pattern.sub(" ", text)
    return text
