"""duration: a length of time.

Normal form: ISO 8601 in hours, minutes and seconds: ``PT1H35M``, ``PT0S``. Read are numbers with
units (``1hr 35min``, ``1 hour and 35 minutes``, ``95 min``), clocks (``1:35`` is hours and minutes,
as the map site shows travel times, ``1:35:00``), ISO 8601; before each, ``about`` or ``~``.
A number without a unit is refused, and so is a negative one. Compared as ``quantity`` says.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING

from trajudge.rules.errors import InvalidValue
from trajudge.rules.limits import SCALAR_CHARS
from trajudge.rules.values.decimals import show as show_number
from trajudge.rules.values.model import Kind
from trajudge.rules.values.quantities import quantity
from trajudge.rules.values.quantities.quantity import Quantity, checked, resolution_of
from trajudge.rules.values.texts.text import casefold_unaccented

if TYPE_CHECKING:
    from pydantic import JsonValue

HEDGE = re.compile(r"(?:about|around|approx(?:imately|\.)?|roughly|circa|ca\.|~|≈) ?")
_UNITS = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), 3600),
    **dict.fromkeys(("d", "day", "days"), 86400),
    **dict.fromkeys(("w", "week", "weeks"), 604800),
}
_NUMBER = r"(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?"
_PART = re.compile(rf"({_NUMBER}|an?) ?-?({'|'.join(sorted(_UNITS, key=len, reverse=True))})\.?")
_JOINT = re.compile(r"(?:,? and |, ?| )?")
_CLOCK = re.compile(
    r"([0-9]{1,4}):([0-5][0-9])(?::([0-5][0-9](?:\.[0-9]+)?))?(?: ?(?:hrs?|hours?|h))?"
)
_ISO_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)([wdhms])")
_ISO = re.compile(r"p((?:[0-9]+w)?(?:[0-9]+d)?)(?:t((?:[0-9.]+h)?(?:[0-9.]+m)?(?:[0-9.]+s)?))?")


def _sum(parts: list[tuple[str, str]]) -> Quantity:
    total, finest, last = Decimal(0), Decimal(10**9), 10**9
    for digits, name in parts:
        unit = _UNITS[name]
        if unit >= last:
            raise InvalidValue("units of time out of order")
        number = "1" if digits[0] == "a" else digits.replace(",", "")
        total += Decimal(number) * unit
        finest, last = resolution_of(number, Decimal(unit)), unit
    return checked(total, finest)


def _in_units(text: str) -> Quantity:
    parts, position = [], 0
    while found := _PART.match(text, position):
        parts.append((found[1], found[2]))
        joint = _JOINT.match(text, found.end())
        position = joint.end() if joint and joint.end() < len(text) else found.end()
    if not parts or position != len(text):
        raise InvalidValue("not a duration with its unit")
    return _sum(parts)


def parse(raw: JsonValue) -> Quantity:
    """Seconds."""
    if not isinstance(raw, str) or len(raw) > SCALAR_CHARS:
        raise InvalidValue("not a duration with its unit")
    text = (
        HEDGE.sub("", casefold_unaccented(raw), count=1)
        if raw[:1] not in "0123456789"
        else casefold_unaccented(raw)
    )
    text = text.removesuffix(".")
    if clock := _CLOCK.fullmatch(text):
        hours, minutes, seconds = clock.groups()
        parts = [(hours, "h"), (minutes, "m")] + ([(seconds, "s")] if seconds else [])
        return _sum(parts)
    if text[:1] == "p" and (iso := _ISO.fullmatch(text)):
        parts = [(n, u) for half in iso.groups("") for n, u in _ISO_PART.findall(half)]
        if parts and sum(map(len, map("".join, parts))) == len(iso[1]) + len(iso[2] or ""):
            return _sum(parts)
        raise InvalidValue("not a duration")
    return _in_units(text)


def show(duration: Quantity) -> str:
    """ISO 8601 in hours, minutes and seconds."""
    minutes, seconds = divmod(duration.value, 60)
    hours, minutes = divmod(minutes, 60)
    text = f"PT{hours:f}H" if hours else "PT"
    text += f"{minutes:f}M" if minutes else ""
    text += f"{show_number(seconds)}S" if seconds or text == "PT" else ""
    return text


KIND = Kind(parse=parse, show=show, same=quantity.same)
