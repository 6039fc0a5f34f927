"""Exact decimals of JSON numbers, and how they are written."""

from __future__ import annotations

import math
from decimal import Decimal
from functools import lru_cache

from trajudge.rules.errors import InvalidValue, TooLarge

LARGEST_EXPONENT = 308


def bounded_decimal(value: Decimal) -> Decimal:
    """Return the number itself. Raises InvalidValue if it is infinite, or beyond 1e308 or
    1e-308."""
    if not value.is_finite():
        raise InvalidValue("not a finite number")
    if value and abs(value.adjusted()) > LARGEST_EXPONENT:
        raise TooLarge(f"a number beyond 1e{LARGEST_EXPONENT}")
    return value


def from_json(raw: float) -> Decimal:
    """Return the exact decimal of a JSON number; binary fractions are rounded to 15 digits."""
    if isinstance(raw, int):
        if raw.bit_length() > 1024:
            raise TooLarge(f"a number beyond 1e{LARGEST_EXPONENT}")
        return Decimal(raw)
    if not math.isfinite(raw):
        raise InvalidValue("not a finite number")
    return bounded_decimal(Decimal(f"{raw:.15g}"))


@lru_cache(maxsize=4096)
def show(value: Decimal) -> str:
    """Decimal digits without exponent and without needless zeros."""
    text = format(value, "f")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text
