"""Types of the value comparison: modes, kinds, matches, and exact decimals."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from trajudge.rules.limits import InvalidValue, TooLarge

if TYPE_CHECKING:
    from pydantic import JsonValue


T = TypeVar("T")


class Mode(StrEnum):
    """The semantics of a comparison."""

    SOUND = "sound"
    RELEASE = "release-1.2.3"


class Match(NamedTuple):
    """The result for one value: both normal forms (None if invalid), and the reason if unequal.

    ``equal`` is None if it cannot be decided: the specification's value or pattern is invalid, or
    the pattern takes too long.
    """

    equal: bool | None
    expected: JsonValue
    actual: JsonValue
    reason: str


@dataclass(frozen=True, slots=True)
class Kind(Generic[T]):
    """How values of one kind are parsed, shown and compared in one mode.

    ``parse`` raises InvalidValue; ``show`` returns the normal form of a parsed value. ``texts``
    returns the texts of a raw value that a specification's pattern may match, case-sensitively if
    ``case_matters``; without it the kind has no patterns. With ``is_list`` a list is one value, not
    a list of alternatives. ``nothing`` are the texts, in lower case, that state no value.
    """

    parse: Callable[[JsonValue], T]
    show: Callable[[T], JsonValue]
    same: Callable[[T, T], bool] = operator.eq
    texts: Callable[[JsonValue], Sequence[str]] | None = None
    case_matters: bool = False
    is_list: Callable[[JsonValue], bool] = lambda _: False
    nothing: frozenset[str] = frozenset({""})


LARGEST_EXPONENT = 308


def bounded_decimal(value: Decimal) -> Decimal:
    """Return the number unchanged. Raises InvalidValue if it is infinite, or beyond 1e308 or
    1e-308."""
    if not value.is_finite():
        raise InvalidValue("not a finite number")
    if value and abs(value.adjusted()) > LARGEST_EXPONENT:
        raise TooLarge(f"a number beyond 1e{LARGEST_EXPONENT}")
    return value


def decimal_of(raw: float) -> Decimal:
    """Return the exact decimal of a JSON number; binary fractions are rounded to 15 digits."""
    if isinstance(raw, int):
        if raw.bit_length() > 1024:
            raise TooLarge(f"a number beyond 1e{LARGEST_EXPONENT}")
        return Decimal(raw)
    if not math.isfinite(raw):
        raise InvalidValue("not a finite number")
    return bounded_decimal(Decimal(f"{raw:.15g}"))


@lru_cache(maxsize=4096)
def show_decimal(value: Decimal) -> str:
    """Return the decimal digits without exponent and redundant zeros."""
    text = format(value, "f")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text
