"""Addresses as the released package normalises and compares them."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote

from trajudge.rules.errors import InvalidValue
from trajudge.rules.values import Mode, equal
from trajudge.rules.values.release.places import normal_path
from trajudge.rules.verified.dataset import NetworkCheck, Task, placeholder
from trajudge.rules.verified.network.addresses import ignored, kind_of
from trajudge.rules.verified.network.events import Trace
from trajudge.rules.verified.network.patterns import found_at_start, is_pattern
from trajudge.rules.verified.network.sites import FOLDERS, Binding, Hosts, canonical, origin
from trajudge.rules.verified.release import ReleaseError

_ADDRESS = re.compile(r"([^/?#]*://[^/?#]*|__[A-Z_]+__)([^?#]*)(.*)", re.DOTALL)
_BASE64 = re.compile(r"[A-Za-z0-9_-]{4,}={0,2}")


class Address(NamedTuple):
    """The base address with the site's placeholder; the query's values, lower case, sorted."""

    base: str
    query: Mapping[str, tuple[Any, ...]]


def binding_of(task: Task, trace: Trace, hosts: Hosts) -> Binding:
    """Return a site that is not configured takes the origin of the event at its own position."""
    names = [placeholder(site) for site in task.sites]
    events = trace.relevant
    if not events:
        raise ReleaseError("no event of the trace counts")
    pairs = []
    for index, name in enumerate(names):
        bases = hosts.get(name) or ()
        if not bases:
            start = origin(events[min(index, len(events) - 1)].url)
            bases = (start + FOLDERS.get(name, ""),)
        pairs += [(canonical(base).rstrip("/"), name) for base in bases]
    return Binding(tuple(sorted(pairs, key=lambda pair: -len(pair[0]))))


def bind(url: str, binding: Binding) -> str:
    """Return a site's address anywhere in the text gives way to the placeholder."""
    for base, name in binding.bases:
        if base in url:
            return url.replace(base, name)
    return url


def render(base: str, binding: Binding) -> str:
    """Return a leading placeholder as the address of its site."""
    for address, name in binding.bases:
        if base.startswith(name):
            return address + base[len(name) :]
    return base


def address(
    url: str, check: NetworkCheck, binding: Binding, query: Mapping[str, Any] | None = None
) -> Address:
    """Return the address in the package's normal form. Raises ReleaseError."""
    if is_pattern(url):
        return Address(url, _query(query or {}, check))
    text = bind(_normal(canonical(url.strip().rstrip("/"))), binding)
    text, _, fragment = text.partition("#")
    path, _, own = text.partition("?")
    parts: list[str] = []
    if check.decode_base64_query and query is None:
        path, parts = _unpacked(path)
    if query is None:
        parts += [own.strip()] if own else []
        try:
            values = parse_qs("&".join(parts), keep_blank_values=True, max_num_fields=1000)
        except ValueError as error:
            raise ReleaseError(f"a query of too many parameters: {error}") from error
        query = {unquote(name): tuple(map(unquote, found)) for name, found in values.items()}
    return Address(path + (f"#{fragment}" if fragment else ""), _query(query, check))


def _normal(url: str) -> str:
    """Return an address with its path in normal form."""
    parts = _ADDRESS.fullmatch(url)
    return f"{parts[1]}{normal_path(parts[2])}{parts[3]}" if parts else url


def _unpacked(path: str) -> tuple[str, list[str]]:
    """Return the path without the segments that are a query in base64, and these queries."""
    head, slashes, rest = path.partition("://")
    kept, found = [], []
    for segment in (rest if slashes else path).split("/"):
        query = _decoded(segment)
        if query is None:
            kept.append(segment)
        else:
            found.append(query)
    return f"{head}{slashes}" * bool(slashes) + "/".join(part for part in kept if part), found


def _decoded(segment: str) -> str | None:
    if not _BASE64.fullmatch(segment):
        return None
    try:
        text = base64.urlsafe_b64decode(segment + "=" * (-len(segment) % 4)).decode()
    except (binascii.Error, ValueError):
        return None
    query = unquote(text).strip()
    return query.lstrip("?&") if "=" in text and query else None


def _query(query: Mapping[str, Any], check: NetworkCheck) -> dict[str, tuple[Any, ...]]:
    kept = {}
    for name, values in query.items():
        listed = (values,) if isinstance(values, str) else tuple(values)
        if not ignored(name, check):
            lowered = (
                value.lower().strip() if isinstance(value, str) else value for value in listed
            )
            kept[name] = tuple(sorted(lowered, key=str))
    return kept


def same_base(expected: Address, actual: Address, binding: Binding) -> bool:
    """Without case, or the pattern from the start, with the sites' addresses in it."""
    if not is_pattern(expected.base):
        return expected.base.lower().rstrip("/") == actual.base.lower().rstrip("/")
    pattern = f"^{render(expected.base[1:-1], binding)}$"
    return found_at_start(pattern, render(actual.base, binding))


def same_query(expected: Address, actual: Address, check: NetworkCheck) -> bool:
    """Return the first value of every parameter of either side; missing is empty."""
    for name in expected.query.keys() | actual.query.keys():
        wanted = next(iter(expected.query.get(name, ())), "") or ""
        found = next(iter(actual.query.get(name, ())), "") or ""
        if is_pattern(wanted):
            if not found_at_start(wanted, str(found)):
                return False
        elif wanted != found:
            kind = kind_of(check.query_params_schema, name)
            if (
                not check.query_params_schema
                or not equal(kind, wanted, found, mode=Mode.RELEASE).equal
            ):
                return False
    return True


def matches(expected: Address, actual: Address, check: NetworkCheck, binding: Binding) -> bool:
    """Split into base and query. Raises ReleaseError for a pattern that is none."""
    try:
        return same_base(expected, actual, binding) and same_query(expected, actual, check)
    except InvalidValue as error:
        raise ReleaseError(str(error)) from error
