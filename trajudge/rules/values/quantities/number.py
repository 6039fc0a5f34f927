"""number, integer: an exact decimal number.

Normal form: decimal digits without exponent, grouping, leading or trailing zeros: ``-1234.5``.
Read are JSON numbers (binary fractions to 15 digits, so that 0.1 + 0.2 is 0.3), digits with an
optional sign, exponent and thousands separators in their places, and numbers in words that
are nothing but number words. Truth values, percentages, units, prose and infinities are refused.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING

from trajudge.rules.errors import InvalidValue
from trajudge.rules.limits import SCALAR_CHARS, bounded
from trajudge.rules.values.decimals import bounded_decimal, from_json, show
from trajudge.rules.values.model import Kind
from trajudge.rules.values.texts.text import raw_text, strip_invisible

if TYPE_CHECKING:
    from pydantic import JsonValue

_DIGITS = re.compile(
    r"([+-]?) ?((?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]{1,3}(?: [0-9]{3})+|[0-9]+)(?:\.[0-9]*)?|\.[0-9]+)"
    r"([eE][+-]?[0-9]{1,4})?"
)
SMALL = dict(
    zip(
        [
            "zero",
            "one",
            "two",
            "three",
            "four",
            "five",
            "six",
            "seven",
            "eight",
            "nine",
            "ten",
            "eleven",
            "twelve",
            "thirteen",
            "fourteen",
            "fifteen",
            "sixteen",
            "seventeen",
            "eighteen",
            "nineteen",
        ],
        range(20),
        strict=True,
    )
)
TENS = dict(
    zip(
        ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"],
        range(20, 100, 10),
        strict=True,
    )
)
SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9}


def _group(words: list[str]) -> int:
    """Return the value of words below a thousand: ``two hundred and thirty five``."""
    total = 0
    if len(words) > 1 and words[1] == "hundred":
        if words[0] != "a" and not 0 < SMALL.get(words[0], 0) < 10:
            raise InvalidValue("not a number")
        total, words = 100 * SMALL.get(words[0], 1), words[2:]
        words = words[1:] if len(words) > 1 and words[0] == "and" else words
    if words and words[0] in TENS:
        total, words = total + TENS[words[0]], words[1:]
        if words and not 0 < SMALL.get(words[0], 0) < 10:
            raise InvalidValue("not a number")
    if words and words[0] in SMALL:
        total, words = total + SMALL[words[0]], words[1:]
    if words:
        raise InvalidValue("not a number")
    return total


def _in_words(text: str) -> Decimal:
    """Return the value of a text that is a number in words from its first word to its last."""
    words = text.replace("-", " ").removesuffix(".").split()
    negative = words[:1] in (["minus"], ["negative"])
    words = words[negative:]
    total, largest = 0, 10**12
    while scales := [index for index, word in enumerate(words) if word in SCALES]:
        end = scales[0]
        scale, group = SCALES[words[end]], words[:end]
        if not group or scale >= largest:
            raise InvalidValue("not a number")
        total, largest = total + scale * (1 if group == ["a"] else _group(group)), scale
        words = words[end + 1 :]
        words = words[1:] if len(words) > 1 and words[0] == "and" else words
    if not words and not total:
        raise InvalidValue("not a number")
    total += _group(words) if words else 0
    return Decimal(-total if negative else total)


def parse_text(text: str) -> Decimal:
    """Return the number that a tidy text states."""
    if found := _DIGITS.fullmatch(text):
        sign, digits, exponent = found.groups()
        return bounded_decimal(
            Decimal(sign + digits.replace(",", "").replace(" ", "") + (exponent or ""))
        )
    if text[:1].isalpha():
        return _in_words(text.casefold())
    raise InvalidValue("not a number")


def parse(raw: JsonValue) -> Decimal:
    """Return the number that a JSON number or a text states."""
    if isinstance(raw, bool):
        raise InvalidValue("a truth value where a number is expected")
    if isinstance(raw, int | float):
        return from_json(raw)
    return parse_text(strip_invisible(bounded(raw_text(raw), SCALAR_CHARS)))


def parse_integer(raw: JsonValue) -> Decimal:
    """Return a number without a fraction."""
    value = parse(raw)
    if value != value.to_integral_value():
        raise InvalidValue("not a whole number")
    return value


KIND = Kind(parse=parse, show=show)
INTEGER = Kind(parse=parse_integer, show=show)
