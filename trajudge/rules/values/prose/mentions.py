"""Mentions of values of one kind in one line of tidy text.

What only looks like a number (a date, an order's number, ``page 3``, ``2nd``) is none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Literal, NamedTuple

from trajudge.rules.errors import InvalidValue
from trajudge.rules.values.compare import normalise
from trajudge.rules.values.quantities.date import MONTHS

ProseKind = Literal["currency", "number", "date", "duration"]


class ProseMention(NamedTuple):
    """A value in a text: where, its normal form, and whether it is clearly of its kind. A bare
    number beside amounts of money, a day without its year and a clock are not."""

    start: int
    end: int
    form: str
    sure: bool


_DIGIT = re.compile(r"\d")
_AMOUNT = r"\d(?:[\d.,]*\d)?"
_SCALE = r"(?: ?(?:billion|million|thousand|trillion|bn|[km])\b)?"
_CURRENCY = r"(?:dollars?|euros?|pounds?|usd|eur|gbp)"
_CENTS = r"(?: (?:cents?|pence)\b|(?! ?(?!per\b|each\b|in all\b)[\w%]|[.,:/]\d))"
_MARKED = re.compile(
    rf"(?<!\w)[$€£]\d[\d,]*,? (?:and )?\d{{1,2}} (?:cents?|pence)\b"
    rf"|-?(?:us)?[$€£¥] ?-?{_AMOUNT}{_SCALE}|\b(?:usd|eur|gbp) ?-?{_AMOUNT}{_SCALE}"
    rf"|(?<![\w.,$€£¥])-?\d[\d,]* ?{_CURRENCY},? (?:and )?\d{{1,2}}{_CENTS}"
    rf"|(?<![\w.,$€£¥])-?{_AMOUNT} ?(?:[$€£¥]|(?:dollars?|euros?|pounds?|usd|eur|gbp|cents?)\b)",
    re.IGNORECASE,
)
_SYMBOLS = re.compile(  # "26.46 pounds" may be a weight
    rf"-?(?:us)?[$€£¥] ?-?{_AMOUNT}|\b(?:usd|eur|gbp) ?-?{_AMOUNT}"
    rf"|(?<![\w.,$€£¥])-?{_AMOUNT} ?(?:[$€£¥]|(?:dollars?|usd|eur|gbp)\b)",
    re.IGNORECASE,
)
_UNITS_AND_CENTS = re.compile(
    r"([$€£]?)(-?\d[\d,]*) ?([a-z]*),? (?:and )?(\d{1,2})(?: cents?| pence)?", re.IGNORECASE
)
_SIGNS = {"d": "$", "u": "$", "e": "€", "p": "£", "g": "£"}  # by the first letter of the name
_BARE_MONEY = re.compile(r"(?<![\w.,])-?\d[\d,]*\.\d\d(?![\w%]|[.,]\d)")
_NAME = "|".join(sorted(MONTHS, key=len, reverse=True))
_ISO = re.compile(r"(?<![\w-])\d{4}([-/.])\d{1,2}\1\d{1,2}(?![\w-])")
_NAMED = re.compile(
    rf"\b(?:(?:{_NAME})\.? (?:the )?\d{{1,2}}(?:st|nd|rd|th)?(?:,? \d{{4}}| '\d\d)?"
    rf"|\d{{1,2}}(?:st|nd|rd|th|\.)?(?: of | |-)(?:{_NAME})\b\.?(?:,? ?-?\d{{4}}| '\d\d)?)(?!\w)",
    re.IGNORECASE,
)
_DAY_STOP = re.compile(r"(?<=\d)\.(?= ?[a-z])|\bthe ", re.IGNORECASE)
_SLASHED = re.compile(
    r"(?<![\w/.-])(\d{1,2})([/.-])(\d{1,2})\2(\d{4}|(?<=[/.])\d\d)(?![\w/-]|\.\d)"
)
_HOURS = r"(?:std|stunden?|uren|uur|heures?|horas?|ore)"  # of the neighbours
_MINUTES = r"(?:minuten|minutos?|minuti)"
_FOREIGN_UNITS = (
    (
        re.compile(r"(?<=\d) ?(?:std|stunden?|uren|uur|heures?|horas?|ore)\b\.?", re.IGNORECASE),
        " h",
    ),
    (re.compile(r"(?<=\d) ?(?:minuten|minutos?|minuti)\b", re.IGNORECASE), " min"),
)
_FOREIGN = "|std|stunden?|uren|uur|heures?|horas?|ore|minuten|minutos?|minuti"
_UNIT = rf"(?:weeks?|days?|hours?|hrs?|h|minutes?|mins?|m|seconds?|secs?|s{_FOREIGN})\b\.?"
_COUNT = r"(?:\d[\d,]*(?:\.\d+)?|\ban?)"
_JOINT = r",? (?:and|und|y|et|en|e) "
_PART = rf"{_COUNT} ?-?{_UNIT}"
_HYPHENATED = r"\d{1,3}-hours?-(?:and-)?\d{1,2}-minutes?\b"  # a 3-hour-40-minute flight
_HOURS_MINUTES = r"\d{1,3} ?h ?[0-5]?\d(?: ?m(?:ins?)?\b)?(?![\w:.]\d|\w)"  # 3h15, 07h48m
_BARE_MINUTES = (  # 2 hours 45
    r"\d{1,3} ?(?:hours?|hrs?|h)(?: and)? [0-5]?\d(?! ?(?!long|in|for|with)[\w%:/]|[.,]\d)"
)
_DURATION = re.compile(
    rf"(?<![\w.,])(?:{_BARE_MINUTES}|{_HYPHENATED}|{_PART}(?:(?:{_JOINT}|, ?| )?{_PART})*"
    rf"|{_HOURS_MINUTES})",
    re.IGNORECASE,
)
_BETWEEN_PARTS = re.compile(rf"(?<=\w)(?:{_JOINT}|-and-|-)(?=\w)", re.IGNORECASE)
_LAST_MINUTES = re.compile(r"(?<=[hrs])((?: and)?) ?(\d+)(?: ?m(?:ins?)?)?\Z", re.IGNORECASE)
_ISO_DURATION = re.compile(r"\bP(?:\d+D)?T(?:\d+H)?(?:\d+M)?(?:\d+S)?\b")
_CLOCK_WITH_UNIT = re.compile(
    r"(?<![\w:.])\d{1,3}:[0-5]\d(?::[0-5]\d(?:\.\d+)?)? ?(?:hours?|hrs?|h)\b", re.IGNORECASE
)
_CLOCK = re.compile(r"(?<![\w:.])\d{1,3}:[0-5]\d(?::[0-5]\d(?:\.\d+)?)?(?![\w:])")
_TIME = re.compile(r"\b\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?: ?[ap]\.?m\b\.?)?")
_ADDRESS = re.compile(r"\bhttps?://\S+|\bwww\.\S+|\b[\w.+-]{1,64}@\S+")
_IDENTIFIER = re.compile(
    r"(?:[^\W\d_]+[-_#]?|#)\d[\w-]*|\b\d+-?[^\W\d_]+-?\d[\w-]*|\b\d+[A-Z](?=[A-Z\d]{4})[A-Z\d]+"
)
_NUMBERED = re.compile(
    r"\b(?:page|line|step|rule|clause|section|version|level|room|suite|ste|zip|zip code|no\.)"
    r" #?\d+(?: of \d+)?\b",
    re.IGNORECASE,
)
_ORDINAL = re.compile(r"\b\d+(?:st|nd|rd|th)\b", re.IGNORECASE)
_SCALE_END = re.compile(r"(?<=\d)(?: ?/ ?| out of )\d+(?:\.\d+)?|(?<=\d) of \d+(?= stars)")
_DECIMAL_COMMA = re.compile(
    r"(?:(?<![\w.,)])-)?(?<![\w.,])(?:\d{1,3}(?:\.\d{3})+|\d+),(?:\d\d?)(?![\d,]|\.\d)"
)
_NUMBER = re.compile(r"(?:(?<![\w.,)])-)?(?<![\w.])(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?!\d)")


def _normal(kind: str, text: str) -> str:
    """Return the normal form, or the text itself where it is no value of its kind (``$1,23``)."""
    try:
        return str(normalise(kind, text))
    except InvalidValue:
        return text


def without(text: str, *patterns: re.Pattern[str]) -> str:
    """Return the text with everything that the patterns match blanked out, places kept."""
    for pattern in patterns:
        text = pattern.sub(lambda match: " " * len(match[0]), text)
    return text


def _currency(text: str) -> Iterator[ProseMention]:
    for found in _MARKED.finditer(text):
        form = _amount(found[0])
        yield ProseMention(*found.span(), form, form != found[0] or not form[-1].isalpha())
    rest = without(text, _MARKED, _ADDRESS, _ISO, _NAMED, _TIME, _IDENTIFIER, _NUMBERED, _ORDINAL)
    rest = without(rest, _SCALE_END)
    for found in _BARE_MONEY.finditer(rest):
        yield ProseMention(*found.span(), _normal("currency", found[0]), True)
    for found in _NUMBER.finditer(without(rest, _BARE_MONEY)):
        yield ProseMention(*found.span(), _normal("currency", found[0]), False)


def _amount(text: str) -> str:
    if found := _UNITS_AND_CENTS.fullmatch(text):
        sign = found[1] or _SIGNS.get(found[3][:1].casefold(), "$")
        return _normal("currency", f"{sign}{found[2]}.{int(found[4]):02}")
    return _normal("currency", text.replace("$ ", "$"))


def _number(text: str) -> Iterator[ProseMention]:
    rest = without(text, _SYMBOLS, _ADDRESS, _ISO, _NAMED, _SLASHED, _TIME)
    rest = without(rest, _IDENTIFIER, _NUMBERED, _ORDINAL, _SCALE_END)
    for found in _DECIMAL_COMMA.finditer(rest):
        digits = found[0].replace(".", "").replace(",", ".")
        yield ProseMention(*found.span(), _normal("number", digits), True)
    for found in _NUMBER.finditer(without(rest, _DECIMAL_COMMA)):
        yield ProseMention(*found.span(), _normal("number", found[0]), True)


def _date(text: str) -> Iterator[ProseMention]:
    for found in _ISO.finditer(text):
        yield ProseMention(*found.span(), _normal("date", found[0]), True)
    for found in _NAMED.finditer(text):
        form = _normal("date", _DAY_STOP.sub("", found[0]).replace(" '", " 20"))
        yield ProseMention(*found.span(), form, not form.startswith("--"))
    for found in _SLASHED.finditer(text):
        yield from _numeric_days(found)


def _numeric_days(found: re.Match[str]) -> Iterator[ProseMention]:
    """Yield the days that a date in numbers may be: with full stops, the day stands first."""
    first, mark, second, year = found.groups()
    year = year if len(year) == 4 else f"20{year}"
    orders = ((second, first), (first, second))  # month and day
    forms = [f"{year}-{int(m):02}-{int(d):02}" for m, d in orders if int(m) <= 12]
    for place, form in enumerate(dict.fromkeys(forms)):
        alone = len(set(forms)) == 1
        yield ProseMention(*found.span(), form, alone or (mark == "." and not place))


def _duration(text: str) -> Iterator[ProseMention]:
    for found in _CLOCK_WITH_UNIT.finditer(text):
        yield ProseMention(*found.span(), _normal("duration", found[0]), True)
    for found in _ISO_DURATION.finditer(text):
        yield ProseMention(*found.span(), _normal("duration", found[0]), True)
    text = without(text, _CLOCK_WITH_UNIT, _ISO_DURATION)
    for found in _DURATION.finditer(text):
        yield ProseMention(*found.span(), _length(found[0]), True)
    for found in _CLOCK.finditer(without(text, _DURATION)):
        yield ProseMention(*found.span(), _normal("duration", found[0]), False)


def _length(text: str) -> str:
    for pattern, unit in _FOREIGN_UNITS:
        text = pattern.sub(unit, text)
    text = _BETWEEN_PARTS.sub(" ", text)
    if re.match(r"\d+,\d\d?(?!\d)", text):  # 3,25 hours
        text = text.replace(",", ".", 1)
    return _normal("duration", _LAST_MINUTES.sub(r"\1 \2 min", text))


_FINDERS: Mapping[ProseKind, Callable[[str], Iterator[ProseMention]]] = {
    "currency": _currency,
    "number": _number,
    "date": _date,
    "duration": _duration,
}


def mentions(kind: ProseKind, text: str) -> list[ProseMention]:
    """Return the mentions in the order of the text. ``text`` is one line as
    ``texts.text.strip_invisible`` gives it, its numbers in digits."""
    if kind != "duration" and not _DIGIT.search(text):
        return []
    return sorted(_FINDERS[kind](text))
