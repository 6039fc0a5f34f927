"""Compare the requests and responses of a run with the task's checks (the sound mode)."""

from __future__ import annotations

import base64
import binascii
import json
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec
from msgspec import Struct, field

from trajudge.rules.files import decode, json_or_text, json_value, read_bytes
from trajudge.rules.har import (
    Body,
    Entry,
    Flaw,
    Pair,
    Resources,
    in_time_order,
    is_static,
    pairs_of,
    read_recording,
    typed_entries,
    whole_body,
    written_body,
)
from trajudge.rules.limits import (
    PATTERN_SECONDS,
    BadPattern,
    BadSpecification,
    InvalidValue,
    TooLarge,
    Undecided,
    bounded,
    bounded_json,
    compiled,
    fullmatch,
    is_pattern,
    timed,
    unicode_text,
)
from trajudge.rules.values import Mode, equal
from trajudge.rules.values.compare import match_unordered
from trajudge.rules.verdict import Assertion, Outcome, checked, conjunction, decided, shown
from trajudge.rules.verified.tasks import NetworkCheck, Schema, Task, placeholder, placeholders
from trajudge.util.errors import UserError

Hosts = Mapping[str, tuple[str, ...]]
"""Placeholder (``__GITLAB__``) → the addresses of the site."""

# Ports of the benchmark's own containers, the only guess for a trace without a configuration.
DEFAULT_PORTS = {
    "__SHOPPING__": 7770,
    "__SHOPPING_ADMIN__": 7780,
    "__REDDIT__": 9999,
    "__GITLAB__": 8023,
    "__WIKIPEDIA__": 8888,
    "__MAP__": 3000,
    "__HOMEPAGE__": 4399,
}

# The administration of the shop is a path of the shop's host.
FOLDERS = {"__SHOPPING_ADMIN__": "/admin"}
_STANDARD = {"http": 80, "https": 443}
_AFTER_HOST = r"(?=[/?#\s\"'<>)\]},;]|\Z)"


