"""The release's number, currency and boolean."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING

from trajudge.rules.errors import InvalidValue, TooLarge
from trajudge.rules.limits import SCALAR_CHARS, bounded
from trajudge.rules.values.quantities.number import SMALL, TENS
from trajudge.rules.values.release.text import as_text, scalar_text

if TYPE_CHECKING:
    from pydantic import JsonValue

_SCALES = {"billion": 10**9, "million": 10**6, "thousand": 10**3}
_WORDS = SMALL | TENS | {"hundred": 100}
_KNOWN = {*_WORDS, *_SCALES, "point"}


def _in_words(text: str) -> float:
    """Return the value of the number words anywhere in a text; all other words are ignored."""
    words = [word for word in text.replace("-", " ").lower().split() if word in _KNOWN]
    if not words or any(words.count(word) > 1 for word in (*_SCALES, "point")):
        raise InvalidValue("not a number")
    at = words.index("point") if "point" in words else len(words)
    whole, digits = words[:at], [_WORDS.get(word, 10) for word in words[at + 1 :]]
    # A word that is no digit takes the whole fraction with it.
    fraction = "".join(map(str, digits)) if all(digit < 10 for digit in digits) else "0"
    return _whole(whole) + float(f"0.{fraction or 0}")


def _whole(words: list[str]) -> int:
    if len(words) <= 1:
        return (_WORDS | _SCALES)[words[0]] if words else 0
    total, start, last_used = 0, 0, False
    places = {scale: words.index(scale) for scale in _SCALES if scale in words}
    if list(places.values()) != sorted(places.values()):
        raise InvalidValue("not a number")
    for scale, place in places.items():
        total += _group(words[start:place]) * _SCALES[scale]
        start, last_used = place + 1, place == len(words) - 1
    if not last_used:
        return total + _group(words[start:])
    # A scale at the end: what follows the scale before it counts once more, as a sum.
    before = [place for place in places.values() if place != len(words) - 1]
    return total + (_group(words[before[-1] + 1 :]) if before else 0)


def _group(words: list[str]) -> int:
    """Return up to four words as hundreds, tens and ones, whether they make a number or not."""
    values = [(_WORDS | _SCALES)[word] for word in words]
    if not values:
        raise InvalidValue("not a number")
    if len(values) == 2 and 100 not in values:
        return sum(values)
    if 2 <= len(values) <= 4:
        return values[0] * values[1] + sum(values[2:])
    return values[0]


def number(raw: JsonValue) -> float:
    """Digits without commas and spaces, or the number words in a text; truth values are 1 and 0."""
    try:
        if isinstance(raw, bool | int | float):
            return float(raw)
        text = as_text(raw)
        if not isinstance(text, str) or not text:
            raise InvalidValue("not a number")
        return float(text.replace(",", "").replace(" ", ""))
    except OverflowError as error:
        raise TooLarge("a number beyond 1e308") from error
    except ValueError:
        return _in_words(str(text))


# What comes before a per cent sign is no price; one digit fewer may be.
_PRICE = re.compile(r"\.?\d[\d\s.,']*(?![%\d])")


def currency(raw: JsonValue) -> Decimal:
    """Return the first price of a text; only a minus before everything else makes it negative."""
    if not raw and not isinstance(raw, int | float):
        raise InvalidValue("not a price")
    text = bounded(scalar_text(as_text(raw)), SCALAR_CHARS)
    negative = text.startswith("-")
    if negative:
        text = text.replace("-", "")
    found = _PRICE.search(" ".join(text.split()) if text.isascii() else text)
    if not found:
        if "free" in text.lower():
            return Decimal(0)
        raise InvalidValue("not a price")
    # A stop before a space stays, and makes the price none.
    digits = "".join(found[0].rstrip(",.").replace("'", "").split())
    digits = digits if digits.count(".") == 1 else digits.lstrip(",.")
    decimal_point = text.rfind(".") > text.rfind(",")
    plain = digits.replace("," if decimal_point else ".", "").replace(",", ".")
    try:
        amount = Decimal(str(float(Decimal(plain))))
    except (InvalidOperation, ValueError) as error:
        raise InvalidValue("not a price") from error
    return -amount if negative else amount


def same_price(one: Decimal, other: Decimal) -> bool:
    """Within ten cents."""
    return abs(one - other) <= Decimal("0.1")


_TRUE, _FALSE = ("true", "yes", "y", "1", "t", "on"), ("false", "no", "n", "0", "f", "off")


def boolean(raw: JsonValue) -> bool:
    """Truth values, any number, and twelve words."""
    if isinstance(raw, bool | int | float):
        return bool(raw)
    text = as_text(raw)
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    raise InvalidValue("neither yes nor no")
