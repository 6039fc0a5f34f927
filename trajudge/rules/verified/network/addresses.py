"""Addresses of requests, and when one is the specification's.

Normal form: the site's placeholder or scheme and host, then the decoded path without doubled and
trailing slashes; the query apart from it, decoded, as (name, values) in order of names. With
``base64`` the segments of the path that hold an encoded query (the shop's reports do) count as
query. Comparison ignores case, the order of parameters, and parameters without a value.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote

from trajudge.rules.errors import BadSpecification, TooLarge
from trajudge.rules.limits import bounded, unicode_text
from trajudge.rules.values import Mode, equal
from trajudge.rules.values.matching import match_unordered
from trajudge.rules.verified.dataset import NetworkCheck, Schema
from trajudge.rules.verified.network.patterns import fullmatch, is_pattern, searches, with_holes
from trajudge.rules.verified.network.sites import Binding

MAX_URL = 100_000
MAX_PARAMETERS = 1_000
_SLASHES = re.compile(r"(?<!:)/{2,}")
_BASE64 = re.compile(r"[A-Za-z0-9+/_,-]{8,}[=,]{0,2}")

Query = Mapping[str, tuple[Any, ...]]


class Address(NamedTuple):
    """``base`` in normal form; ``raw_base`` still holds encoded queries of the path, ``sent_base``
    the site's own scheme and host."""

    base: str
    query: Query
    raw_base: str
    sent_base: str


def address(url: str, binding: Binding, *, base64_path: bool = False) -> Address:
    """Return the parts of an address. Raises TooLarge for one of more than 100,000 characters."""
    text = unicode_text(bounded(url.strip(), MAX_URL))
    sent = _tidy(text.partition("#")[0].partition("?")[0])
    text = binding.bind(text).partition("#")[0]
    path, _, query = text.partition("?")
    raw = _tidy(path)
    pairs = parameters(query)
    if not base64_path:
        return Address(raw, grouped(pairs), raw, sent)
    base, packed = _unpacked(path)
    return Address(base, grouped([*packed, *pairs]), raw, sent)


def _tidy(path: str) -> str:
    return _SLASHES.sub("/", unquote(path)).rstrip("/")


def _unpacked(path: str) -> tuple[str, list[tuple[str, str]]]:
    """Return the path without the segments that hold a query, and what they hold."""
    kept = []
    pairs = []
    for segment in path.split("/"):
        query = _encoded_query(unquote(segment))
        if query is None:
            kept.append(segment)
        else:
            pairs += parameters(query)
    return _tidy("/".join(kept)), pairs


def _encoded_query(segment: str) -> str | None:
    if not _BASE64.fullmatch(segment):
        return None
    # The shop writes the characters that an address cannot hold as - _ and ,.
    plain = segment.rstrip("=,").translate(str.maketrans("-_,", "+/="))
    try:
        text = base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True).decode()
    except (binascii.Error, ValueError):
        return None
    # The shop also packs the address of the page to go back to, which may have a query of its own.
    name, equals, _ = text.partition("=")
    return text if equals and "://" not in name else None


def parameters(query: str) -> list[tuple[str, str]]:
    """(name, value) pairs, decoded once, in order."""
    try:
        return parse_qsl(query, keep_blank_values=True, max_num_fields=MAX_PARAMETERS)
    except ValueError as error:
        raise TooLarge(f"a query of more than {MAX_PARAMETERS} parameters") from error


def grouped(pairs: Iterable[tuple[str, Any]]) -> dict[str, tuple[Any, ...]]:
    """Values by name, in order."""
    found: dict[str, tuple[Any, ...]] = {}
    for name, value in pairs:
        found[name] = (*found.get(name, ()), value)
    return found


def same_base(expected: str, actual: Address) -> bool:
    """Tell whether an address's base is the specification's: a text, a pattern, a text with holes.

    Raises Undecided.
    """
    if is_pattern(expected):
        # A pattern that names no site may spell out the scheme and the host.
        spelt = () if "__" in expected else (actual.sent_base,)
        bases = dict.fromkeys((actual.base, actual.raw_base, *spelt))
        return any(fullmatch(expected, base) or fullmatch(expected, base + "/") for base in bases)
    if (pattern := with_holes(expected)) is not None:
        return fullmatch(pattern, actual.base)
    wanted = _expected_base(expected)
    return wanted in (actual.base.casefold(), actual.raw_base.casefold())


@lru_cache(maxsize=4096)
def _expected_base(url: str) -> str:
    return _tidy(url.partition("#")[0].partition("?")[0]).casefold()


def expected_query(url: str, check: NetworkCheck) -> Query:
    """Return the parameters that the specification asks for: its own list, else those of its
    address."""
    if check.expected.query_params is not None:
        listed = check.expected.query_params.items()
        return {
            name: tuple(values) if isinstance(values, tuple) else (values,)
            for name, values in listed
        }
    if is_pattern(url):
        return {}
    base_and_query = url.partition("#")[0]
    if check.decode_base64_query:
        return address(url, Binding(()), base64_path=True).query
    return grouped(parameters(base_and_query.partition("?")[2]))


def ignored(name: str, check: NetworkCheck) -> bool:
    """Tell whether a parameter is not compared. Raises BadPattern, TooSlow."""
    if name in check.ignored_query_params:
        return True
    return any(searches(pattern, name) for pattern in check.ignored_query_params_patterns)


def differing(expected: Query, actual: Query, check: NetworkCheck) -> list[str]:
    """Return the names of the parameters that differ, in order; none if the queries are the same.

    Repeated parameters are compared as a whole, in any order. Raises Undecided if none differs for
    certain and one cannot be told, or it cannot be told which are compared.
    """
    held = {
        name: _same_values(
            expected.get(name, ()), actual.get(name, ()), kind_of(check.query_params_schema, name)
        )
        for name in dict.fromkeys([*expected, *actual])
        if not ignored(name, check)
    }
    differ = [name for name, same in held.items() if same is False]
    left_open = [name for name, same in held.items() if same is None]
    if left_open and not differ:
        raise BadSpecification(f"nothing can be held against the specification's {left_open[0]}")
    return differ


def kind_of(schema: Schema | None, name: str) -> str:
    """Return the kind of a field: the ``format`` or ``type`` of its property, or of its items."""
    declared = ((schema or {}).get("properties") or {}).get(name) or {}
    if declared.get("type") == "array":
        declared = declared.get("items") or {}
    return str(declared.get("format") or declared.get("type") or "string")


def _same_values(expected: tuple[Any, ...], actual: tuple[Any, ...], kind: str) -> bool | None:
    wanted = [value for value in expected if value not in ("", None)]
    found = [value for value in actual if value not in ("", None)]
    if wanted and all(is_pattern(value) for value in wanted):
        # A pattern may allow nothing: it is asked even if the parameter is missing.
        found = found or [""] * len(wanted)
    return match_unordered(wanted, found, lambda one, other: _same(kind, one, other)).equal


def _same(kind: str, expected: Any, actual: Any) -> bool | None:
    if kind == "string" and isinstance(expected, str) and not is_pattern(expected):
        if " ".join(expected.split()).casefold() == " ".join(str(actual).split()).casefold():
            return True
        # Some recorders and some specifications encode a value once more than others.
        return unquote(expected).casefold() == unquote(str(actual)).casefold()
    return equal(kind, expected, actual, mode=Mode.SOUND).equal
