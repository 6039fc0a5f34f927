"""Numbers in words within a text, written as digits."""

from __future__ import annotations

import re
from calendar import monthrange

from trajudge.rules.errors import InvalidValue
from trajudge.rules.values.compare import normalise
from trajudge.rules.values.quantities.date import MONTHS
from trajudge.rules.values.quantities.number import SCALES, SMALL, TENS

_LONGEST = 12  # words of one number; more are none
_WORD = "|".join(sorted({*SMALL, *TENS, *SCALES, "hundred"}, key=len, reverse=True))
_RUN = re.compile(
    rf"\b(?:an? (?=hundred|thousand|million))?(?:{_WORD})(?:(?:[ -]| and |-and-)(?:{_WORD}))*\b",
    re.IGNORECASE,
)
_COUNTED = r"(?:dollars?|euros?|pounds?|cents?|weeks?|days?|hours?|minutes?|seconds?)"
_ONE = re.compile(
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
_MONTH = "|".join(sorted(MONTHS, key=len, reverse=True))
_DAY_BEFORE_MONTH = re.compile(
    rf"\b(?P<tens>twenty[ -]|thirty[ -])?(?P<nth>{_NTH})(?P<rest>(?: day)?(?: of)? (?:{_MONTH})\b)",
    re.IGNORECASE,
)
_DAY_AFTER_MONTH = re.compile(
    rf"\b(?P<month>{_MONTH})(?P<space> (?:the )?)(?P<tens>twenty[ -]|thirty[ -])?(?P<nth>{_NTH})"
    r"(?=[,.;)]|\Z| \d{4})",
    re.IGNORECASE,
)

_END_OF_MONTH = re.compile(rf"\b(first|last) day of ({_MONTH})\.?,? (\d{{4}})\b", re.IGNORECASE)


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
        text = _ONE.sub(lambda match: match[0].replace("one", "1").replace("One", "1"), text)
        text = _RUN.sub(lambda match: _digits(match[0]), text)
        text = _POINT.sub(_decimals, text)
    text = _MINUS.sub("-", text)
    for pattern, digits in _FRACTIONS:
        text = pattern.sub(digits, text)
    return text


def _decimals(found: re.Match[str]) -> str:
    figures = (str(SMALL.get(word.casefold(), word)) for word in found[2].split())
    return f"{found[1]}.{''.join(figures)}"


def _day(found: re.Match[str]) -> str:
    """Return the day of a month in digits: ``31th of August``."""
    parts = {name: text or "" for name, text in found.groupdict().items()}
    day = {"twe": 20, "thi": 30}.get(parts["tens"][:3].casefold(), 0)
    day += _ORDINALS[parts["nth"].casefold()]
    before = parts.get("month", "") + parts.get("space", "")
    return f"{before}{day}th{_OF_A_DAY.sub('', parts.get('rest', ''))}"


def _digits(words: str) -> str:
    if words.casefold() == "one" or words.count(" ") >= _LONGEST:
        return words
    many = _HUNDREDS.fullmatch(words)
    parts = [many[1], many[2] or "zero"] if many else [words]
    try:
        values = [normalise("number", part) for part in parts]
    except InvalidValue:
        return words
    return str(int(str(values[0])) * 100 + int(str(values[1]))) if many else str(values[0])


def _end_of_month(found: re.Match[str]) -> str:
    month, year = MONTHS[found[2].casefold()], int(found[3])
    day = monthrange(year, month)[1] if found[1].casefold() == "last" else 1
    return f"{day} {found[2]} {year}"
