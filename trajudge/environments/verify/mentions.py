"""Amounts, dates, durations and numbers in running text.

``mentions`` finds every one of a kind in one line of tidy text, with its place and its normal form;
what a mention means (the answer, a part of it, something denied) is for the caller to say. What
only looks like a number (a date, an order's number, ``page 3``, ``2nd``) is none.
``digits_for_words`` writes numbers in words as digits, so that one set of patterns reads both.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable, Iterator, Mapping
from typing import Literal, NamedTuple

from trajudge.rules.limits import InvalidValue
from trajudge.rules.values.compare import normalise
from trajudge.rules.values.quantities import MONTHS, SCALES, SMALL, TENS

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
    for match in _MARKED.finditer(text):
        form = _amount(match[0])
        yield ProseMention(*match.span(), form, form != match[0] or not form[-1].isalpha())
    rest = without(text, _MARKED, _ADDRESS, _ISO, _NAMED, _TIME, _IDENTIFIER, _NUMBERED, _ORDINAL)
    rest = without(rest, _SCALE_END)
    for match in _BARE_MONEY.finditer(rest):
        yield ProseMention(*match.span(), _normal("currency", match[0]), True)
    for match in _NUMBER.finditer(without(rest, _BARE_MONEY)):
        yield ProseMention(*match.span(), _normal("currency", match[0]), False)


def _amount(text: str) -> str:
    if match := _UNITS_AND_CENTS.fullmatch(text):
        sign = match[1] or _SIGNS.get(match[3][:1].casefold(), "$")
        return _normal("currency", f"{sign}{match[2]}.{int(match[4]):02}")
    return _normal("currency", text.replace("$ ", "$"))


def _number(text: str) -> Iterator[ProseMention]:
    rest = without(text, _SYMBOLS, _ADDRESS, _ISO, _NAMED, _SLASHED, _TIME)
    rest = without(rest, _IDENTIFIER, _NUMBERED, _ORDINAL, _SCALE_END)
    for match in _DECIMAL_COMMA.finditer(rest):
        digits = match[0].replace(".", "").replace(",", ".")
        yield ProseMention(*match.span(), _normal("number", digits), True)
    for match in _NUMBER.finditer(without(rest, _DECIMAL_COMMA)):
        yield ProseMention(*match.span(), _normal("number", match[0]), True)


def _date(text: str) -> Iterator[ProseMention]:
    for match in _ISO.finditer(text):
        yield ProseMention(*match.span(), _normal("date", match[0]), True)
    for match in _NAMED.finditer(text):
        form = _normal("date", _DAY_STOP.sub("", match[0]).replace(" '", " 20"))
        yield ProseMention(*match.span(), form, not form.startswith("--"))
    for match in _SLASHED.finditer(text):
        yield from _numeric_days(match)


def _numeric_days(match: re.Match[str]) -> Iterator[ProseMention]:
    """Yield the days that a date in numbers may be: with full stops, the day stands first."""
    first, mark, second, year = match.groups()
    year = year if len(year) == 4 else f"20{year}"
    orders = ((second, first), (first, second))  # month and day
    forms = [f"{year}-{int(m):02}-{int(d):02}" for m, d in orders if int(m) <= 12]
    for place, form in enumerate(dict.fromkeys(forms)):
        alone = len(set(forms)) == 1
        yield ProseMention(*match.span(), form, alone or (mark == "." and not place))


def _duration(text: str) -> Iterator[ProseMention]:
    for match in _CLOCK_WITH_UNIT.finditer(text):
        yield ProseMention(*match.span(), _normal("duration", match[0]), True)
    for match in _ISO_DURATION.finditer(text):
        yield ProseMention(*match.span(), _normal("duration", match[0]), True)
    text = without(text, _CLOCK_WITH_UNIT, _ISO_DURATION)
    for match in _DURATION.finditer(text):
        yield ProseMention(*match.span(), _length(match[0]), True)
    for match in _CLOCK.finditer(without(text, _DURATION)):
        yield ProseMention(*match.span(), _normal("duration", match[0]), False)


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
    ``strip_invisible`` gives it, its numbers in digits."""
    if kind != "duration" and not _DIGIT.search(text):
        return []
    return sorted(_FINDERS[kind](text))


