"""distance: a length.

Normal form: metres, ``1400 m``. Read are a number with a unit of length (``1.4km``, ``2 miles``,
``5 ft 6 in``, ``4k`` for kilometres), optionally after ``about`` or ``~``. The text is never
evaluated: arithmetic, infinities, negative lengths and numbers without a unit are refused.
Compared as ``quantity`` says.
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
from trajudge.rules.values.quantities.duration import HEDGE
from trajudge.rules.values.quantities.quantity import Quantity, checked, resolution_of
from trajudge.rules.values.texts.text import casefold_unaccented

if TYPE_CHECKING:
    from pydantic import JsonValue

METRES = {
    **dict.fromkeys(["m", "metre", "metres", "meter", "meters"], Decimal(1)),
    **dict.fromkeys(
        ["k", "km", "kms", "kilometre", "kilometres", "kilometer", "kilometers"], Decimal(1000)
    ),
    **dict.fromkeys(
        ["cm", "centimetre", "centimetres", "centimeter", "centimeters"], Decimal("0.01")
    ),
    **dict.fromkeys(
        ["mm", "millimetre", "millimetres", "millimeter", "millimeters"], Decimal("0.001")
    ),
    **dict.fromkeys(["mi", "mile", "miles"], Decimal("1609.344")),
    **dict.fromkeys(["ft", "foot", "feet", "'"], Decimal("0.3048")),
    **dict.fromkeys(["in", "inch", "inches", '"'], Decimal("0.0254")),
    **dict.fromkeys(["yd", "yds", "yard", "yards"], Decimal("0.9144")),
    **dict.fromkeys(["nmi", "nautical mile", "nautical miles"], Decimal(1852)),
}
_NAMES = "|".join(sorted(METRES, key=len, reverse=True))
_PART = re.compile(rf"((?:[0-9]{{1,3}}(?:,[0-9]{{3}})+|[0-9]+)(?:\.[0-9]+)?) ?-?({_NAMES})")
_JOINT = re.compile(r"(?:,? and |, ?| )?")


def parse(raw: JsonValue) -> Quantity:
    """Metres."""
    if not isinstance(raw, str) or len(raw) > SCALAR_CHARS:
        raise InvalidValue("not a distance with its unit")
    text = casefold_unaccented(raw).removesuffix(".")
    text = HEDGE.sub("", text, count=1) if text[:1] not in "0123456789" else text
    total, finest, last, position = Decimal(0), Decimal(1), Decimal(10**9), 0
    while found := _PART.match(text, position):
        number, unit = found[1].replace(",", ""), METRES[found[2]]
        if unit >= last:
            raise InvalidValue("units of length out of order")
        total += Decimal(number) * unit
        finest, last = resolution_of(number, unit), unit
        joint = _JOINT.match(text, found.end())
        position = joint.end() if joint and joint.end() < len(text) else found.end()
    if not position or position != len(text):
        raise InvalidValue("not a distance with its unit")
    return checked(total, finest)


def show(distance: Quantity) -> str:
    """Metres."""
    return f"{show_number(distance.value)} m"


KIND = Kind(parse=parse, show=show, same=quantity.same)
