"""date: a day, or the part of a date that was stated.

Normal form: ISO 8601, cut to the stated parts: ``2023-05-23``, ``2023-05``, ``2023``, ``--05-23``.
Parts that are not stated are never filled in, so a month is no day in it. Read are ISO dates,
numbers with ``/``, ``-`` or ``.`` between them — month first as the benchmark's sites write, unless
only day first is a date — and English month names with the day before or after. A weekday and a
time of day are allowed and ignored; the date is the one written, whatever the time zone. Years of
two digits are 1969 to 2068.
"""

from __future__ import annotations

import calendar
import re
from typing import TYPE_CHECKING, NamedTuple

from trajudge.rules.errors import InvalidValue
from trajudge.rules.limits import SCALAR_CHARS
from trajudge.rules.values.model import Kind
from trajudge.rules.values.texts.text import casefold_unaccented

if TYPE_CHECKING:
    from pydantic import JsonValue

MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "january jan",
            "february feb",
            "march mar",
            "april apr",
            "may",
            "june jun",
            "july jul",
            "august aug",
            "september sep sept",
            "october oct",
            "november nov",
            "december dec",
        ),
        start=1,
    )
    for name in names.split()
}
_NAME = rf"(?P<name>{'|'.join(sorted(MONTHS, key=len, reverse=True))})\.?"
_DAY = r"(?P<day>[0-9]{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>[0-9]{4})"
_TIME = re.compile(
    r"(?:,? at|,)?[ t](?:[0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]{1,9})?)?(?: ?[ap]\.?m\.?)?"
    r"|[0-9]{1,2} ?[ap]\.?m\.?)(?: ?(?:z|utc|gmt|[+-][0-9]{2}:?[0-9]{2}))?\Z"
)
_WEEKDAY = re.compile(r"(?:(?:mon|tues?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?|sun)(?:day)?\.?,? )")
_FORMS = tuple(
    re.compile(form)
    for form in (
        _YEAR + r"([-/.])(?P<month>[0-9]{1,2})\2(?P<day>[0-9]{1,2})",
        r"(?P<first>[0-9]{1,2})([-/.])(?P<second>[0-9]{1,2})\2(?P<year>[0-9]{4}|[0-9]{2})",
        rf"{_NAME} {_DAY}(?:,? ?{_YEAR})?",
        rf"(?:the )?{_DAY}(?: of | |-|/){_NAME}(?:(?:,? ?|-|/){_YEAR})?",
        rf"{_NAME}(?:,? |-){_YEAR}",
        _YEAR + r"-(?P<month>[0-9]{1,2})",
        r"(?P<month>[0-9]{1,2})/" + _YEAR,
        r"--(?P<month>[0-9]{2})-(?P<day>[0-9]{2})",
        r"(?P<year>[0-9]{4})(?P<month>[0-9]{2})(?P<day>[0-9]{2})",
        _YEAR + rf"[- ]{_NAME}[- ](?P<day>[0-9]{{1,2}})",
        _YEAR,
    )
)


class Date(NamedTuple):
    """The stated parts; None where a part was not stated."""

    year: int | None
    month: int | None
    day: int | None


def _checked(year: int | None, month: int | None, day: int | None) -> Date:
    if year == 0 or (month is not None and not 1 <= month <= 12):
        raise InvalidValue("no such date")
    # 29 February is a day unless its year says otherwise.
    longest = calendar.monthrange(year or 2000, month)[1] if month else 31
    if day is not None and not 1 <= day <= longest:
        raise InvalidValue("no such day")
    return Date(year, month, day)


def _from_match(parts: dict[str, str | None]) -> Date:
    stated = parts.get("year") or ""
    year = int(stated) if stated else None
    if year is not None and len(stated) == 2:
        year += 2000 if year < 69 else 1900
    if parts.get("first"):
        first, second = int(parts["first"] or 0), int(parts["second"] or 0)
        return _checked(year, second, first) if first > 12 else _checked(year, first, second)
    month = MONTHS[parts["name"] or ""] if parts.get("name") else int(parts.get("month") or 0)
    day = int(parts["day"] or 0) if parts.get("day") else None
    return _checked(year, month if parts.get("name") or parts.get("month") else None, day)


def parse(raw: JsonValue) -> Date:
    """Return the date that a text states. Raises InvalidValue for numbers: an epoch is no date."""
    if not isinstance(raw, str) or len(raw) > SCALAR_CHARS:
        raise InvalidValue("not a date")
    text = casefold_unaccented(raw).removesuffix(".")
    if text[:1].isalpha():
        text = _WEEKDAY.sub("", text, count=1) if _WEEKDAY.match(text) else text
    if ":" in text or text.endswith(("m", "m.")):
        text = _TIME.sub("", text)
    for form in _FORMS:
        if found := form.fullmatch(text):
            return _from_match(found.groupdict())
    raise InvalidValue("not a date")


def show(date: Date) -> str:
    """ISO 8601, cut to the stated parts."""
    year = "-" if date.year is None else f"{date.year:04}"
    month = "" if date.month is None else f"-{date.month:02}"
    return year + month + ("" if date.day is None else f"-{date.day:02}")


KIND = Kind(parse=parse, show=show, nothing=frozenset({"", "n/a", "na", "none", "null"}))
