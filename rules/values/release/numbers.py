"""The release's number, currency, boolean and coordinates."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from trajudge.rules.errors import InvalidValue, TooLarge
from trajudge.rules.limits import SCALAR_CHARS, bounded
from trajudge.rules.values.quantities.number import SCALES, SMALL, TENS
from trajudge.rules.values.release.text import as_text, scalar_text, treated

if TYPE_CHECKING:
    from pydantic import JsonValue

_WORDS = SMALL | TENS
_PRICE = re.compile(r"(?:\d[\d.,' ]*|[.,]\d+)(?![\d.,' ]*%)")


def _whole(words: list[str]) -> int:
    total, group = 0, 0
    for word in words:
        if word in SCALES:
            total, group = total + (group or 1) * SCALES[word], 0
        elif word == "hundred":
            group = (group or 1) * 100
        else:
            group += _WORDS[word]
    return total + group


def _in_words(text: str) -> float:
    """Return the value of the number words anywhere in a text; all other words are ignored."""
    known = {*_WORDS, *SCALES, "hundred", "point"}
    words = [word for word in text.replace("-", " ").split() if word in known]
    if not words or words.count("point") > 1:
        raise InvalidValue("not a number")
    if any(words.count(scale) > 1 for scale in SCALES):
        raise InvalidValue("not a number")
    if "point" not in words:
        return float(_whole(words))
    at = words.index("point")
    decimals = "".join(str(_WORDS[word]) for word in words[at + 1 :] if word in _WORDS)
    return float(f"{_whole(words[:at])}.{decimals or 0}")


def number(raw: JsonValue) -> float:
    """Digits without commas and spaces, or the number words in a text; truth values are 1 and 0."""
    try:
        if isinstance(raw, bool | int | float):
            return float(raw)
        text = as_text(raw)
        if not isinstance(text, str):
            raise InvalidValue("not a number")
        return float(text.replace(",", "").replace(" ", ""))
    except OverflowError as error:
        raise TooLarge("a number beyond 1e308") from error
    except ValueError:
        return _in_words(str(text))


def currency(raw: JsonValue) -> float:
    """Return the first price of a text; only a minus before everything else makes it negative."""
    if raw is None or isinstance(raw, bool | list | dict):
        raise InvalidValue("not a price")
    text = treated(bounded(scalar_text(raw), SCALAR_CHARS))
    negative = text.startswith("-")
    if not any(map(str.isdigit, text)) and "free" in text:
        return 0.0
    found = _PRICE.search(text)
    if not found:
        raise InvalidValue("not a price")
    digits = found[0].replace(" ", "").replace("'", "").rstrip(".")
    last = max(digits.rfind("."), digits.rfind(","))
    separator = digits[last] if last >= 0 else "."
    digits = digits.replace("," if separator == "." else ".", "").replace(separator, ".")
    try:
        return -float(digits) if negative else float(digits)
    except ValueError as error:
        raise InvalidValue("not a price") from error


def same_price(one: float, other: float) -> bool:
    """Within ten cents."""
    return round(abs(one - other), 9) <= 0.10


_TRUE, _FALSE = ("true", "yes", "y", "1", "t", "on"), ("false", "no", "n", "0", "f", "off")


def boolean(raw: JsonValue) -> bool:
    """Truth values, any number, and twelve words."""
    if isinstance(raw, bool | int | float):
        return bool(raw)
    text = as_text(raw)
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    raise InvalidValue("neither yes nor no")


_PAIR = re.compile(r"([+-]?\d+(?:\.\d+)?)[,; ]+([+-]?\d+(?:\.\d+)?)(?:[,;] ?\d+(?:\.\d+)? ?k?m)?")


def is_point(raw: JsonValue) -> bool:
    """Tell whether a list is one point rather than alternatives."""
    return isinstance(raw, list) and len(raw) == 2 and all(map(_is_component, raw))


def _is_component(value: JsonValue) -> bool:
    try:
        float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def coordinates(raw: JsonValue) -> tuple[float, float]:
    """Latitude and longitude; longitudes wrap around."""
    if isinstance(raw, str):
        found = _PAIR.fullmatch(str(as_text(raw)))
        pair: list[JsonValue] = [found[1], found[2]] if found else []
    elif isinstance(raw, dict):
        names = {key.casefold(): value for key, value in raw.items()}
        first = [v for k, v in names.items() if k and "latitude".startswith(k)]
        second = [v for k, v in names.items() if k and ("longitude".startswith(k) or k == "lng")]
        pair = [first[0], second[0]] if first and second else []
    else:
        pair = raw if isinstance(raw, list) else []
    if len(pair) != 2 or not all(map(_is_component, pair)):
        raise InvalidValue("not coordinates")
    latitude, longitude = float(pair[0]), float(pair[1])  # type: ignore[arg-type]
    if not abs(latitude) <= 90 or not abs(longitude) < 1e6:
        raise InvalidValue("no such point")
    return latitude, longitude if abs(longitude) <= 180 else (longitude + 180) % 360 - 180


def same_point(one: tuple[float, float], other: tuple[float, float]) -> bool:
    """Each component within 1e-5 degrees."""
    return all(abs(a - b) <= 1e-5 for a, b in zip(one, other, strict=True))