_LONGEST = 12  # words of one number; more are none
_WORD = "|".join(sorted({*SMALL, *TENS, *SCALES, "hundred"}, key=len, reverse=True))
_RUN = re.compile(
    rf"\b(?:an? (?=hundred|thousand|million))?(?:{_WORD})(?:(?:[ -]| and |-and-)(?:{_WORD}))*\b",
    re.IGNORECASE,
)
_COUNTED = r"(?:dollars?|euros?|pounds?|cents?|weeks?|days?|hours?|minutes?|seconds?)"
_LONE_ONE = re.compile(
    rf"\bone(?= {_COUNTED}\b| point \w|(?: |-)and(?: |-)a(?: |-)(?:half|quarter)\b)|\A\W*one\W*\Z",
    re.IGNORECASE,
)
_PHRASES = (
    (re.compile(r"\bhalf an hour\b", re.IGNORECASE), "30 minutes"),
    (re.compile(r"\bthree[ -]quarters of an hour\b", re.IGNORECASE), "45 minutes"),
    (re.compile(r"\b(?:a )?quarter of an hour\b", re.IGNORECASE), "15 minutes"),
    (re.compile(r"\ban hour and a half\b", re.IGNORECASE), "90 minutes"),
    (re.compile(r"\ban hour and a quarter\b", re.IGNORECASE), "75 minutes"),
    (re.compile(r"\b(?:a|one) day and a half\b", re.IGNORECASE), "36 hours"),
    (re.compile(r"\bhalf a dozen\b", re.IGNORECASE), "6"),
    (re.compile(r"\b(?:a|one) dozen\b", re.IGNORECASE), "12"),
    (re.compile(r"\b(?:a|one) fortnight\b", re.IGNORECASE), "14 days"),
)
_FRACTIONS = (
    (re.compile(r"(?<=\d)(?: |-)and(?: |-)(?:a|one)(?: |-)half\b", re.IGNORECASE), ".5"),
    (re.compile(r"(?<=\d)(?: |-)and(?: |-)(?:a|one)(?: |-)quarter\b", re.IGNORECASE), ".25"),
    (re.compile(r"(?<=\d)(?: |-)and(?: |-)(?:three|3)(?: |-)quarters\b", re.IGNORECASE), ".75"),
    (re.compile(r"(?<=\d) 1[/\u2044]2(?![\d/])"), ".5"),
    (re.compile(r"(?<=\d) 1[/\u2044]4(?![\d/])"), ".25"),
    (re.compile(r"(?<=\d) 3[/\u2044]4(?![\d/])"), ".75"),
)
_HUNDREDS = re.compile(  # thirteen hundred and eighteen
    r"((?:eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen"
    r"|twenty[ -]\w+)) hundred(?:(?: and)? ([\w -]+))?",
    re.IGNORECASE,
)
_MINUS = re.compile(r"(?<![\d)] )\b(?:minus|negative) (?=\d)", re.IGNORECASE)
_VULGAR = {"½": " 1/2", "¼": " 1/4", "¾": " 3/4"}  # said apart, before "2½" becomes "21/2"
_FIGURE = rf"(?:\d\d?|{'|'.join(SMALL)})\b"
_POINT = re.compile(rf"(\d) point ({_FIGURE}(?: {_FIGURE})*)(?!\d|\.\d)", re.IGNORECASE)
_NTHS = """
    first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth
    fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth
"""
_ORDINALS = {name: day for day, name in enumerate(_NTHS.split(), start=1)} | {"thirtieth": 30}
_NTH = "|".join(_ORDINALS)
_OF_A_DAY = re.compile(r"\A day")
_ANY_MONTH = "|".join(sorted(MONTHS, key=len, reverse=True))
_DAY_BEFORE_MONTH = re.compile(
    rf"\b(?P<tens>twenty[ -]|thirty[ -])?(?P<nth>{_NTH})"
    rf"(?P<rest>(?: day)?(?: of)? (?:{_ANY_MONTH})\b)",
    re.IGNORECASE,
)
_DAY_AFTER_MONTH = re.compile(
    rf"\b(?P<month>{_ANY_MONTH})(?P<space> (?:the )?)"
    rf"(?P<tens>twenty[ -]|thirty[ -])?(?P<nth>{_NTH})"
    r"(?=[,.;)]|\Z| \d{4})",
    re.IGNORECASE,
)

_END_OF_MONTH = re.compile(rf"\b(first|last) day of ({_ANY_MONTH})\.?,? (\d{{4}})\b", re.IGNORECASE)


def with_fractions(text: str) -> str:
    """Return the text with fractions in one sign apart from the number: ``2½`` as ``2 1/2``."""
    for sign, digits in _VULGAR.items():
        text = text.replace(sign, digits)
    return text


def digits_for_words(text: str) -> str:
    """Return the text with its numbers in words as digits: ``two hundred and five`` as ``205``,
    ``thirty-first of August`` as ``31th of August``, ``five point two`` as ``5.2``.

    A lone ``one`` stays, where it may be a pronoun (``one of them``).
    """
    if any(letter.isalpha() for letter in text):
        for pattern, digits in _PHRASES:
            text = pattern.sub(digits, text)
        text = _END_OF_MONTH.sub(_end_of_month, text)
        text = _DAY_AFTER_MONTH.sub(_day, _DAY_BEFORE_MONTH.sub(_day, text))
        text = _LONE_ONE.sub(lambda match: match[0].replace("one", "1").replace("One", "1"), text)
        text = _RUN.sub(lambda match: _digits_of(match[0]), text)
        text = _POINT.sub(_decimals, text)
    text = _MINUS.sub("-", text)
    for pattern, digits in _FRACTIONS:
        text = pattern.sub(digits, text)
    return text


def _decimals(match: re.Match[str]) -> str:
    figures = (str(SMALL.get(word.casefold(), word)) for word in match[2].split())
    return f"{match[1]}.{''.join(figures)}"


def _day(match: re.Match[str]) -> str:
    """Return the day of a month in digits: ``31th of August``."""
    parts = {name: text or "" for name, text in match.groupdict().items()}
    day = {"twe": 20, "thi": 30}.get(parts["tens"][:3].casefold(), 0)
    day += _ORDINALS[parts["nth"].casefold()]
    before = parts.get("month", "") + parts.get("space", "")
    return f"{before}{day}th{_OF_A_DAY.sub('', parts.get('rest', ''))}"


def _digits_of(words: str) -> str:
    if words.casefold() == "one" or words.count(" ") >= _LONGEST:
        return words
    many = _HUNDREDS.fullmatch(words)
    parts = [many[1], many[2] or "zero"] if many else [words]
    try:
        values = [normalise("number", part) for part in parts]
    except InvalidValue:
        return words
    return str(int(str(values[0])) * 100 + int(str(values[1]))) if many else str(values[0])


def _end_of_month(match: re.Match[str]) -> str:
    month, year = MONTHS[match[2].casefold()], int(match[3])
    day = monthrange(year, month)[1] if match[1].casefold() == "last" else 1
    return f"{day} {match[2]} {year}"
