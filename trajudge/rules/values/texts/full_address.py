"""full_address: a postal address of the United States.

Normal form: an object with the stated parts among name, house_number, street, city, state,
postcode, country; texts as in ``text``, street types and directions by their postal abbreviations,
the state by its two letters, the first five digits of the ZIP code. Read are an object with those
keys and one line (``117 South Bouquet Street, Pittsburgh, PA 15213``). Two addresses are the same
if they state the same parts with the same values; a name or a country counts only where both
state it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from trajudge.rules.errors import InvalidValue
from trajudge.rules.limits import SCALAR_CHARS
from trajudge.rules.values.model import Kind
from trajudge.rules.values.texts.postal import DIRECTIONS, STATES, STREETS
from trajudge.rules.values.texts.text import casefold_unaccented, normal_text, raw_text

if TYPE_CHECKING:
    from pydantic import JsonValue

PARTS = ("name", "house_number", "street", "city", "state", "postcode", "country")
_OPTIONAL = ("name", "country")
_ZIP = re.compile(r"([0-9]{5})(?:-?[0-9]{4})?")
_STATE_ZIP = re.compile(r"(.*?)(?:^| )([0-9]{5}(?:-[0-9]{4})?)")
_HOUSE = re.compile(r"([0-9]+[a-z]?(?:-[0-9]+)?) (.+)")
_COUNTRIES = frozenset(
    ("us", "usa", "united states", "united states of america", "u.s.", "u.s", "u.s.a", "u.s.a.")
)


def _street(text: str) -> str:
    words = re.findall(r"[^\s.,]+", casefold_unaccented(text))
    short = [STREETS.get(word, word) for word in words]
    return " ".join(DIRECTIONS.get(word, word) if len(words) > 2 else word for word in short)


def _state(text: str) -> str:
    name = normal_text(text).replace(".", "")
    if (code := STATES.get(name, name).upper()) not in STATES.values():
        raise InvalidValue("no state of the United States")
    return code


def _postcode(text: str) -> str:
    found = _ZIP.fullmatch(normal_text(text))
    if not found:
        raise InvalidValue("not a ZIP code")
    return found[1]


def _country(text: str) -> str:
    name = casefold_unaccented(text)
    return "US" if name in _COUNTRIES else normal_text(text)


_READ = {"street": _street, "state": _state, "postcode": _postcode, "country": _country}


def _from_object(raw: dict[str, JsonValue]) -> dict[str, str]:
    unknown = raw.keys() - set(PARTS)
    if unknown:
        raise InvalidValue(f"an address has no part {min(unknown)[:40]!r}")
    address = {}
    for part in PARTS:
        if raw.get(part) is not None:
            text = raw_text(raw[part], SCALAR_CHARS)
            if text.strip():
                address[part] = _READ.get(part, normal_text)(text)
    return address


def _from_line(text: str) -> dict[str, str]:
    """``[name,] house street, city, state zip [, country]``."""
    parts = [part.strip() for part in casefold_unaccented(text).removesuffix(".").split(",")]
    found: dict[str, JsonValue] = {}
    if parts[-1] in _COUNTRIES:
        found["country"] = parts.pop()
    if parts and (tail := _STATE_ZIP.fullmatch(parts[-1])):
        found["postcode"] = tail[2]
        parts = [*parts[:-1], tail[1]] if tail[1] else parts[:-1]
    if len(parts) < 3 or "postcode" not in found:
        raise InvalidValue("not an address of the form 'number street, city, state ZIP'")
    found["state"], found["city"] = parts[-1], parts[-2]
    if len(parts) > 3:
        found["name"] = ", ".join(parts[:-3])
    house = _HOUSE.fullmatch(parts[-3])
    if not house:
        raise InvalidValue("an address without a house number")
    found["house_number"], found["street"] = house[1], house[2]
    return _from_object(found)


def parse(raw: JsonValue) -> dict[str, str]:
    """Return the stated parts in normal form."""
    if isinstance(raw, dict):
        address = _from_object(raw)
    elif isinstance(raw, str) and len(raw) <= SCALAR_CHARS:
        address = _from_line(raw)
    else:
        raise InvalidValue("not an address")
    if not address:
        raise InvalidValue("an address without any part")
    return address


def same(one: dict[str, str], other: dict[str, str]) -> bool:
    """Return the same parts with the same values."""
    return all(
        one.get(part) == other.get(part)
        or (part in _OPTIONAL and (part not in one or part not in other))
        for part in PARTS
    )


def show(address: dict[str, str]) -> JsonValue:
    """Return the parts in their usual order."""
    return dict(address)


KIND = Kind(parse=parse, show=show, same=same)
