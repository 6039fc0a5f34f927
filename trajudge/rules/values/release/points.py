"""The release's coordinates."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from trajudge.rules.errors import InvalidValue
from trajudge.rules.values.release.text import as_text

if TYPE_CHECKING:
    from pydantic import JsonValue

_NUMBER = r"\d+(?:\.\d+)?"
# Sides are not read: the text is in lower case by then, and they are looked for in upper case.
_ANGLE = rf"([+-]?{_NUMBER})(?:[*\s] *(?:({_NUMBER})['m] *)?(?:({_NUMBER})[\"s] *)?)?"
_BETWEEN = r"\s*[,;/\s]\s*"
_HEIGHT = rf"(?:{_BETWEEN}[+-]?{_NUMBER} *(?:km|m|mi|ft|nm|nmi))?"
_POINT = re.compile(rf".*? *{_ANGLE}{_BETWEEN} *{_ANGLE}{_HEIGHT}\s*")


def is_point(raw: JsonValue) -> bool:
    """Tell whether a list is one point rather than alternatives."""
    return (
        isinstance(raw, list)
        and len(raw) == 2
        and all(isinstance(value, int | float | str) for value in raw)
        and all(map(_is_component, raw))
    )


def _is_component(value: Any) -> bool:
    try:
        float(value or 0)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def coordinates(raw: JsonValue) -> tuple[float, float]:
    """Latitude and longitude; longitudes wrap around."""
    if isinstance(raw, str):
        pair: list[Any] = _written(str(as_text(raw)))
    elif isinstance(raw, dict):
        pair = _named(raw)
    else:
        pair = raw if isinstance(raw, list) and is_point(raw) else []
    if len(pair) != 2 or not all(map(_is_component, pair)):
        raise InvalidValue("not coordinates")
    latitude, longitude = (float(value or 0) for value in pair)
    if not abs(latitude) <= 90 or not math.isfinite(longitude):
        raise InvalidValue("no such point")
    return latitude, longitude if abs(longitude) <= 180 else (longitude + 180) % 360 - 180


def _written(text: str) -> list[float]:
    """Return the last two angles of a text: degrees, or degrees, minutes and seconds."""
    found = _POINT.fullmatch(text.replace("''", '"'))
    if not found:
        return []
    parts = [float(part or 0) for part in found.groups()]
    return [_degrees(*parts[:3]), _degrees(*parts[3:])]


def _degrees(degrees: float, minutes: float, seconds: float) -> float:
    more = minutes / 60 + seconds / 3600
    return degrees - more if degrees < 0 else degrees + more


def _named(raw: dict[str, JsonValue]) -> list[JsonValue]:
    """Return the first values under beginnings of the two words, of at least two letters."""
    names = {key: key.lower() for key in raw}
    first = [key for key, name in names.items() if len(name) > 1 and "latitude".startswith(name)]
    second = [
        key
        for key, name in names.items()
        if (len(name) > 1 and "longitude".startswith(name)) or name == "lng"
    ]
    if not first or not second:
        return []
    if raw[second[0]] is None:
        return []  # one number alone is no point
    return [raw[first[0]], raw[second[0]]]


def same_point(one: tuple[float, float], other: tuple[float, float]) -> bool:
    """Each component within 1e-5 degrees."""
    return all(abs(a - b) <= 1e-5 for a, b in zip(one, other, strict=True))
