"""The release's url and full_address."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from trajudge.rules.errors import InvalidValue
from trajudge.rules.limits import (
    PATTERN_SECONDS,
    SCALAR_CHARS,
    bounded,
    compiled,
    is_pattern,
    timed,
)
from trajudge.rules.values.release.text import scalar_text, treated
from trajudge.rules.values.release.web import (
    base_and_query,
    is_ssh,
    normal_address,
    parameters,
    repository,
)
from trajudge.rules.values.texts.full_address import parse as parse_address
from trajudge.rules.values.texts.url import URL_CHARS

if TYPE_CHECKING:
    from pydantic import JsonValue


class Url(NamedTuple):
    """``base`` as it is matched; the first value of every parameter, without empty ones."""

    base: str
    query: tuple[tuple[str, str], ...]
    shown: str


def url(raw: JsonValue) -> Url:
    """Pattern, repository or address. Hosts of repositories are ignored."""
    if not isinstance(raw, str) or not raw.strip():
        raise InvalidValue("not an address")
    text = bounded(raw, URL_CHARS).strip()
    if is_pattern(text):
        return Url(text, (), text)
    text = text.rstrip("/")
    if is_ssh(text):
        base = repository(text)
        return Url(base, (), base)
    base, query = base_and_query(normal_address(text))
    values = parameters(query).items()
    pairs = sorted((name, min(value.lower().strip() for value in many)) for name, many in values)
    shown = "&".join(f"{name}={value}" for name, value in pairs)
    return Url(
        base,
        tuple((name, value) for name, value in pairs if value),
        base.rstrip("/") + (f"?{shown}" if shown else ""),
    )


def _fits(pattern: str, text: str) -> bool:
    """Tell whether a text is a pattern that matches another from its start."""
    if not is_pattern(pattern):
        return False
    return timed(compiled(pattern, 0).match, pattern, text, PATTERN_SECONDS)


def same_url(one: Url, other: Url) -> bool:
    """Return the same base, or either's pattern matches; the expected parameters, patterns
    honoured."""
    if is_pattern(one.base) or is_pattern(other.base):
        alike = _fits(one.base, other.base) or _fits(other.base, one.base)
    else:
        alike = one.base.lower().rstrip("/") == other.base.lower().rstrip("/")
    if not alike:
        return False
    wanted, found = dict(one.query), dict(other.query)
    return all(
        _same_parameter(wanted.get(name, ""), found.get(name, ""))
        for name in wanted.keys() | found.keys()
    )


def _same_parameter(wanted: str, found: str) -> bool:
    return _fits(wanted, found) if is_pattern(wanted) else wanted == found


def full_address(raw: JsonValue) -> dict[str, str]:
    """House number, street, city, state, postcode: all of them; the name is ignored."""
    if not isinstance(raw, dict):
        raise InvalidValue("not an address")
    needed = ("house_number", "street", "city", "state", "postcode")
    parts = {part: raw.get(part) for part in needed}
    if not parts["postcode"]:
        raise InvalidValue("an address without a postcode")
    postcode = treated(bounded(scalar_text(parts["postcode"]), SCALAR_CHARS)).zfill(5)
    address = parse_address({**parts, "postcode": postcode})
    if len(address) < len(needed):
        raise InvalidValue("an address without one of its five parts")
    return {**address, "postcode": postcode}
