"""The release's distance: an expression in units of length, evaluated.

Sums, products, quotients, powers and parentheses are worked out as the release does, with bounds
where the release would not come back: an exponent beyond 64, a result that is no finite length.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from trajudge.rules.errors import InvalidValue
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
_FOOT = 0.3048
_SURVEY = 1200 / 3937  # the foot of surveyors
# Lengths that pint has by name, in metres; each takes a prefix and, but for two, a plural "s".
_UNITS = {
    **dict.fromkeys(("m", "meter", "metre"), 1.0),
    **dict.fromkeys(("in", "inch", "inches", "international_inch"), 0.0254),
    **dict.fromkeys(("ft", "foot", "feet", "international_foot", "international_feet"), _FOOT),
    **dict.fromkeys(("yd", "yard", "international_yard"), 3 * _FOOT),
    **dict.fromkeys(("mi", "mile", "international_mile"), 5280 * _FOOT),
    **dict.fromkeys(("sft", "survey_foot"), _SURVEY),
    **dict.fromkeys(("smi", "survey_mile", "us_statute_mile"), 5280 * _SURVEY),
    **dict.fromkeys(("rd", "rod", "pole", "perch"), 16.5 * _SURVEY),
    **dict.fromkeys(("li", "link", "survey_link"), 0.66 * _SURVEY),
    **dict.fromkeys(("fur", "furlong"), 660 * _SURVEY),
    **{"fathom": 6 * _SURVEY, "chain": 66 * _SURVEY, "cables_length": 720 * _SURVEY},
    **{"league": 3 * 5280 * _SURVEY, "hand": _FOOT / 3},
    **dict.fromkeys(("nmi", "nautical_mile"), 1852.0),
    **dict.fromkeys(("th", "thou", "mil_length"), 2.54e-5),
    **dict.fromkeys(("px", "css_pixel"), 0.0254 / 96),
    **dict.fromkeys(("pp", "bp", "point", "printers_point", "big_point"), 0.0254 / 72),
    **dict.fromkeys(("pica", "printers_pica"), 0.0254 / 6),
    **{"micron": 1e-6, "angstrom": 1e-10, "fermi": 1e-15, "fm": 1e-15},
    **dict.fromkeys(("au", "astronomical_unit"), 149597870700.0),
    **dict.fromkeys(("ly", "lightyear", "light_year"), 9460730472580800.0),
    **dict.fromkeys(("pc", "parsec"), 3.0856775814671916e16),
}
_PREFIXES = {
    **{"quecto": 1e-30, "q": 1e-30, "ronto": 1e-27, "r": 1e-27, "yocto": 1e-24, "y": 1e-24},
    **{"zepto": 1e-21, "z": 1e-21, "atto": 1e-18, "a": 1e-18, "femto": 1e-15, "f": 1e-15},
    **{"pico": 1e-12, "p": 1e-12, "nano": 1e-9, "n": 1e-9, "micro": 1e-6, "u": 1e-6, "mu": 1e-6},
    **{"mc": 1e-6, "milli": 1e-3, "m": 1e-3, "centi": 0.01, "c": 0.01, "deci": 0.1, "d": 0.1},
    **{"deca": 10.0, "da": 10.0, "deka": 10.0, "hecto": 100.0, "h": 100.0, "kilo": 1e3, "k": 1e3},
    **{"mega": 1e6, "giga": 1e9, "tera": 1e12, "peta": 1e15, "exa": 1e18, "zetta": 1e21},
    **{"yotta": 1e24, "semi": 0.5, "demi": 0.5, "sesqui": 1.5},
}
_NO_PLURAL = ("m", "bp")
_OF_TIME = ("min", "mins")
_PURE = {"dimensionless": 1.0, "percent": 0.01, "inf": float("inf"), "infinity": float("inf")}
_CHARS = 100


def _length(name: str) -> float | None:
    """Return the metres of a unit, with or without prefix and plural; None for no length."""
    if name in _UNITS:
        return _UNITS[name]
    if name in _OF_TIME:
        return None
    stems = [name[:-1], name] if name.endswith("s") else [name]
    for stem in stems:
        if stem != name and stem in _UNITS and stem not in _NO_PLURAL:
            return _UNITS[stem]
        for prefix, factor in _PREFIXES.items():
            unit = stem.removeprefix(prefix)
            if unit != stem and unit in _UNITS and (stem == name or unit not in _NO_PLURAL):
                return factor * _UNITS[unit]
    return None


class _Value(NamedTuple):
    size: float
    power: float  # of the metre: 1 for a length


_NOTHING = _Value(0.0, 0)  # may be added to any length


def _tokens(text: str) -> Iterator[str]:
    """Yield numbers, names and signs of an expression; marks that are none of these are ignored.

    Texts in quotation marks are ignored with what they hold, as everything behind a ``#``.
    """
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
        if (metres := _length(token)) is not None:
            return _Value(metres, 1)
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
