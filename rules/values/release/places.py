"""The release's url and full_address."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, unquote

from trajudge.rules.errors import InvalidValue
from trajudge.rules.limits import SCALAR_CHARS, bounded, fullmatch, is_pattern, unicode_text
from trajudge.rules.values.release.text import scalar_text, treated
from trajudge.rules.values.texts.full_address import parse as parse_address
from trajudge.rules.values.texts.url import URL_CHARS

if TYPE_CHECKING:
    from pydantic import JsonValue

_SSH = re.compile(r"(?:ssh://git@[^/]+/|git@[^/:]+:)(\S+)", re.IGNORECASE)
_PARTS = re.compile(
    r"(?:([a-zA-Z][a-zA-Z0-9+.-]*):)?(?://)?([^/?#]*)([^?#]*)(?:\?([^#]*))?(?:#(.*))?"
)
_PORTS = {"http": ":80", "https": ":443"}


class Url(NamedTuple):
    """``base`` as it is matched; the first value of every parameter, without empty ones."""

    base: str
    query: tuple[tuple[str, str], ...]
    shown: str


def url(raw: JsonValue) -> Url:
    """Pattern, repository or address. Hosts of repositories are ignored."""
    if not isinstance(raw, str) or not raw.strip():
        raise InvalidValue("not an address")
    text = unicode_text(bounded(raw, URL_CHARS)).strip()
    if is_pattern(text):
        return Url(text, (), text)
    text = text.rstrip("/")
    if ssh := _SSH.fullmatch(text):
        base = f"git@__SSH_HOST__:{ssh[1].lower()}"
        return Url(base, (), base)
    found = _PARTS.fullmatch(text.replace("\n", ""))
    if not found:
        raise InvalidValue("not an address")
    scheme, host = (found[1] or "https").lower(), found[2].lower()
    host = host.removesuffix(_PORTS.get(scheme, " "))
    path = normal_path(found[3])
    first: dict[str, str] = {}
    for name, value in sorted(part.partition("=")[::2] for part in (found[4] or "").split("&")):
        if name:
            first.setdefault(
                unquote(name), unquote(unquote(value)).replace("+", " ").lower().strip()
            )
    pairs = tuple(sorted(first.items()))
    fragment = f"#{found[5]}" if found[5] else ""
    base = f"{scheme}://{host}{path}{fragment}"
    shown = f"{scheme}://{host}{path.rstrip('/') if len(path) > 1 else path}{fragment}"
    shown += "?" + "&".join(f"{k}={v}" for k, v in pairs) if pairs else ""
    return Url(base, tuple((k, v) for k, v in pairs if v), shown)


def normal_path(path: str) -> str:
    """Return a path without empty and dot segments, percent-encoded where it has to be.

    A slash at its end stays, which a pattern may see.
    """
    text = quote(unicodedata.normalize("NFC", unquote(path)), safe="~:/#[]@!$&'()*+,;=")
    parts = text.split("/")
    kept: list[str] = []
    for part in parts:
        if part == "..":
            del kept[-1:]
        elif part not in ("", "."):
            kept.append(part)
    slash = "/" if kept and parts[-1] in ("", ".", "..") else ""
    return "/" + "/".join(kept) + slash


def _matches(pattern: str, text: str) -> bool:
    return pattern == text or _fits(pattern, text)


def _fits(pattern: str, text: str) -> bool:
    return is_pattern(pattern) and fullmatch(pattern, text, case_matters=True)


def same_url(one: Url, other: Url) -> bool:
    """Return the same base, or either's pattern matches; the expected parameters, patterns
    honoured."""
    if is_pattern(one.base) or is_pattern(other.base):
        alike = _fits(one.base, other.base) or _fits(other.base, one.base)
    else:
        alike = one.base.casefold().rstrip("/") == other.base.casefold().rstrip("/")
    if not alike:
        return False
    wanted, found = dict(one.query), dict(other.query)
    names = wanted.keys() | found.keys()
    return all(_matches(wanted.get(name, ""), found.get(name, "")) for name in names)


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
