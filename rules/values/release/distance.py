"""The release's distance: an expression in units of length, evaluated.

Sums, products, quotients, powers and parentheses are worked out as the release does, with bounds
where the release would not come back: an exponent beyond 64, a result that is no finite length.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from trajudge.rules.errors import InvalidValue
from trajudge.rules.values.quantities.distance import METRES
from trajudge.rules.values.release.text import as_text

if TYPE_CHECKING:
    from pydantic import JsonValue

_TOKEN = re.compile(r"\s*((?:\d[\d_]*\.?\d*|\.\d+)(?:e[+-]?\d+)?|[a-z_]+|\*\*|[-+*/^()])")
_IGNORED = " :\"'!&=$"
_KILO = re.compile(r"(\d)\s*k\b")
_MORE = {"furlong": 201.168, "league": 4828.042, "parsec": 3.0857e16, "mm": 0.001, "um": 1e-6}
_MORE |= {"furlongs": 201.168, "au": 1.495978707e11, "light_year": 9.4607e15, "rod": 5.02921}
_UNITS = {name: float(size) for name, size in METRES.items() if name.isalpha() and name != "k"}
_UNITS |= _MORE
_CHARS = 100


class _Value(NamedTuple):
    size: float
    power: float  # of the metre: 1 for a length


class _Reader:
    """A recursive descent over the tokens: sum, product, power, atom."""

    def __init__(self, text: str) -> None:
        self.tokens = [found[1] for found in _TOKEN.finditer(text)]
        if "".join(self.tokens) != re.sub(r"\s+", "", text):
            raise InvalidValue("not a distance")
        self.at = 0

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self) -> str:
        self.at += 1
        return self.tokens[self.at - 1] if self.at <= len(self.tokens) else ""

    def sum(self) -> _Value:
        value = self.product()
        while self.peek() in ("+", "-"):
            sign = 1 if self.take() == "+" else -1
            other = self.product()
            if other.power != value.power:
                raise InvalidValue("not a distance")
            value = _Value(value.size + sign * other.size, value.power)
        return value

    def product(self) -> _Value:
        value = self.power()
        while self.peek() not in ("", "+", "-", ")"):
            divide = self.peek() == "/"
            if self.peek() in ("*", "/"):
                self.take()
            other = self.power()
            if divide:
                value = _Value(value.size / other.size, value.power - other.power)
            else:
                value = _Value(value.size * other.size, value.power + other.power)
        return value

    def power(self) -> _Value:
        if self.peek() in ("-", "+"):
            sign = -1 if self.take() == "-" else 1
            value = self.power()
            return _Value(sign * value.size, value.power)
        value = self.atom()
        if self.peek() in ("**", "^"):
            self.take()
            exponent = self.power()
            if exponent.power or abs(exponent.size) > 64:
                raise InvalidValue("a power that the release does not come back from")
            size = value.size**exponent.size
            if isinstance(size, complex):
                raise InvalidValue("not a distance")
            value = _Value(size, value.power * exponent.size)
        return value

    def atom(self) -> _Value:
        token = self.take()
        if token == "(":  # noqa: S105  (a parenthesis)
            value = self.sum()
            if self.take() != ")":
                raise InvalidValue("not a distance")
            return value
        if token in ("inf", "infinity"):
            return _Value(float("inf"), 0)
        if token in _UNITS:
            return _Value(_UNITS[token], 1)
        if token[:1].isdigit() or token[:1] == ".":
            return _Value(float(token), 0)
        raise InvalidValue("not a distance")


def parse(raw: JsonValue) -> float:
    """Metres; negative and infinite lengths included."""
    text = as_text(raw)
    if not isinstance(text, str) or not text or len(text) > _CHARS:
        raise InvalidValue("not a distance")
    text = text.replace(",", "").partition("#")[0].strip(_IGNORED)
    text = _KILO.sub(r"\1 km", text).removesuffix(".")
    reader = _Reader(text)
    try:
        value = reader.sum()
    except (ArithmeticError, ValueError) as error:
        raise InvalidValue("not a distance") from error
    if reader.peek() or value.power != 1 or value.size != value.size:
        raise InvalidValue("not a distance")
    return abs(value.size) if value.size == -float("inf") else value.size


def same(one: float, other: float) -> bool:
    """Within 10 m, or 2 % of the longer; an infinite length equals every finite one."""
    infinite = [one, other].count(float("inf"))
    return infinite == 1 or (
        not infinite and abs(one - other) <= max(10.0, 0.02 * max(abs(one), abs(other)))
    )
