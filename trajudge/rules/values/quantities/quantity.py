"""What durations and distances share: a value that is as precise as it was written.

A quantity states a resolution: the size of the last unit or decimal that was written (a minute for
``1hr 35min``, 100 m for ``1.4km``). Two quantities are the same if they differ by at most half of
the coarser resolution, as rounding does, and by at most 3 % of the larger: a coarse answer does not
pass for a fine one.
"""

from __future__ import annotations

from decimal import Decimal
from typing import NamedTuple

from trajudge.rules.errors import InvalidValue

LARGEST_SHARE = Decimal("0.03")
_LARGEST = Decimal(10) ** 15


class Quantity(NamedTuple):
    """``value`` and ``resolution`` in the same base unit (seconds, metres)."""

    value: Decimal
    resolution: Decimal


def resolution_of(digits: str, unit: Decimal) -> Decimal:
    """Return the size of the last decimal of a number written in a unit."""
    decimals = len(digits.partition(".")[2])
    return unit.scaleb(-decimals)


def checked(value: Decimal, resolution: Decimal) -> Quantity:
    """Return a quantity. Raises InvalidValue beyond 1e15 base units."""
    if value > _LARGEST:
        raise InvalidValue("larger than anything that can be travelled")
    return Quantity(value, resolution)


def same(one: Quantity, other: Quantity) -> bool:
    """Tell whether rounding alone explains the difference."""
    difference = abs(one.value - other.value)
    if not difference:
        return True
    rounding = max(one.resolution, other.resolution) / 2
    return difference <= min(rounding, LARGEST_SHARE * max(one.value, other.value))
