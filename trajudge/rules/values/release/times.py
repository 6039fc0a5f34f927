"""The release's date, month and duration."""

from __future__ import annotations

import calendar
import datetime
import importlib
import math
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from trajudge.rules.errors import InvalidValue
from trajudge.rules.values.release.text import as_text, scalar_text

if TYPE_CHECKING:
    from pydantic import JsonValue


def _read(text: str, default: datetime.datetime | None) -> datetime.datetime:
    parse: Callable[..., datetime.datetime] = importlib.import_module("dateutil.parser").parse
    try:
        return parse(text, dayfirst=False, default=default, ignoretz=True)
    except (ValueError, ArithmeticError, TypeError, IndexError, AttributeError) as error:
        raise InvalidValue("not a date") from error


def date(raw: JsonValue) -> str:
    """Return the ISO date; parts that are missing are filled in from the day of the evaluation."""
    text = as_text(raw)
    if not isinstance(text, str) or not text:
        raise InvalidValue("not a date")
    return _read(re.sub(r",(?! )", ", ", text), None).date().isoformat()


def month(raw: JsonValue) -> str:
    """Return the English name of the month; a year or day beside it is ignored.

    Digits without a point are the month's number; with one they are a day of January.
    """
    if isinstance(raw, int | float):
        return _name(raw)
    text = as_text(raw)
    if not isinstance(text, str) or not text.strip():
        raise InvalidValue("not a month")
    try:
        count = int(text)
    except ValueError:
        return _name(_read(text.strip(), datetime.datetime(2000, 1, 1)).month)
    return _name(count)


def _name(count: float) -> str:
    if count not in range(1, 13):
        raise InvalidValue("not a month")
    return calendar.month_name[int(count)]


_UNITS = (
    ("years", r"ys?|yrs?.?|years?", 365 * 86400, True),
    ("months", r"mos?.?|mths?.?|months?", 30 * 86400, True),
    ("weeks", r"w|wks?|weeks?", 7 * 86400, True),
    ("days", r"d|dys?|days?", 86400, False),
    ("hours", r"h|hrs?|hours?", 3600, False),
    ("minutes", r"m|mins?|minutes?", 60, False),
    ("seconds", r"s|secs?|seconds?", 1, True),
    ("milliseconds", r"ms|msecs?|millis|milliseconds?", 1e-3, False),
)
"""Name, spellings, seconds; whether what is no number counts as none instead of an error."""

_SEPARATED = 6  # of the units, the first six may have a comma or a slash behind them


def _pattern() -> Iterator[str]:
    for index, (name, spellings, _, _) in enumerate(_UNITS):
        separator = r"\s*(?:[,/]\s*)?" if index < _SEPARATED else ""
        yield rf"(?:(?P<{name}>[\d.]+)\s*(?:{spellings}){separator})?"


_WRITTEN = re.compile(r"\s*".join(_pattern()) + r"\s*", re.IGNORECASE)
_CLOCKS = (
    r"(?P<minutes>\d{1,2}):(?P<seconds>\d{2}(?:\.\d+)?)",
    r"(?:(?P<weeks>[\d.]+)\s*(?:w|wks?|weeks?)\s*(?:[,/]\s*)?)?\s*"
    r"(?:(?P<days>[\d.]+)\s*(?:d|dys?|days?)\s*(?:[,/]\s*)?)?\s*"
    r"(?P<hours>\d+):(?P<minutes>\d{2}):(?P<seconds>\d{2}(?:\.\d+)?)",
    r"(?P<days>\d+):(?P<hours>\d{2}):(?P<minutes>\d{2}):(?P<seconds>\d{2}(?:\.\d+)?)",
    r":(?P<seconds>\d{2}(?:\.\d+)?)",
)
_CLOCK = tuple(re.compile(rf"\s*{clock}\s*", re.IGNORECASE) for clock in _CLOCKS)
_HOURS = re.compile(r"(\d+):(\d+)\s*hours?")


def duration(raw: JsonValue) -> float:
    """Seconds. A clock of two numbers is minutes and seconds."""
    if not raw:
        raise InvalidValue("not a duration")
    text = scalar_text(as_text(raw))
    if isinstance(raw, str):
        text = _HOURS.sub(r"\1h\2m", text)
    if _plain(text) is not None:
        raise InvalidValue("a number without a unit of time")
    text = text.lstrip()
    negative = text.startswith("-")
    seconds = _seconds(text[1:].lstrip() if text[:1] in ("+", "-", "|") else text)
    if not math.isfinite(seconds) or abs(seconds) > 1e14:
        raise InvalidValue("not a duration")
    return -seconds if negative else seconds


def _plain(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _seconds(text: str) -> float:
    for form in (_WRITTEN, *_CLOCK):
        found = form.fullmatch(text)
        if found and text.strip():
            parts = found.groupdict()
            return sum(
                _amount(parts[name], lenient) * size
                for name, _, size, lenient in _UNITS
                if parts.get(name)
            )
    number = _plain(text)
    if number is None:
        raise InvalidValue("not a duration")
    return number


def _amount(digits: str, lenient: bool) -> float:
    number = _plain(digits)
    if number is None and not lenient:
        raise InvalidValue("not a duration")
    return number or 0.0


def same_duration(one: float, other: float) -> bool:
    """Within three minutes, or a tenth of the longer."""
    return abs(one - other) <= max(180.0, 0.10 * max(one, other))
