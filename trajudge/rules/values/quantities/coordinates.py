"""coordinates: a point on the globe.

Normal form: latitude and longitude in decimal degrees, ``40.4424191,-79.9397388``. Read are a list
of two numbers, an object with a latitude and a longitude (lat, lon, lng, long), and text: two
decimal numbers or degrees, minutes and seconds, with or without N, S, E, W. Latitudes beyond 90
and longitudes beyond 180 degrees are refused. Two points are the same if each component differs
by at most half of the coarser one's last decimal, where four decimals (about 11 m) are the least,
or by 0.00001, which is 1.1 m: no map tells such points apart.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING, NamedTuple

from trajudge.rules.errors import InvalidValue
from trajudge.rules.limits import SCALAR_CHARS
from trajudge.rules.values import decimals
from trajudge.rules.values.model import Kind
from trajudge.rules.values.quantities import number
from trajudge.rules.values.texts.text import casefold_unaccented

if TYPE_CHECKING:
    from pydantic import JsonValue

_LATITUDE = ("latitude", "lat")
_LONGITUDE = ("longitude", "lon", "lng", "long")
_LEAST_DECIMALS = 4
_SAME_PLACE = Decimal("0.00001")
_LABEL = r"(?:(?:lat|lon|lng|long|latitude|longitude)[:=]? ?)?"
_ANGLE = (
    _LABEL + r"(?:([nsew]) ?)?([+-]?[0-9]{1,3}(?:\.[0-9]+)?) ?°?"
    r"(?: ?([0-9]{1,2}(?:\.[0-9]+)?) ?')?(?: ?([0-9]{1,2}(?:\.[0-9]+)?) ?(?:\"|''))? ?([nsew])?"
)
_PAIR = re.compile(rf"[(\[]?{_ANGLE} ?[,; ] ?{_ANGLE}[)\]]?")


class Point(NamedTuple):
    """Decimal degrees, north and east positive."""

    latitude: Decimal
    longitude: Decimal


def _checked(latitude: Decimal, longitude: Decimal) -> Point:
    if abs(latitude) > 90 or abs(longitude) > 180:
        raise InvalidValue("no such point: a latitude is within 90, a longitude within 180 degrees")
    return Point(round(latitude, 9), round(longitude, 9))


def _angle(
    before: str, degrees: str, minutes: str, seconds: str, after: str
) -> tuple[str, Decimal]:
    if before and after:
        raise InvalidValue("not coordinates")
    side = before or after or ""
    size = abs(Decimal(degrees)) + Decimal(minutes or 0) / 60 + Decimal(seconds or 0) / 3600
    negative = degrees[0] == "-" or (side and side in "sw")
    return side, -size if negative else size


def _from_text(text: str) -> Point:
    found = _PAIR.fullmatch(casefold_unaccented(text))
    if not found:
        raise InvalidValue("not coordinates")
    groups = found.groups("")
    one, first = _angle(*groups[:5])
    other, second = _angle(*groups[5:])
    if one in ("e", "w") and other in ("n", "s"):
        first, second = second, first
    elif one in ("e", "w") or other in ("n", "s"):
        raise InvalidValue("not one latitude and one longitude")
    return _checked(first, second)


def _member(raw: dict[str, JsonValue], names: tuple[str, ...]) -> Decimal:
    found = [value for key, value in raw.items() if key.strip().casefold() in names]
    if len(found) != 1:
        raise InvalidValue("an object without exactly one latitude and one longitude")
    return number.parse(found[0])


def parse(raw: JsonValue) -> Point:
    """Return the point that a list, an object or a text states."""
    if isinstance(raw, list) and len(raw) == 2:
        return _checked(number.parse(raw[0]), number.parse(raw[1]))
    if isinstance(raw, dict) and len(raw) <= 100:
        return _checked(_member(raw, _LATITUDE), _member(raw, _LONGITUDE))
    if isinstance(raw, str) and len(raw) <= SCALAR_CHARS:
        return _from_text(raw)
    raise InvalidValue("not coordinates")


def _decimals(value: Decimal) -> int:
    exponent = value.normalize().as_tuple().exponent
    return max(-exponent, _LEAST_DECIMALS) if isinstance(exponent, int) else _LEAST_DECIMALS


def _near(one: Decimal, other: Decimal) -> bool:
    coarser = min(_decimals(one), _decimals(other))
    return abs(one - other) <= max(Decimal(5).scaleb(-coarser - 1), _SAME_PLACE)


def same(one: Point, other: Point) -> bool:
    """Both components agree to the precision that was stated."""
    return _near(one.latitude, other.latitude) and _near(one.longitude, other.longitude)


def show(point: Point) -> str:
    """``40.4424191,-79.9397388``."""
    return f"{decimals.show(point.latitude)},{decimals.show(point.longitude)}"


def is_point(raw: JsonValue) -> bool:
    """Tell whether a list is one point rather than alternatives."""
    return (
        isinstance(raw, list) and len(raw) == 2 and not any(isinstance(x, list | dict) for x in raw)
    )


KIND = Kind(parse=parse, show=show, same=same, is_list=is_point)
