"""Addresses as the released package normalises and compares them."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from trajudge.rules.errors import InvalidValue
from trajudge.rules.values import Mode, equal
from trajudge.rules.values.release.web import (
    base_and_query,
    is_ssh,
    normal_address,
    parameters,
    repository,
)
from trajudge.rules.verified.dataset import NetworkCheck, Task, placeholder
from trajudge.rules.verified.network.addresses import ignored, kind_of
from trajudge.rules.verified.network.events import Trace
from trajudge.rules.verified.network.patterns import found_at_start, is_pattern
from trajudge.rules.verified.network.sites import FOLDERS, Binding, Hosts
from trajudge.rules.verified.release import ReleaseError

_BASE64 = re.compile(r"[A-Za-z0-9_-]{4,}={0,2}")


class Address(NamedTuple):
    """The base address with the site's placeholder; the query's values, lower case, sorted."""

    base: str
    query: Mapping[str, tuple[Any, ...]]


def binding_of(task: Task, trace: Trace, hosts: Hosts) -> Binding:
    """Return the task's sites as they are configured, as written.

    Unless all of them are, each takes the origin of the event at its own position instead.
    """
    names = [placeholder(site) for site in task.sites]
    if not all(hosts.get(name) for name in names):
        hosts = _hosts_of(names, trace)
    longest = sorted(names, key=lambda name: -max(map(len, hosts[name])))
    return Binding(tuple((base, name) for name in longest for base in hosts[name]))


def _hosts_of(names: list[str], trace: Trace) -> dict[str, tuple[str, ...]]:
    events = trace.filed
    if not events:
        raise ReleaseError("no event of the trace counts")
    hosts: dict[str, tuple[str, ...]] = {}
    for index, name in enumerate(names):
        try:
            parts = urlsplit(events[min(index, len(events) - 1)].url)
        except ValueError as error:
            raise ReleaseError("an event's address cannot be read") from error
        hosts[name] = (f"{parts.scheme}://{parts.netloc}{FOLDERS.get(name, '')}",)
    return hosts


def bind(text: str, binding: Binding) -> str | None:
    """Return the text with the placeholder wherever a site's address is, of the first site only;
    None if no site's is there."""
    for base, name in binding.bases:
        if base in text:
            return text.replace(base.rstrip("/"), name)
    return None


def bound_text(value: Any, binding: Binding) -> Any:
    """Return a text as the package's values see it: a pattern as it is."""
    if not isinstance(value, str) or "http" not in value or is_pattern(value):
        return value
    return bind(value, binding) or value


def render(text: str, binding: Binding) -> str:
    """Return a text that begins with a site's placeholder with the site's first address."""
    for address, name in binding.bases:
        if text.startswith(name):
            return text.replace(name, address)
    return text


def address(
    url: str,
    check: NetworkCheck,
    binding: Binding,
    query: Mapping[str, Any] | None = None,
    *,
    expected: bool = False,
) -> Address:
    """Return the address in the package's normal form.

    Raises ReleaseError for one that cannot be read, and for an ``expected`` one of no site.
    """
    url = url.strip()
    if not url:
        raise ReleaseError("an empty address")
    if is_pattern(url):
        return Address(url, _query(query or {}, check))
    url = url.rstrip("/")
    if url.startswith("__"):
        url = _placed(render(url, binding), url, expected)
    if is_ssh(url):
        return Address(repository(url), {})
    text = normal_address(url)
    base, own = base_and_query(bind(text, binding) or _placed(text, text, expected))
    if query is None:
        parts = [own] if own else []
        if check.decode_base64_query:
            base, packed = _unpacked(base)
            parts = packed + parts
        query = parameters("&".join(parts))
    return Address(base, _query(query, check))


def _placed(made: str, text: str, expected: bool) -> str:
    """Return what became of an address; of an expected one it must be another text."""
    if expected and made == text:
        raise ReleaseError(f"the specification's address {text[:100]!r} is on no site of the task")
    return made


def _unpacked(base: str) -> tuple[str, list[str]]:
    """Return the path without the segments that are a query in base64, and these queries."""
    place, mark, fragment = base.partition("#")
    head, slashes, rest = place.partition("://")
    start = f"{head}{slashes}" if slashes else ""
    kept, found = [], []
    for segment in (rest if slashes else place).split("/"):
        query = _decoded(segment)
        if query is None:
            kept.append(segment)
        else:
            found.append(query)
    slash = "/" if place.endswith("/") else ""
    return start + "/".join(filter(None, kept)) + slash + mark + fragment, found


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
    """Without case, or a pattern of either side from the start, with the sites' addresses in it."""
    if not is_pattern(expected.base) and not is_pattern(actual.base):
        return expected.base.lower().rstrip("/") == actual.base.lower().rstrip("/")
    return _fits(expected.base, actual.base, binding) or _fits(actual.base, expected.base, binding)


def _fits(pattern: str, base: str, binding: Binding) -> bool:
    if not is_pattern(pattern):
        return False
    return found_at_start(f"^{render(pattern[1:-1], binding)}$", render(base, binding))


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
