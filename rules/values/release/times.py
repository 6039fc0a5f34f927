"""The release's date, month and duration."""

from __future__ import annotations

import calendar
import datetime
import importlib
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from trajudge.rules.errors import InvalidValue
from trajudge.rules.values.release.text import as_text

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
    return _read(text.replace(",", ", "), None).date().isoformat()


def month(raw: JsonValue) -> str:
    """Return the English name of the month; a year or day beside it is ignored."""
    if isinstance(raw, bool | int | float):
        number = float(raw) if abs(raw) < 100 else 0.0
    else:
        text = as_text(raw)
        if not isinstance(text, str) or not text:
            raise InvalidValue("not a month")
        try:
            number = float(text)
        except ValueError:
            number = _read(text.replace(",", ", "), datetime.datetime(2000, 1, 1)).month
    if number not in range(1, 13):
        raise InvalidValue("not a month")
    return calendar.month_name[int(number)]


_UNITS = {
    "years": ("y|yrs?|years?", 365 * 86400),
    "months": ("mo|mths?|months?", 30 * 86400),
    "weeks": ("w|wks?|weeks?", 7 * 86400),
    "days": ("d|dys?|days?", 86400),
    "hours": ("h|hrs?|hours?", 3600),
    "minutes": ("m|mins?|minutes?", 60),
    "seconds": ("s|secs?|seconds?", 1),
}
_WRITTEN = re.compile(
    r"\s*(?P<sign>[+-])?\s*"
    + r"[\s,/]*".join(
        rf"(?:(?P<{name}>\d+(?:\.\d*)?)\s*(?:{names}))?" for name, (names, _) in _UNITS.items()
    )
)
_CLOCK = re.compile(r"([+-])?\s*(?:(?:(\d+):)?(\d+):)?(\d{1,2}):(\d{2}(?:\.\d+)?)")
_HOURS = re.compile(r"(\d+):(\d{1,2}) hours")


def duration(raw: JsonValue) -> float:
    """Seconds. A clock of two numbers is minutes and seconds."""
    text = as_text(raw)
    if not isinstance(text, str):
        raise InvalidValue("not a duration")
    text = _HOURS.sub(r"\1h \2m", text)
    if clock := _CLOCK.fullmatch(text):
        sign, days, hours, minutes, seconds = clock.groups()
        total = int(days or 0) * 86400 + int(hours or 0) * 3600 + int(minutes) * 60 + float(seconds)
    else:
        found = _WRITTEN.fullmatch(text)
        if not found or not any(map(str.isdigit, text)) or text[0] in ",/":
            raise InvalidValue("not a duration")
        sign = found["sign"]
        total = sum(float(found[name] or 0) * size for name, (_, size) in _UNITS.items())
    if total > 1e14:
        raise InvalidValue("not a duration")
    return -total if sign == "-" else total


def same_duration(one: float, other: float) -> bool:
    """Within three minutes, or a tenth of the longer."""
    return abs(one - other) <= max(180.0, 0.10 * max(abs(one), abs(other)))