class Binding(NamedTuple):
    """(address without trailing slash, placeholder) pairs, the longest address first.

    ``inferred`` are the pairs inferred from a port; ``unknown`` are the placeholders of sites
    without an address.
    """

    bases: tuple[tuple[str, str], ...]
    inferred: tuple[tuple[str, str], ...] = ()
    unknown: tuple[str, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """One sentence on every site whose address was inferred."""
        return tuple(
            f"{named(name)} is taken to be {base}, by its port: --site {named(name)}=URL says it"
            for base, name in self.inferred
        )

    def bind(self, url: str) -> str:
        """Replace a site's address at the start of an address by the site's placeholder."""
        plain = canonical(url)
        lower = plain.lower()
        for base, name in self.bases:
            if lower.startswith(base) and (len(plain) == len(base) or plain[len(base)] in "/?#"):
                return name + plain[len(base) :]
        return plain

    def bind_text(self, text: str) -> str:
        """Replace every address of a site in a text by the site's placeholder."""
        if "://" not in text:
            return text
        for base, name in self.bases:
            text = _anywhere(base).sub(name, text)
        return text


@lru_cache(maxsize=256)
def _anywhere(base: str) -> re.Pattern[str]:
    return re.compile(re.escape(base) + _AFTER_HOST, re.IGNORECASE)


def origin(url: str) -> str:
    """Return scheme and host in lower case, without a default port; "" if it is not a web
    address."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return ""
    if parts.scheme not in _STANDARD or not parts.hostname:
        return ""
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    suffix = "" if port in (None, _STANDARD[parts.scheme]) else f":{port}"
    return f"{parts.scheme}://{host}{suffix}"


def canonical(url: str) -> str:
    """Return the address with its origin in normal form; any other text unchanged."""
    end = _origin_end(url)
    start = _cached_origin(url[:end])
    return start + url[end:] if start else url


_cached_origin = lru_cache(maxsize=4096)(origin)


def _origin_end(url: str) -> int:
    slashes = url.find("://")
    if slashes < 0:
        return 0
    ends = (url.find(char, slashes + 3) for char in "/?#")
    return min((end for end in ends if end >= 0), default=len(url))


def bound(names: Iterable[str], hosts: Hosts, loaded: Sequence[str]) -> Binding:
    """Return the binding of the named sites (placeholders), configured or inferred from a trace.

    ``loaded`` are the origins of the pages that the run loaded. A site that is not configured is
    the only origin among them on the benchmark's port for it. Without one, or with several, the
    site stays unknown, because any other guess might take the pages of a foreign site for the
    task's. A trace whose addresses already have placeholders (``__GITLAB__`` among ``loaded``)
    needs no address.
    """
    expected = list(dict.fromkeys(names))
    pairs = [
        (canonical(base).lower().rstrip("/"), name)
        for name in expected
        for base in hosts.get(name, ())
    ]
    left = [name for name in expected if not hosts.get(name) and name not in loaded]
    taken = {origin(base) for base, _ in pairs}
    free = [start for start in dict.fromkeys(loaded) if start not in taken]
    usual = {name: _on_usual_port(name, free) for name in left}
    inferred = [
        (actual[0] + FOLDERS.get(name, ""), name)
        for name, actual in usual.items()
        if len(actual) == 1
    ]
    return Binding(
        tuple(sorted([*pairs, *inferred], key=lambda pair: -len(pair[0]))),
        tuple(inferred),
        tuple(name for name, actual in usual.items() if len(actual) != 1),
    )


def _on_usual_port(name: str, origins: Sequence[str]) -> list[str]:
    port = DEFAULT_PORTS.get(name)
    return [start for start in origins if port is not None and start.endswith(f":{port}")]


def start_of(url: str) -> str:
    """Return the origin of an address, or the placeholder that it begins with; else ""."""
    if url.startswith("__"):
        return url.partition("/")[0]
    return origin(url)


def named(name: str) -> str:
    """Return ``shopping_admin`` for ``__SHOPPING_ADMIN__``."""
    return name.strip("_").lower()


class _Environment(Struct):
    urls: tuple[str, ...]


class _Configuration(Struct):
    environments: dict[str, _Environment] = field(default_factory=dict)


def load_hosts(path: Path) -> dict[str, tuple[str, ...]]:
    """Return the sites' addresses of a configuration file (``environments`` → ``urls``), as the
    released package reads it. Raises UserError."""
    configuration: _Configuration = decode(read_bytes(path), _Configuration, path)
    return {
        _named(name, path): tuple(_address(url, path) for url in environment.urls)
        for name, environment in configuration.environments.items()
    }


def hosts_of_options(file: Path | None, given: Sequence[str], tasks: Iterable[object]) -> Hosts:
    """Read the addresses of ``--sites`` and ``--site``. Raises UserError, also for an unknown
    site (neither the benchmark's nor in ``--sites`` nor in a task), whose address would have no
    effect."""
    hosts = load_hosts(file) if file else {}
    known = {*hosts, *_sites_named(tasks)} if given else set()
    for text in given:
        name, url = parse_host(text)
        if name not in known:
            sites = ", ".join(sorted(map(named, known)))
            raise UserError(f"--site {text}: no task has such a site: use one of {sites}")
        hosts[name] = (*hosts.get(name, ()), url)
    return hosts


def _sites_named(tasks: Iterable[object]) -> set[str]:
    """Return the placeholders of the benchmark's sites and of the sites in the tasks."""
    names = set(DEFAULT_PORTS)
    for task in tasks:
        names.update(map(placeholder, getattr(task, "sites", ())))
        names |= placeholders(msgspec.json.encode(task).decode())
    return names


def parse_host(text: str) -> tuple[str, str]:
    """Parse ``SITE=URL`` into placeholder and address. Raises UserError."""
    site, equals, url = text.partition("=")
    if not equals:
        raise UserError(f"--site {text}: write SITE=URL, such as gitlab=http://localhost:8023")
    return _named(site, "--site"), _address(url, "--site")


def _named(site: str, where: object) -> str:
    name = placeholder(site.strip("_"))
    if not re.fullmatch(r"__[A-Z][A-Z0-9_]*__", name):
        raise UserError(f"{where}: {site!r} is not a site's name: use letters, such as gitlab")
    return name


def _address(url: str, where: object) -> str:
    if not origin(url):
        raise UserError(f"{where}: {url!r} is not an address: write http://HOST or https://HOST")
    return url


HOLE = re.compile(r"\{\{\w+\}\}")
"""A part of a template that the published specification left unfilled: any one path segment."""


@lru_cache(maxsize=65_536)
def searches(pattern: str, text: str) -> bool:
    """Return True if the pattern matches anywhere, ignoring case. Raises BadPattern, TooSlow."""
    return timed(compiled(pattern, int(re.IGNORECASE)).search, pattern, text, PATTERN_SECONDS)


def matches_start(pattern: str, text: str, *, flags: int = 0) -> bool:
    """Return True if the pattern matches at the start (``re.match``). Raises BadPattern,
    TooSlow."""
    return timed(compiled(pattern, flags).match, pattern, text, PATTERN_SECONDS)


def with_holes(text: str) -> str | None:
    """Return a pattern for a text with unfilled template parts; None for a text without any."""
    if not HOLE.search(text):
        return None
    parts = HOLE.split(text)
    return f"^{r'[^/?#]+'.join(re.escape(part) for part in parts)}$"


_LITERAL = r"""'[^']*'|"[^"]*"|-?\d+(?:\.\d+)?|true|false|null"""
_FIELD = r"\.[\w-]+(?:\.[\w-]+|\[\d{1,6}\])*"
_COMPARISON = rf"@({_FIELD})\s*(==|!=|<=|>=|<|>)\s*({_LITERAL})"
_ANY_COMPARISON = re.sub(r"\((?!\?)", "(?:", _COMPARISON)

_STEP = re.compile(
    rf"""\.(?P<name>[\w-]+|\*)
      | \[\s*(?P<quoted>'[^']*'|"[^"]*")\s*\]
      | \[\s*(?P<position>-?\d{{1,6}}|\*)\s*\]
      | \[\?\(\s*(?P<filter>{_ANY_COMPARISON}(?:\s*&&\s*{_ANY_COMPARISON})*)\s*\)\]""",
    re.VERBOSE,
)

_EACH_COMPARISON = re.compile(_COMPARISON)

_SIGNS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

_WORDS = {"true": True, "false": False, "null": None}
MAX_FOUND = 10_000


class PathFilter(NamedTuple):
    """``[?(@.a sign value)]``; ``path`` is ``.a`` or deeper (``.a[0].b``); ``also`` are further
    comparisons that must hold (``&&``)."""

    path: str
    sign: str
    value: Any
    also: tuple[PathFilter, ...] = ()


Step: TypeAlias = str | int | PathFilter
EVERY = "*"


class JsonPath(NamedTuple):
    """The steps of a path; ``several`` if it may match more than one value."""

    steps: tuple[Step, ...]
    several: bool


@lru_cache(maxsize=1024)
def json_path(path: str) -> JsonPath:
    """Parse a path that begins with ``$``. Raises BadPattern for any other text."""
    if not path.startswith("$"):
        raise BadPattern(f"the path {path[:60]!r} does not begin with $")
    steps: list[Step] = []
    at = 1
    while at < len(path):
        step = _STEP.match(path, at)
        if step is None:
            raise BadPattern(f"the path {path[:60]!r} is not understood at {path[at : at + 20]!r}")
        steps.append(_step(step))
        at = step.end()
    several = any(step == EVERY or isinstance(step, PathFilter) for step in steps)
    return JsonPath(tuple(steps), several)


def _step(match: re.Match[str]) -> Step:
    if match["filter"]:
        first, *others = (
            PathFilter(found[1], found[2], _literal(found[3]))
            for found in _EACH_COMPARISON.finditer(match["filter"])
        )
        return first._replace(also=tuple(others))
    if match["quoted"]:
        return match["quoted"][1:-1]
    if match["position"] and match["position"] != EVERY:
        return int(match["position"])
    return match["name"] or EVERY


def _literal(text: str) -> Any:
    if text in _WORDS:
        return _WORDS[text]
    if text[0] in "'\"":
        return text[1:-1]
    return float(text) if "." in text else int(text)


def find(path: str, data: Any) -> list[Any]:
    """Return the values at a path, in order. Raises BadPattern."""
    found = [data]
    for step in json_path(path).steps:
        found = [value for item in found for value in _follow(step, item)][:MAX_FOUND]
    return found


def _follow(step: Step, item: Any) -> Iterator[Any]:
    if isinstance(step, PathFilter):
        yield from (value for value in _items(item) if _holds(step, value))
    elif step == EVERY:
        yield from _items(item)
    elif isinstance(step, int):
        if isinstance(item, list) and -len(item) <= step < len(item):
            yield item[step]
    elif isinstance(item, dict) and step in item:
        yield item[step]


def _items(item: Any) -> Iterator[Any]:
    if isinstance(item, dict):
        yield from item.values()
    elif isinstance(item, list):
        yield from item


def _holds(step: PathFilter, item: Any) -> bool:
    there = find(f"${step.path}", item) if isinstance(item, dict) else []
    try:
        held = bool(there) and _SIGNS[step.sign](there[0], step.value)
    except TypeError:
        return False
    return held and all(_holds(other, item) for other in step.also)


MAX_FIELDS = 10_000
_BOUNDARY = re.compile(r"boundary=(?:\"([^\"]+)\"|([^;\s]+))", re.IGNORECASE)
_RELEASE_BOUNDARY = re.compile(r"boundary=([^;\s]+)")
_RELEASE_NAME = re.compile(r'name="([^"]+)"')
_DISPOSITION = "content-disposition:"
_NAME = re.compile(r"[;\s]name=\"([^\"]*)\"", re.IGNORECASE)


def document(body: Body | None, mode: Mode = Mode.SOUND) -> Any:
    """Parse a body: an object of fields for a form, the value of a JSON document, None for other
    bodies.

    As in servers of the PHP and Rails families, a repeated field of a form has its last value, and
    a list of all values if its name ends in ``[]``; the release's mode has the first value of a
    form and the last of a multipart message. Bodies without a content type are parsed as JSON if
    possible.
    """
    if body is None:
        return None
    kind = body.mime_type if mode is Mode.RELEASE else body.mime_type.lower()
    if body.text is None and body.params and mode is Mode.SOUND:
        return _fields([(pair.name, pair.value or "") for pair in body.params], mode)
    text = body.text or ""
    if "application/x-www-form-urlencoded" in kind:
        return _form(text, mode)
    if "multipart/form-data" in kind:
        if mode is Mode.RELEASE:
            return _release_multipart(text, kind)
        return _multipart_fields(text, body.mime_type)
    return _json(text, mode) if "application/json" in kind or mode is Mode.SOUND else None


def _json(text: str, mode: Mode) -> Any:
    try:
        value = json_value(text) if mode is Mode.SOUND else json.loads(text)
        bounded_json(value)
    except (ValueError, InvalidValue, RecursionError):
        return None
    return value if isinstance(value, dict) or mode is Mode.SOUND else None


def _form(text: str, mode: Mode) -> dict[str, Any] | None:
    if not text:
        return None
    try:
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=MAX_FIELDS)
    except ValueError:
        return None
    return _fields(pairs, mode)


def _fields(pairs: list[tuple[str, str]], mode: Mode) -> dict[str, Any]:
    results: dict[str, list[str]] = {}
    for name, value in pairs:
        results.setdefault(name, []).append(value)
    if mode is Mode.RELEASE:
        return {name: values[0] for name, values in results.items()}
    return {
        name: values if name.endswith("[]") and len(values) > 1 else values[-1]
        for name, values in results.items()
    }


def _multipart_fields(text: str, mime_type: str) -> dict[str, Any] | None:
    boundary = _BOUNDARY.search(mime_type)
    if boundary is None:
        return None
    return _fields(_multipart(text, boundary[1] or boundary[2]), Mode.SOUND)


def _release_multipart(text: str, mime_type: str) -> dict[str, str] | None:
    """Return the last value of each field; a blank value removes its field."""
    boundary = _RELEASE_BOUNDARY.search(mime_type)
    if boundary is None or not text:
        return None
    results = {}
    for part in map(str.strip, text.split(f"--{boundary[1]}")[: MAX_FIELDS + 1]):
        blank = "\r\n\r\n" if "\r\n\r\n" in part else "\n\n"
        head, separator, value = part.partition(blank)
        lines = [line for line in head.split("\r\n") if line.lower().startswith(_DISPOSITION)]
        name = _RELEASE_NAME.search(lines[0]) if separator and lines else None
        if name:
            results[name[1]] = value.rstrip("\r\n")
    return results


def _multipart(text: str, boundary: str) -> list[tuple[str, str]]:
    pairs = []
    for part in text.split(f"--{boundary}")[1 : MAX_FIELDS + 1]:
        head, blank, value = part.replace("\r\n", "\n").lstrip("\n").partition("\n\n")
        name = _NAME.search(head)
        if blank and name:
            pairs.append((name[1], value.rstrip("\n")))
    return pairs


def unpacked(value: Any) -> Any:
    """Return the data with every text that is a JSON document parsed."""
    if isinstance(value, dict):
        return {name: _opened(item) for name, item in value.items()}
    if isinstance(value, list):
        return [unpacked(item) for item in value]
    return value


def _opened(value: Any) -> Any:
    if not isinstance(value, str):
        return unpacked(value)
    if not value[:1].strip():
        return value
    return json_or_text(value)


MAX_URL = 100_000
MAX_PARAMETERS = 1_000
_SLASHES = re.compile(r"(?<!:)/{2,}")
_BASE64 = re.compile(r"[A-Za-z0-9+/_,-]{8,}[=,]{0,2}")
Query = Mapping[str, tuple[Any, ...]]


class Address(NamedTuple):
    """An address: ``base`` in normal form; ``raw_base`` keeps encoded queries in the path,
    ``sent_base`` the site's own scheme and host."""

    base: str
    query: Query
    raw_base: str
    sent_base: str


def address(url: str, binding: Binding, *, base64_path: bool = False) -> Address:
    """Parse an address. Raises TooLarge for more than 100,000 characters."""
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
    """Return the path without the segments that encode a query, and these queries."""
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
    """Return (name, value) pairs, decoded once, in order."""
    try:
        return parse_qsl(query, keep_blank_values=True, max_num_fields=MAX_PARAMETERS)
    except ValueError as error:
        raise TooLarge(f"a query of more than {MAX_PARAMETERS} parameters") from error


def grouped(pairs: Iterable[tuple[str, Any]]) -> dict[str, tuple[Any, ...]]:
    """Group values by name, in order."""
    results: dict[str, tuple[Any, ...]] = {}
    for name, value in pairs:
        results[name] = (*results.get(name, ()), value)
    return results


def same_base(expected: str, actual: Address) -> bool:
    """Return True if an address's base matches the specification's: a text, a pattern, or a text
    with unfilled parts.

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
    """Return the expected parameters: the specification's own list, else those of its address."""
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
    """Return True if a parameter is not compared. Raises BadPattern, TooSlow."""
    if name in check.ignored_query_params:
        return True
    return any(searches(pattern, name) for pattern in check.ignored_query_params_patterns)


def differing(expected: Query, actual: Query, check: NetworkCheck) -> list[str]:
    """Return the names of the parameters that differ, in order; empty for equal queries.

    Repeated parameters are compared as a whole, in any order. Raises Undecided if none certainly
    differs and one cannot be decided, or if the set of compared parameters is undecided.
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
        # A pattern may match the empty text: it is applied even if the parameter is missing.
        found = found or [""] * len(wanted)
    return match_unordered(wanted, found, lambda one, other: _same(kind, one, other)).equal


def _same(kind: str, expected: Any, actual: Any) -> bool | None:
    if kind == "string" and isinstance(expected, str) and not is_pattern(expected):
        if " ".join(expected.split()).casefold() == " ".join(str(actual).split()).casefold():
            return True
        # Some recorders and some specifications encode a value twice.
        return unquote(expected).casefold() == unquote(str(actual)).casefold()
    return equal(kind, expected, actual, mode=Mode.SOUND).equal


class Event(Struct, dict=True):
    """A request and its response, with the fields that checks read."""

    entry: Entry
    resources: Resources | None = None

    @cached_property
    def method(self) -> str:
        """In upper case."""
        return self.entry.request.method.upper()

    @property
    def url(self) -> str:
        """As it was sent."""
        return self.entry.request.url

    @property
    def status(self) -> int | None:
        """None if the response was not recorded; HAR has -1 for an aborted request."""
        status = self.entry.response.status
        return None if status is None else int(status)

    @cached_property
    def headers(self) -> dict[str, str]:
        """Request headers by lower-case name; of a repeated one the last."""
        return {
            pair.name.lower(): pair.value or "" for pair in pairs_of(self.entry.request.headers)
        }

    @cached_property
    def response_headers(self) -> tuple[Pair, ...]:
        """Response headers, in order."""
        return pairs_of(self.entry.response.headers)

    @cached_property
    def listed_cookies(self) -> dict[str, str]:
        """Decoded cookies that the recorder listed for the response."""
        pairs = pairs_of(self.entry.response.cookies)
        return {pair.name: unquote(pair.value or "") for pair in pairs}

    @cached_property
    def cookies(self) -> dict[str, str]:
        """Decoded cookies of the response, including those in its headers."""
        results = {}
        for pair in self.response_headers:
            if pair.name.lower() == "set-cookie":
                for line in (pair.value or "").splitlines():
                    name, _, value = line.partition(";")[0].partition("=")
                    results[name.strip()] = unquote(value)
        return results | self.listed_cookies

    @cached_property
    def post_data(self) -> Body | None:
        """The request body. Its text is None if it was not recorded, for which Playwright writes
        a blank text."""
        body = whole_body(self.entry.request.post_data, self.resources)
        if body is None or body.text or not (body.params or self._sent_bytes):
            return body
        return msgspec.structs.replace(body, text=None)

    @property
    def post_recorded(self) -> bool:
        """Whether the trace has the request body, or the request had none."""
        body = self.post_data
        return not self._sent_bytes if body is None else body.text is not None or bool(body.params)

    @property
    def _sent_bytes(self) -> bool:
        """Whether a body was sent, by its length."""
        length = self.headers.get("content-length", "").strip()
        size = self.entry.request.body_size
        return (length.isdecimal() and int(length[:20]) > 0) or (isinstance(size, int) and size > 0)

    @property
    def written_post_data(self) -> Body | None:
        """The request body as far as the entry itself has it."""
        return written_body(self.entry.request.post_data)

    @cached_property
    def content(self) -> Body | None:
        """The response body, if it was recorded."""
        return whole_body(self.entry.response.content, self.resources)

    @property
    def written_content(self) -> Body | None:
        """The response body as far as the entry itself has it."""
        return written_body(self.entry.response.content)

    def is_document(self) -> bool:
        """Return True if the request loaded a page into the tab, not a frame or a script's data.

        Decided by ``Sec-Fetch-Dest`` or the recorder's resource type if present; otherwise by a
        request for HTML that is not a script's.
        """
        if self.method != "GET":
            return False
        headers = self.headers
        if destination := headers.get("sec-fetch-dest"):
            return destination.strip().lower() == "document"
        if self.entry.resource_type:
            return self.entry.resource_type.lower() == "document"
        asked = headers.get("accept", "").lower().lstrip().startswith("text/html")
        return asked and headers.get("x-requested-with", "").lower() != "xmlhttprequest"

    def is_release_navigation(self) -> bool:
        """Return True for a page load according to the released package."""
        if self.entry.request.method != "GET":
            return False
        headers = {name: value.lower() for name, value in self.headers.items()}
        accept = headers.get("accept", "")
        if "sec-fetch-user" not in headers:
            return accept.startswith("text/html")
        fetch = tuple(headers.get(f"sec-fetch-{part}") for part in ("dest", "mode", "user"))
        return fetch == ("document", "navigate", "?1") and "text/html" in accept


class Trace(Struct, dict=True):
    """The events of a run in file order, and the entries that cannot be read.

    The events for the sound mode (``relevant``, ``documents``, ``tabs``) are in the order in which
    the requests were sent; the released package uses file order (``filed``).
    """

    events: tuple[Event, ...]
    source: str = "trace"
    flaws: tuple[Flaw, ...] = ()

    @cached_property
    def filed(self) -> tuple[Event, ...]:
        """Without styles, scripts, images and fonts, in file order."""
        return tuple(event for event in self.events if not is_static(event.entry.request.url))

    @cached_property
    def relevant(self) -> tuple[Event, ...]:
        """Without styles, scripts, images and fonts, in the order in which they were sent."""
        order = in_time_order([event.entry for event in self.filed])
        return tuple(self.filed[at] for at in order)

    @cached_property
    def tabs(self) -> tuple[tuple[Event, ...], ...]:
        """``relevant`` by tab. A trace that names at most one tab has one."""
        tabs: dict[str, list[Event]] = {}
        for event in self.relevant:
            tabs.setdefault(str(event.entry.page or ""), []).append(event)
        return tuple(map(tuple, tabs.values())) if len(tabs.keys() - {""}) > 1 else (self.relevant,)

    @cached_property
    def documents(self) -> tuple[Event, ...]:
        """The page loads."""
        return tuple(event for event in self.relevant if event.is_document())

    @cached_property
    def release_navigations(self) -> tuple[Event, ...]:
        """The page loads according to the released package."""
        return tuple(event for event in self.filed if event.is_release_navigation())

    @cached_property
    def memory(self) -> dict[Any, Any]:
        """Cached results of checks by (event, question)."""
        return {}


class RequestKind(StrEnum):
    """``document`` loads a page, ``form`` submits one, ``script`` is sent by a page's script."""

    DOCUMENT = "document"
    FORM = "form"
    SCRIPT = "script"


class Declaration(NamedTuple):
    """The kinds of requests with a method to a site's addresses that begin with ``path``.

    ``path`` is a pattern; without a ``site`` it may match anywhere in an address, because the
    service has its own host. The first kind is the usual one. Requests that differ in ``part`` are
    about different parts of a page. ``carrier`` parameters only identify the way in which a page
    was fetched.
    """

    site: str
    methods: tuple[str, ...]
    path: str
    kinds: tuple[RequestKind, ...]
    reason: str
    part: str = ""
    carrier: str = ""

    @property
    def in_place(self) -> bool:
        """Whether a script may change the tab's address to it, as a page load would."""
        return {RequestKind.DOCUMENT, RequestKind.SCRIPT} <= {*self.kinds}

    @property
    def scripted(self) -> bool:
        """Whether only scripts request the address."""
        return self.kinds == (RequestKind.SCRIPT,)


_GET, _POST, _ANY = ("GET",), ("POST",), ("GET", "POST", "PUT", "PATCH", "DELETE")
_SCRIPT, _FORM = (RequestKind.SCRIPT,), (RequestKind.FORM,)
_VIEW = (RequestKind.DOCUMENT, RequestKind.SCRIPT)

DECLARATIONS = (
    Declaration(
        "__SHOPPING_ADMIN__",
        _GET,
        r"/mui/index/render",
        _SCRIPT,
        "A list asks for its rows when its page has been loaded and whenever a filter changes; the "
        "page stays. One page holds several lists, of different namespaces.",
        part="namespace",
    ),
    Declaration(
        "__SHOPPING_ADMIN__",
        _POST,
        r"/mui/bookmark/save",
        _SCRIPT,
        "A list stores its filters when they have been applied.",
    ),
    Declaration(
        "__SHOPPING_ADMIN__",
        _POST,
        r"/sales/order/addComment/",
        _SCRIPT,
        "The comments of an order are sent and shown anew in their place: the reply is 200.",
    ),
    Declaration(
        "__SHOPPING_ADMIN__",
        _POST,
        r"/(?:catalog|sales|cms|review|admin|customer|catalog_rule|sales_rule)/",
        _FORM,
        "The pages that edit a record post their form and are sent on by a 302.",
    ),
    Declaration(
        "__SHOPPING__",
        _ANY,
        r"/rest/",
        _SCRIPT,
        "The checkout runs in one page, which calls the shop's interface for programs.",
    ),
    Declaration(
        "__SHOPPING__",
        _GET,
        r"/customer/section/load",
        _SCRIPT,
        "Pages are the same for all customers; cart, name and messages are fetched into them.",
    ),
    Declaration(
        "__SHOPPING__",
        _POST,
        r"/checkout/cart/add/",
        (RequestKind.SCRIPT, RequestKind.FORM),
        "Product pages add to the cart by a script (200), and by their form where it fails (302).",
    ),
    Declaration(
        "",
        _POST,
        r"/dummy_bin\$?$",
        _FORM,
        "A form that is filled in but not to be sent goes to an address that nothing answers.",
    ),
    Declaration(
        "",
        _GET,
        r"/static/version\d+/.*\.(?:html|json)$",
        _SCRIPT,
        "The shop's pages fetch the templates and the translations of their parts.",
    ),
    Declaration(
        "__GITLAB__",
        _ANY,
        r"/api/(?:v4/|graphql)",
        _SCRIPT,
        "Lists, dialogues and the editor call the interface for programs; the page stays.",
    ),
    Declaration(
        "__GITLAB__",
        _POST,
        r"/users/[^/]+/(?:un)?follow",
        _FORM,
        "The button is a link that is sent as a form, whatever its name ends in: the reply is 302.",
    ),
    Declaration(
        "__GITLAB__",
        _ANY,
        r"/.*(?:\.json|/notes)$",
        _SCRIPT,
        "Stars, comments and the fields beside an issue are sent by the page's scripts.",
    ),
    Declaration(
        "__REDDIT__",
        _POST,
        r"/.*\.json$",
        _SCRIPT,
        "Votes and subscriptions are sent in place; without scripts the same forms have no .json.",
    ),
    Declaration(
        "",
        _GET,
        r"/route/v1/",
        _SCRIPT,
        "The map asks the routing service, then draws the route; the service shows no page.",
    ),
    Declaration(
        "__MAP__",
        _ANY,
        r"/(?:api/0\.6|geocoder|nominatim|osrm)/",
        _SCRIPT,
        "Search results, outlines and routes are fetched into the page that is shown.",
    ),
    Declaration(
        "__MAP__",
        _GET,
        r"/(?:search|query|export|directions|history|(?:node|way|relation|note|changeset)/[^/]+)",
        _VIEW,
        "Links within the map are followed by a script that fetches the side bar and sets the "
        "address; the same addresses are documents when they are opened as such.",
        carrier="xhr",
    ),
)


@lru_cache(maxsize=16_384)
def declared(method: str, url: str) -> Declaration | None:
    """Return the declaration of an address that begins with its site's placeholder, or of a
    pattern of addresses; None without one."""
    text = url.partition("?")[0] if not url.startswith("^") else url[1:].removesuffix("$")
    text = _SLASHES.sub("/", text.replace("\\.", "."))
    method = method.upper()
    return next((one for one in DECLARATIONS if method in one.methods and _covers(one, text)), None)


def _covers(declaration: Declaration, text: str) -> bool:
    if not declaration.site:
        return re.search(declaration.path, text) is not None
    rest = text.removeprefix(declaration.site)
    return rest != text and re.match(declaration.path, rest) is not None


def usual_kind(method: str, url: str) -> RequestKind:
    """Return the usual kind of a request to an address."""
    known = declared(method, url)
    if known is not None:
        return known.kinds[0]
    return RequestKind.DOCUMENT if method.upper() == "GET" else RequestKind.FORM


def recorded_kind(event: Event) -> RequestKind | None:
    """Return the kind of a request according to the trace; None if the trace does not show it.

    Decided by ``Sec-Fetch-Dest``, the recorder's resource type, ``X-Requested-With``, and the
    ``Accept`` header of navigations.
    """
    sent = RequestKind.DOCUMENT if event.method == "GET" else RequestKind.FORM
    headers = event.headers
    if destination := headers.get("sec-fetch-dest", "").strip().lower():
        return _kinds_named(destination, sent, {"document": True, "empty": False})
    if resource := (event.entry.resource_type or "").lower():
        return _kinds_named(resource, sent, {"document": True, "xhr": False, "fetch": False})
    if headers.get("x-requested-with", "").lower() == "xmlhttprequest":
        return RequestKind.SCRIPT
    accept = headers.get("accept", "").strip().lower()
    if accept.startswith("text/html"):
        return sent
    return RequestKind.SCRIPT if "json" in accept else None


def _kinds_named(word: str, sent: RequestKind, known: dict[str, bool]) -> RequestKind | None:
    loads = known.get(word)
    return None if loads is None else sent if loads else RequestKind.SCRIPT


class Run(NamedTuple):
    """A trace with the addresses of its sites."""

    task: Task
    trace: Trace
    binding: Binding

    def address(self, event: Event, *, base64_path: bool) -> Address | None:
        """Return the address of an event, cached; None if it cannot be parsed.

        Parameters that only identify a script's fetch are removed.
        """
        key = (id(event), self.binding, base64_path)
        memory = self.trace.memory
        if key not in memory:
            try:
                target = address(event.url, self.binding, base64_path=base64_path)
                memory[key] = _without_carrier(event.method, target)
            except InvalidValue:
                memory[key] = None
        found: Address | None = memory[key]
        return found


def _without_carrier(method: str, target: Address) -> Address:
    if not target.query:
        return target
    known = declared(method, target.base)
    if known is None or known.carrier not in target.query:
        return target
    query = {name: values for name, values in target.query.items() if name != known.carrier}
    return target._replace(query=query)


def sites_of(task: Task, trace: Trace | None, hosts: Hosts) -> Binding:
    """Return the addresses of the task's sites, configured or inferred from the trace's pages."""
    if trace is None:
        return bound(_names(task), hosts, ())
    key = ("binding", _names(task), tuple(hosts.items()))
    if key not in trace.memory:
        pages = trace.documents or trace.relevant
        starts = dict.fromkeys(start_of(event.url) for event in pages)
        trace.memory[key] = bound(_names(task), hosts, [start for start in starts if start])
    binding: Binding = trace.memory[key]
    return binding


def unlocated(binding: Binding, part: object) -> str:
    """Explain that a part of a specification refers to a site without a known address; "" if it
    does not."""
    if not binding.unknown:
        return ""
    named_there = placeholders(msgspec.json.encode(part).decode())
    missing = [named(name) for name in binding.unknown if name in named_there]
    if not missing:
        return ""
    return (
        f"the address of {' and '.join(missing)} is not known, and no page is on its usual port: "
        f"give --site {missing[0]}=URL, or a configuration"
    )


def _names(task: Task) -> tuple[str, ...]:
    names = [placeholder(site) for site in task.sites]
    for check in task.network_checks:
        for url in check.expected.urls:
            names += sorted(placeholders(url))
    return tuple(dict.fromkeys(names))


class ShownBy(StrEnum):
    """How a tab shows the page that a check names."""

    LOAD = "page load"
    IN_PLACE = "page load, or fetch in its place,"
    SCRIPT = "request by the last page's script"


def shown_by(check: NetworkCheck) -> ShownBy:
    """Return how a tab shows the page that a check names."""
    known = _declared(check)
    if known is None:
        return ShownBy.LOAD
    if known.in_place:
        return ShownBy.IN_PLACE
    return ShownBy.SCRIPT if known.scripted else ShownBy.LOAD


def _declared(check: NetworkCheck) -> Declaration | None:
    return declared(check.expected.http_method, check.expected.urls[0])


def final_events(run: Run, check: NetworkCheck, count: int) -> list[Event]:
    """Return the requests that showed a page, so that the last ``count`` show the final pages.

    The final pages are those of the ``count`` tabs in which a page was shown last. The last request
    of each of these tabs follows all others; both parts are in the order in which they were sent.
    Raises Undecided.
    """
    if len(run.trace.tabs) == 1:
        return list(_shown_in(run.trace.tabs[0], run, check))
    order = {id(event): at for at, event in enumerate(run.trace.relevant)}

    def last_view(tab: tuple[Event, ...]) -> int:
        return max((order[id(event)] for event in tab if _shows_page(run, event)), default=-1)

    tabs = sorted(run.trace.tabs, key=last_view)[-count:]
    shown = [list(_shown_in(tab, run, check)) for tab in tabs]
    earlier = [event for events in shown for event in events[:-1]]
    last = [event for events in shown for event in events[-1:]]
    return [
        event for part in (earlier, last) for event in sorted(part, key=lambda one: order[id(one)])
    ]


def _shown_in(made: tuple[Event, ...], run: Run, check: NetworkCheck) -> Iterator[Event]:
    """Yield the requests of one tab that showed a page, first to last. Raises Undecided."""
    way = shown_by(check)
    if way is ShownBy.LOAD:
        yield from (event for event in made if event.is_document())
        return
    views = [event for event in made if _shows_page(run, event)]
    if way is ShownBy.IN_PLACE:
        yield from views
        return
    if views:
        last = next(at for at, event in enumerate(made) if event is views[-1])
        made = made[last + 1 :]
    for event in fitting(run, check, made):
        if recorded_kind(event) is not RequestKind.DOCUMENT and _same_part(run, check, event):
            yield event


def _shows_page(run: Run, event: Event) -> bool:
    """Return True if a request changed the page that the tab shows."""
    if event.is_document():
        return True
    if event.method != "GET":
        return False
    target = run.address(event, base64_path=False)
    known = declared(event.method, target.base) if target else None
    return known is not None and known.in_place and recorded_kind(event) is RequestKind.SCRIPT


def _same_part(run: Run, check: NetworkCheck, event: Event) -> bool:
    """Return True if a request is about the same part of the page as the check. Raises
    Undecided."""
    known = _declared(check)
    target = run.address(event, base64_path=check.decode_base64_query)
    if known is None or not known.part or target is None:
        return True
    expected = expected_query(check.expected.urls[0], check).get(known.part)
    if expected is None:
        return True
    actual = target.query.get(known.part, ())
    return not differing({known.part: expected}, {known.part: actual}, check)


def fitting(run: Run, check: NetworkCheck, events: Iterable[Event]) -> Iterator[Event]:
    """Yield the requests with the method, base address and referring page of a check. Raises
    Undecided."""
    method = check.expected.http_method.upper()
    for event in events:
        if event.method == method and _fits(run, check, event):
            yield event


def _fits(run: Run, check: NetworkCheck, event: Event) -> bool:
    target = run.address(event, base64_path=check.decode_base64_query)
    if target is None or not any(same_base(url, target) for url in check.expected.urls):
        return False
    referer = (check.expected.headers or {}).get("referer")
    came_from = event.headers.get("referer")
    if not referer or not came_from:
        return True
    wanted = (referer,) if isinstance(referer, str) else referer
    page = address(came_from, run.binding)
    return any(same_base(url, page) for url in wanted)


def load_trace(path: Path) -> Trace:
    """Return the trace in a HAR file (.har, .json, also as .gz, or Playwright's .har.zip), a
    Playwright trace (.zip, its folder, its ``trace.network``) or a JSON list of entries of either.

    Raises UserError, one sentence, for a file that does not exist, is truncated, malformed or of
    another format.
    """
    entries, resources, flaws = read_recording(path)
    return trace_of(entries, str(path), resources, flaws)


def trace_of(
    entries: Iterable[Entry],
    source: str = "trace",
    resources: Resources | None = None,
    flaws: tuple[Flaw, ...] = (),
) -> Trace:
    """Return the trace of decoded entries, with the flaws of unreadable ones."""
    return Trace(tuple(Event(entry, resources) for entry in entries), source, flaws)


def trace_of_list(items: Iterable[dict[str, Any]], source: str = "trace") -> Trace:
    """Return the trace of a list of HAR entries or of Playwright's resource snapshots.

    Raises UserError for an item that is not an object.
    """
    try:
        encoded = (msgspec.Raw(msgspec.json.encode(item)) for item in items)
        entries, flaws = typed_entries(encoded)
        return trace_of(entries, source, flaws=flaws)
    except (msgspec.DecodeError, RecursionError, TypeError, ValueError) as error:
        raise UserError(f"{source}: an item is no HAR entry: {error}") from error


_OTHERS_NAME = "network.others"


def other_changes(task: Task, trace: Trace | None, hosts: Hosts) -> Iterator[Assertion]:
    """Yield one unknown assertion if the site executed more requests than expected."""
    checks = [check for check in task.network_checks if check.changing_urls]
    if trace is None or not checks:
        return
    run = Run(task, trace, sites_of(task, trace, hosts))
    try:
        sent = sum(any(_changes(run, one, event) for one in checks) for event in trace.relevant)
    except InvalidValue as error:
        yield Assertion(name=_OTHERS_NAME, outcome=Outcome.UNKNOWN, reason=str(error))
        return
    if (further := sent - len(checks)) > 0:
        yield Assertion(
            name=_OTHERS_NAME,
            outcome=Outcome.UNKNOWN,
            reason=f"{further} further request{'s' * (further > 1)} changed the site, and may have "
            "repeated or undone the expected change: check its state",
        )


def _changes(run: Run, check: NetworkCheck, event: Event) -> bool:
    expected = check.expected
    if (event.method, event.status) != (expected.http_method.upper(), expected.response_status):
        return False
    target = run.address(event, base64_path=check.decode_base64_query)
    return target is not None and any(same_base(url, target) for url in check.changing_urls)


# A cached page that the server confirmed (304) counts as the page.
_SAME_STATUS = {200: (200, 304)}
_LIST_FIELD = re.compile(r"\[\d*\]\Z")
_URL_HEADERS = frozenset({"referer", "redirect_url", "location", "origin"})


def compared(run: Run, check: NetworkCheck, event: Event, name: str) -> Iterator[Assertion]:
    """Yield the assertions on one event, named ``NAME.part``; unknown if an error of the
    specification prevents a comparison."""
    target = run.address(event, base64_path=check.decode_base64_query)
    yield from _url(check, event, target, name)
    yield _status(check, event, name)
    expected = check.expected
    for header in expected.headers or {}:
        label = f"{name}.headers.{header.lower()}"
        yield _or_unknown(label, partial(_header, run, check, event, header, label))
    if expected.post_data:
        yield from _post_data(run, check, event, name)
    if expected.response_content:
        yield from _content(check, event, name)
    for cookie, wanted in (expected.response_cookies or {}).items():
        actual = event.cookies.get(cookie)
        yield _value(f"{name}.cookies.{cookie}", "string", wanted, actual)


def _or_unknown(name: str, make: Callable[[], Assertion]) -> Assertion:
    try:
        return make()
    except Undecided as error:
        return Assertion(name=name, outcome=Outcome.UNKNOWN, reason=str(error))


def _value(name: str, kind: str, expected: Any, actual: Any) -> Assertion:
    """Return the comparison of one value, with both normal forms."""
    wanted = list(expected) if isinstance(expected, tuple) else expected
    match = equal(kind, wanted, actual)
    return Assertion(
        name=name,
        outcome=decided(match.equal),
        reason=match.reason,
        expected=wanted,
        found=shown(actual),
        expected_normalised=match.expected,
        found_normalised=shown(match.actual),
    )


class _Fit(NamedTuple):
    """The result for one alternative of the address with a matching base: its query, the
    differing parameters, and why it cannot be decided."""

    query: Query
    differ: list[str]
    mistake: str = ""


def _url(
    check: NetworkCheck, event: Event, target: Address | None, name: str
) -> Iterator[Assertion]:
    """Yield the comparison of the base address, then of the query of the best alternative."""
    urls = check.expected.urls
    fitting, mistakes = [], []
    for url in urls:
        try:
            if target is not None and same_base(url, target):
                fitting.append(url)
        except Undecided as error:
            mistakes.append(str(error))
    if target is None or not fitting:
        reason = next(iter(mistakes), f"{event.url[:200]} is not the address")
        yield checked(f"{name}.url", None if mistakes else False, reason, list(urls), event.url)
        return
    yield checked(f"{name}.url", True, "", fitting[0], event.url)
    best = min((_fit(url, target, check) for url in fitting), key=_badness)
    held = None if best.mistake or (best.differ and mistakes) else not best.differ
    differ = f"the parameters {', '.join(best.differ[:10])} differ"
    yield checked(
        f"{name}.query",
        held,
        best.mistake or next(iter(mistakes), differ),
        {key: list(values) for key, values in best.query.items()},
        {key: list(values) for key, values in target.query.items()} if best.differ else None,
    )


def _fit(url: str, target: Address, check: NetworkCheck) -> _Fit:
    query = expected_query(url, check)
    try:
        return _Fit(query, differing(query, target.query, check))
    except Undecided as error:
        return _Fit(query, [], str(error))


def _badness(fit: _Fit) -> tuple[bool, bool, int]:
    """Rank alternatives: one that holds, then one that is undecided, then one that differs."""
    return (bool(fit.differ), bool(fit.mistake), len(fit.differ))


def _status(check: NetworkCheck, event: Event, name: str) -> Assertion:
    wanted = check.expected.response_status
    if event.status is None:
        return Assertion(
            name=f"{name}.status",
            outcome=Outcome.UNKNOWN,
            reason="the trace recorded no response",
            expected=wanted,
        )
    held = event.status in _SAME_STATUS.get(wanted, (wanted,))
    reason = f"the server answered {event.status}, not {wanted}"
    return checked(f"{name}.status", held, reason, wanted, event.status)


def _header(run: Run, check: NetworkCheck, event: Event, header: str, label: str) -> Assertion:
    """Compare a header, as an address or as text; a header that was not sent is empty. Raises
    Undecided."""
    expected: Any = (check.expected.headers or {})[header]
    actual = event.headers.get(header.lower(), "")
    if header.lower() not in _URL_HEADERS:
        if is_pattern(expected):
            return checked(label, fullmatch(expected, actual), "no match", expected, actual)
        return _value(label, "string", expected, actual)
    wanted = (expected,) if isinstance(expected, str) else tuple(expected)
    target = address(actual, run.binding)
    held = any(_same_address(url, target, check) for url in wanted)
    return checked(label, held, f"came from {actual[:200]!r}", list(wanted), actual)


def _same_address(url: str, target: Address, check: NetworkCheck) -> bool:
    if not same_base(url, target):
        return False
    wanted = {} if is_pattern(url) else address(url, Binding(())).query
    return not differing(wanted, target.query, check)


def _post_data(run: Run, check: NetworkCheck, event: Event, name: str) -> Iterator[Assertion]:
    if not event.post_recorded:
        reason = "the trace recorded no body of the request"
        expected = check.expected.post_data
        yield Assertion(
            name=f"{name}.post_data", outcome=Outcome.UNKNOWN, reason=reason, expected=expected
        )
        return
    sent = document(event.post_data)
    try:
        sent = _without_ignored(sent, check.ignored_post_data_params_patterns)
    except Undecided as error:
        yield Assertion(name=f"{name}.post_data", outcome=Outcome.UNKNOWN, reason=str(error))
        return

    def field(label: str, key: str, expected: Any) -> Assertion:
        values = _at(key, sent)
        if not values and isinstance(expected, list):
            values = _listed(key, sent)
        actual = [_bound(run, value) for value in values]
        return _field(label, check.post_data_schema, key, expected, actual)

    for key, expected in (check.expected.post_data or {}).items():
        label = f"{name}.post_data.{key}"
        yield _or_unknown(label, partial(field, label, key, expected))


def _without_ignored(sent: Any, patterns: Sequence[str]) -> Any:
    """Remove ignored parameters. Raises Undecided."""
    if not isinstance(sent, dict) or not patterns:
        return sent
    return {
        key: value
        for key, value in sent.items()
        if not any(searches(pattern, key) for pattern in patterns)
    }


def _bound(run: Run, value: Any) -> Any:
    return run.binding.bind_text(value) if isinstance(value, str) else value


def _field(label: str, schema: Any, key: str, expected: Any, actual: list[Any]) -> Assertion:
    """Compare one field of a form: None must be absent, a declared list is compared in any
    order."""
    if expected is None:
        there = [value for value in actual if value not in (None, "")]
        return checked(label, not there, "a field that must be absent", None, there or None)
    if not actual:
        return checked(label, False, "the field was not sent", expected, None)
    declared = ((schema or {}).get("properties") or {}).get(key) or {}
    kind = kind_of(schema, key)
    if declared.get("type") == "array" or (isinstance(expected, list) and len(expected) == 1):
        wanted = expected if isinstance(expected, list) else [expected]
        return _list(label, kind, wanted, actual)
    if len(actual) > 1:
        return checked(label, False, "several fields where one is expected", expected, actual)
    if isinstance(expected, str):
        expected = with_holes(expected) or expected
    return _value(label, kind, expected, actual[0])


def _list(label: str, kind: str, expected: list[Any], actual: list[Any]) -> Assertion:
    """Compare a list in any order; a field with a single list is that list."""
    items = actual[0] if len(actual) == 1 and isinstance(actual[0], list) else actual
    flat = [part for item in items for part in (item if isinstance(item, list) else [item])]
    held = match_unordered(expected, flat, lambda one, other: equal(kind, one, other).equal).equal
    reason = "a different list" if held is False else "an item of the specification's list is none"
    return checked(label, held, reason, expected, flat)


def _at(key: str, data: Any) -> list[Any]:
    """Return the values for a key: a name, a pattern of names (``$.^...$``, ``^...$``), or a
    JSONPath."""
    pattern = key[2:] if key.startswith("$.^") else key
    if not is_pattern(pattern):
        pattern = with_holes(key) or ""
    if pattern:
        if not isinstance(data, dict):
            return []
        return [value for name, value in data.items() if fullmatch(pattern, name)]
    if key.startswith("$"):
        return _followed(key, data)
    return [data[key]] if isinstance(data, dict) and key in data else []


def _listed(key: str, data: Any) -> list[Any]:
    """Return the list in a form's fields ``key[0]``, ``key[1]`` or ``key[]``."""
    if not isinstance(data, dict):
        return []
    spelt = [value for name, value in data.items() if _LIST_FIELD.sub("", name) == key != name]
    flat = [part for value in spelt for part in (value if isinstance(value, list) else [value])]
    return [flat] if flat else []


def _followed(path: str, data: Any) -> list[Any]:
    found = find(path, data) or find(path, unpacked(data))
    if json_path(path).several and any(isinstance(value, list) for value in found):
        return [part for value in found for part in (value if isinstance(value, list) else [value])]
    return found


def _content(check: NetworkCheck, event: Event, name: str) -> Iterator[Assertion]:
    """Yield the comparisons of the response body, unknown if the trace does not have it."""
    body = event.content
    if body is None or body.text is None:
        yield Assertion(
            name=f"{name}.content",
            outcome=Outcome.UNKNOWN,
            reason="the trace recorded no body of the response",
            expected=check.expected.response_content,
        )
        return
    data = document(body)
    for key, expected in (check.expected.response_content or {}).items():
        label = f"{name}.content.{key}"
        yield _or_unknown(label, partial(_part, label, key, expected, data))


def _part(label: str, key: str, expected: Any, data: Any) -> Assertion:
    """Compare one value of the response body. Raises Undecided."""
    actual = _at(key, data)
    if not actual:
        return checked(label, False, "the reply does not hold it", expected, None)
    return _value(label, _json_kind(expected), expected, actual[0])


def _json_kind(expected: Any) -> str:
    """Return the kind of a value with a JSON type."""
    if isinstance(expected, bool):
        return "boolean"
    return "number" if isinstance(expected, int | float) else "string"


_SHOWN_EVENTS = 5


def network_assertions(
    task: Task, trace: Trace | None, hosts: Hosts, *, activity: bool = False
) -> list[Assertion]:
    """Return the results of the task's checks on the trace, in the order of the checks.

    Without a trace every check is unknown. With ``activity`` the run must have reached at least one
    page of the task's sites. Results are cached on the trace for other answers to the task. Never
    raises.
    """
    if trace is None:
        count = len(task.network_checks) + activity
        reason = "the run recorded no trace"
        return [_unknown(f"network.{index + 1}", reason) for index in range(count)]
    # The task is kept with its assertions, so that no other task gets its id.
    known = trace.memory.get(("network", id(task), activity))
    if known is None or known[1] != hosts:
        known = (task, hosts, _assertions(task, trace, hosts, activity=activity))
        trace.memory["network", id(task), activity] = known
    return list(known[2])


def _assertions(task: Task, trace: Trace, hosts: Hosts, *, activity: bool) -> list[Assertion]:
    checks = task.network_checks
    run = Run(task, trace, sites_of(task, trace, hosts))
    made = [_activity(run)] if activity else []
    if not checks:
        return made
    results: dict[int, list[Assertion]] = {}
    for index, check in enumerate(checks):
        if reason := unlocated(run.binding, check.expected):
            results[index] = [_unknown(f"network.{index + 1}.site", reason)]
    for group in _groups(task, checks):
        if positions := [index for index in group if index not in results]:
            results.update(_of_group(run, positions, checks))
    made += [assertion for index in sorted(results) for assertion in results[index]]
    return [_in_doubt(assertion, trace) for assertion in made] if trace.flaws else made


def _in_doubt(assertion: Assertion, trace: Trace) -> Assertion:
    """Make results unknown that an unreadable entry may change: that no request satisfied a
    check, or that no forbidden request was sent."""
    absence = assertion.name.endswith(".absence") and assertion.outcome is Outcome.PASS
    if not absence and assertion.outcome is not Outcome.FAIL:
        return assertion
    reason = f"{trace.source}: {trace.flaws[0]}, and may be the expected request"
    return _unknown(assertion.name, reason)


def _unknown(name: str, reason: str) -> Assertion:
    return Assertion(name=name, outcome=Outcome.UNKNOWN, reason=reason)


def _activity(run: Run) -> Assertion:
    """Check the paper's section 4.3: at least one request that the task's own site answered."""
    sites = {placeholder(site) for site in run.task.sites}
    for event in run.trace.relevant:
        target = run.address(event, base64_path=False)
        answered = event.status is not None and 200 <= event.status < 400
        if target and answered and placeholders(target.base) & sites:
            return Assertion(name="activity", outcome=Outcome.PASS, found=shown(event.url))
    if reason := unlocated(run.binding, sorted(sites)):
        return _unknown("activity", reason)
    return Assertion(
        name="activity",
        outcome=Outcome.FAIL,
        reason=f"no site of the task answered a request: {elsewhere(run)}",
        expected=sorted(sites),
    )


def elsewhere(run: Run) -> str:
    """Return one clause on the hosts of a trace's requests."""
    hosts = dict.fromkeys(origin(event.url) for event in run.trace.relevant)
    named = [host for host in hosts if host][:_SHOWN_EVENTS]
    if not named:
        return f"{run.trace.source} holds no request to any host"
    known = {base for base, _ in run.binding.bases}
    if any(base.startswith(host) for base in known for host in named):
        return "its requests went to other pages"
    return f"{run.trace.source} holds requests to {', '.join(named)} alone"


def _groups(task: Task, checks: Sequence[NetworkCheck]) -> list[list[int]]:
    """Group the positions of checks about the same requests; final pages are one group."""
    groups: dict[object, list[int]] = {}
    for index, check in enumerate(checks):
        expected = check.expected
        referer = (expected.headers or {}).get("referer")
        alone = check.should_not_exist or not check.last_event_only
        key: object = (expected.http_method.upper(), expected.urls, referer)
        if alone:
            key = index
        elif is_final_page(task, check):
            key = ("final pages", shown_by(check))
        groups.setdefault(key, []).append(index)
    return list(groups.values())


def _of_group(
    run: Run, positions: list[int], checks: Sequence[NetworkCheck]
) -> dict[int, list[Assertion]]:
    """Return the assertions of each check of a group, by position."""
    first = checks[positions[0]]
    names = {index: f"network.{index + 1}" for index in positions}
    try:
        events = list(_candidates(run, first, len(positions)))
        if first.should_not_exist:
            return {positions[0]: [_absence(run, first, events, names[positions[0]])]}
        if not events:
            return {index: [_missing(run, checks[index], names[index])] for index in positions}
        if (
            first.last_event_only and not first.changing_urls
        ):  # for which a further request makes it unknown
            events = events[-len(positions) :]
        return _paired(run, {index: checks[index] for index in positions}, events)
    except InvalidValue as error:
        return {index: [_unknown(names[index], str(error))] for index in positions}


class Decisive(NamedTuple):
    """A check and the only request that satisfies it, by position in the trace."""

    check: NetworkCheck
    at: int


def decisive_events(task: Task, trace: Trace, hosts: Hosts) -> tuple[Decisive, ...]:
    """Return the requests without which a check would fail, in the order of the trace.

    Excluded are checks that more requests than expected satisfy, checks of forbidden requests, and
    undecided checks.
    """
    run = Run(task, trace, sites_of(task, trace, hosts))
    results = []
    for positions in _groups(task, task.network_checks):
        checks = {index: task.network_checks[index] for index in positions}
        if checks[positions[0]].should_not_exist:
            continue
        try:
            events = list(_candidates(run, checks[positions[0]], len(positions)))
            pairs = _meeting(run, checks, events)
        except InvalidValue:
            continue
        if len(pairs) == len(checks):
            results += [Decisive(checks[one], trace.events.index(event)) for one, event in pairs]
    return tuple(sorted(results, key=lambda one: one.at))


def _meeting(
    run: Run, checks: Mapping[int, NetworkCheck], events: Sequence[Event]
) -> list[tuple[int, Event]]:
    """Return every request that satisfies a check of a group, with that check."""
    return [
        (index, event)
        for event in events
        for index, check in checks.items()
        if all(made.outcome is Outcome.PASS for made in compared(run, check, event, ""))
    ]


def _paired(
    run: Run, checks: dict[int, NetworkCheck], events: list[Event]
) -> dict[int, list[Assertion]]:
    """Match checks with events; a check without a partner shows its best event."""
    known: dict[tuple[int, int], list[Assertion]] = {}
    positions = list(checks)

    def of(index: int, at: int) -> list[Assertion]:
        if (index, at) not in known:
            name = f"network.{index + 1}"
            known[index, at] = list(compared(run, checks[index], events[at], name))
        return known[index, at]

    def holds(index: int, at: int) -> bool | None:
        outcome = conjunction(assertion.outcome for assertion in of(index, at))
        return None if outcome is Outcome.UNKNOWN else outcome is Outcome.PASS

    pairing = match_unordered(positions, list(range(len(events))), holds)
    chosen = {positions[one]: of(positions[one], other) for one, other in pairing.pairs}
    for missing in pairing.missing:
        index = positions[missing]
        left = [at for at in range(len(events)) if at in pairing.surplus]
        if not left:
            chosen[index] = [_missing(run, checks[index], f"network.{index + 1}")]
            continue
        chosen[index] = min((of(index, at) for at in reversed(left)), key=_failures)
    return chosen


def _failures(assertions: list[Assertion]) -> int:
    return sum(assertion.outcome is not Outcome.PASS for assertion in assertions)


def _candidates(run: Run, check: NetworkCheck, count: int) -> Iterator[Event]:
    """Yield the requests that ``count`` checks of a group are about, in order. Raises Undecided."""
    if not is_final_page(run.task, check):
        yield from fitting(run, check, run.trace.relevant)
        return
    yield from final_events(run, check, count)


def is_final_page(task: Task, check: NetworkCheck) -> bool:
    """Return True if a check is about the last page of the tab."""
    answer = task.answer_check
    navigates = answer is not None and answer.expected.task_type == "navigate"
    return navigates and check.expected.http_method.upper() == "GET" and not check.should_not_exist


def _missing(run: Run, check: NetworkCheck, name: str) -> Assertion:
    method = check.expected.http_method.upper()
    what = shown_by(check).value if is_final_page(run.task, check) else method
    return Assertion(
        name=f"{name}.url",
        outcome=Outcome.FAIL,
        reason=f"no {what} of {check.expected.urls[0]}: {elsewhere(run)}",
        expected=shown(check.expected.urls[0]),
    )


def _absence(run: Run, check: NetworkCheck, events: list[Event], name: str) -> Assertion:
    """Check that no request has the address, the query and the body of the check."""
    left_open = None
    for event in events:
        made = compared(run, check, event, name)
        parts = [assertion for assertion in made if not assertion.name.endswith(".status")]
        there = conjunction(assertion.outcome for assertion in parts)
        if there is Outcome.PASS:
            return Assertion(
                name=f"{name}.absence",
                outcome=Outcome.FAIL,
                reason=f"a {event.method} of {shown(event.url)[:200]} was sent",
                expected=shown(check.expected.urls[0]),
                found=shown(event.url),
            )
        if there is Outcome.UNKNOWN:
            left_open = next(it.reason for it in parts if it.outcome is there)
    if left_open is not None:
        return _unknown(f"{name}.absence", left_open)
    return Assertion(name=f"{name}.absence", outcome=Outcome.PASS)
