"""The release's distance: an expression in units of length, evaluated.

Sums, products, quotients, powers and parentheses are worked out as the release does, with bounds
where the release would not come back: an exponent beyond 64, a result that is no finite length.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from trajudge.rules.errors import InvalidValue
from trajudge.rules.values.quantities.distance import METRES
from trajudge.rules.values.release.text import as_text

if TYPE_CHECKING:
    from pydantic import JsonValue

_KILO = re.compile(r"(\d+(?:\.\d+)?)\s*k(?=\s|$)")
_NAME = "[a-z_][a-z_0-9]*"
_REWRITTEN = (
    (re.compile(rf"({_NAME}) squared"), r"\1**2"),
    (re.compile(rf"({_NAME}) cubed"), r"\1**3"),
    (re.compile(rf"cubic ({_NAME})"), r"\1**3"),
    (re.compile(rf"(?:square|sq) ({_NAME})"), r"\1**2"),
    # A number before letters, a space between words and numbers: products.
    (re.compile(r"\b(\d+\.?\d*)(?=[e|][a-z]|[a-df-z])"), r"\1*"),
    (re.compile(r"([\w.)])\s+(?=[\w(])"), r"\1*"),
)
_SIGNS = frozenset(("**", "*", "/", "+", "-", "(", ")"))
_PREFIXES = {"kilo": 1e3, "hecto": 100, "deca": 10, "deka": 10, "deci": 0.1, "centi": 0.01}
_PREFIXES |= {"milli": 1e-3, "micro": 1e-6, "nano": 1e-9, "mega": 1e6}
_SHORT = {"h": 100, "da": 10, "d": 0.1, "c": 0.01, "m": 1e-3, "u": 1e-6, "n": 1e-9}
_MORE = {"furlong": 201.168, "league": 4828.042, "parsec": 3.0857e16, "rod": 5.02921, "rd": 5.02921}
_MORE |= {"furlongs": 201.168, "au": 1.495978707e11, "light_year": 9.4607e15}
_UNITS = {
    name: float(size)
    for name, size in METRES.items()
    if name.isalpha() and name not in ("k", "kms")
}
_UNITS |= _MORE
_NO_PLURAL = ("m", "km", "cm", "mm")
_UNITS |= {  # "rds", "fts", "feets": the release takes an s after any name of its own
    f"{name}s": size
    for name, size in _UNITS.items()
    if not name.endswith("s") and name not in _NO_PLURAL
}
_UNITS |= {
    prefix + unit: size
    for prefix, size in _PREFIXES.items()
    for unit in ("meter", "meters", "metre", "metres")
}
_UNITS |= {f"{prefix}m": size for prefix, size in _SHORT.items()}
_PURE = {"dimensionless": 1.0, "percent": 0.01, "inf": float("inf"), "infinity": float("inf")}
_CHARS = 100


class _Value(NamedTuple):
    size: float
    power: float  # of the metre: 1 for a length


_NOTHING = _Value(0.0, 0)  # may be added to any length


def _tokens(text: str) -> Iterator[str]:
    """Yield numbers, names and signs of an expression; marks that are none of these are ignored.

    Texts in quotation marks are ignored with what they hold, as everything behind a ``#``.
    """
    import tokenize  # noqa: PLC0415  (only comparisons with the release need it)

    text = text.replace(",", "").replace("%", " percent ").replace(" per ", "/")
    for pattern, product in _REWRITTEN:
        text = pattern.sub(product, text)
    try:
        for token in tokenize.generate_tokens(io.StringIO(text.replace("^", "**")).readline):
            number_or_name = token.type in (tokenize.NUMBER, tokenize.NAME)
            if number_or_name or (token.type == tokenize.OP and token.string in _SIGNS):
                yield token.string
            elif token.string in ("//", "%"):
                raise InvalidValue("not a distance")
    except (tokenize.TokenError, SyntaxError) as error:
        raise InvalidValue("not a distance") from error


class _Reader:
    """A recursive descent over the tokens: sum, product, power, atom."""

    def __init__(self, text: str) -> None:
        self.tokens = list(_tokens(text))
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
            if other.power == value.power or other == _NOTHING:
                value = _Value(value.size + sign * other.size, value.power)
            elif value == _NOTHING:
                value = _Value(sign * other.size, other.power)
            else:
                raise InvalidValue("not a distance")
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
        if self.peek() == "**":
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
        if token in _PURE:
            return _Value(_PURE[token], 0)
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
    reader = _Reader(_KILO.sub(r"\1 km", text))
    try:
        value = reader.sum()
    except (ArithmeticError, ValueError) as error:
        raise InvalidValue("not a distance") from error
    if reader.peek() or value.power != 1 or value.size != value.size:
        raise InvalidValue("not a distance")
    return value.size


def same(one: float, other: float) -> bool:
    """Within 10 m, or 2 % of the longer; an infinite length equals every finite one.

    Raises InvalidValue for two infinite lengths, whose difference is no number.
    """
    infinite = [one, other].count(float("inf"))
    if infinite == 2:
        raise InvalidValue("two infinite lengths")
    return infinite == 1 or abs(one - other) <= max(10.0, 0.02 * max(one, other))
