"""month: a calendar month, of a year where one was stated.

Normal form: ``2022-05``, or ``--05`` without a year. Two months are the same if their numbers are
and no two different years were stated. Read are the numbers 1 to 12, English names, and both with
a year. A date with a day is a date, not a month.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from trajudge.rules.errors import InvalidValue
from trajudge.rules.limits import SCALAR_CHARS
from trajudge.rules.values.model import Kind
from trajudge.rules.values.quantities import date
from trajudge.rules.values.quantities.date import MONTHS, Date
from trajudge.rules.values.texts.text import casefold_unaccented

if TYPE_CHECKING:
    from pydantic import JsonValue

_NUMBER = re.compile(r"(?:--)?([0-9]{1,2})(?:\.0+)?")


def parse(raw: JsonValue) -> Date:
    """Return the month, as a date without a day."""
    if isinstance(raw, int | float) and not isinstance(raw, bool):
        number = int(raw) if 1 <= raw <= 12 and raw == int(raw) else 0
    elif isinstance(raw, str) and len(raw) <= SCALAR_CHARS:
        text = casefold_unaccented(raw).removesuffix(".")
        found = _NUMBER.fullmatch(text)
        number = int(found[1]) if found else MONTHS.get(text, 0)
        if not found and not number:
            stated = date.parse(raw)
            if stated.month is None or stated.day is not None:
                raise InvalidValue("not a month")
            return stated
    else:
        raise InvalidValue("not a month")
    if not 1 <= number <= 12:
        raise InvalidValue("not a month")
    return Date(None, number, None)


def same(one: Date, other: Date) -> bool:
    """Return the same month, and not of two different years."""
    return one.month == other.month and (
        one.year is None or other.year is None or one.year == other.year
    )


def show(month: Date) -> str:
    """``2022-05`` or ``--05``."""
    return date.show(month)


KIND = Kind(parse=parse, show=show, same=same, nothing=date.KIND.nothing)
