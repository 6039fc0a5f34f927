"""Which address a site had in a run, and addresses with the site's placeholder for it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct, field

from trajudge.rules.reading import decode, read_bytes
from trajudge.rules.verified.dataset import placeholder, placeholders
from trajudge.trajectories.util.errors import UserError

Hosts = Mapping[str, tuple[str, ...]]
"""Placeholder (``__GITLAB__``) → the addresses of the site."""

# Where the benchmark's own containers listen: the one guess for a trace without a configuration.
DEFAULT_PORTS = {
    "__SHOPPING__": 7770,
    "__SHOPPING_ADMIN__": 7780,
    "__REDDIT__": 9999,
    "__GITLAB__": 8023,
    "__WIKIPEDIA__": 8888,
    "__MAP__": 3000,
    "__HOMEPAGE__": 4399,
}
# The administration of the shop is a folder of the shop's host.
FOLDERS = {"__SHOPPING_ADMIN__": "/admin"}
_STANDARD = {"http": 80, "https": 443}
_AFTER_HOST = r"(?=[/?#\s\"'<>)\]},;]|\Z)"


class Binding(NamedTuple):
    """(address without trailing slash, placeholder) pairs, the longest address first.

    Of them ``inferred`` were told by their port alone; ``unknown`` are the placeholders of sites
    whose address nobody told.
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
        """Return the address with the site's placeholder for the site's part, where it is a
        site's."""
        plain = canonical(url)
        lower = plain.lower()
        for base, name in self.bases:
            if lower.startswith(base) and (len(plain) == len(base) or plain[len(base)] in "/?#"):
                return name + plain[len(base) :]
        return plain

    def bind_text(self, text: str) -> str:
        """Return every address of a site within a text, likewise."""
        if "://" not in text:
            return text
        for base, name in self.bases:
            text = _anywhere(base).sub(name, text)
        return text


@lru_cache(maxsize=256)
def _anywhere(base: str) -> re.Pattern[str]:
    return re.compile(re.escape(base) + _AFTER_HOST, re.IGNORECASE)


def origin(url: str) -> str:
    """Scheme and host in lower case, without a standard port; "" for what is no web address."""
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
    """Return the address with its origin in normal form; anything else unchanged."""
    end = _origin_end(url)
    if end < 0:
        return url
    start = _known_origin(url[:end])
    return start + url[end:] if start else url


@lru_cache(maxsize=4096)
def _known_origin(text: str) -> str:
    return origin(text)


def _origin_end(url: str) -> int:
    slashes = url.find("://")
    if slashes < 0:
        return -1
    ends = (url.find(char, slashes + 3) for char in "/?#")
    return min((end for end in ends if end >= 0), default=len(url))


def bound(names: Iterable[str], hosts: Hosts, loaded: Sequence[str]) -> Binding:
    """Return the binding of the named sites (placeholders): configured, else inferred from a trace.

    ``loaded`` are the origins of the pages that the run loaded. A site that is not configured is
    the one origin among them on the benchmark's own port for it. Where there is none, or several,
    it stays unknown: any other guess would take a foreign site's pages for the task's. A trace
    whose addresses have placeholders already (``__GITLAB__`` among ``loaded``) needs no address.
    """
    wanted = list(dict.fromkeys(names))
    pairs = [
        (canonical(base).lower().rstrip("/"), name)
        for name in wanted
        for base in hosts.get(name, ())
    ]
    left = [name for name in wanted if not hosts.get(name) and name not in loaded]
    taken = {origin(base) for base, _ in pairs}
    free = [start for start in dict.fromkeys(loaded) if start not in taken]
    usual = {name: _on_usual_port(name, free) for name in left}
    inferred = [
        (found[0] + FOLDERS.get(name, ""), name) for name, found in usual.items() if len(found) == 1
    ]
    return Binding(
        tuple(sorted([*pairs, *inferred], key=lambda pair: -len(pair[0]))),
        tuple(inferred),
        tuple(name for name, found in usual.items() if len(found) != 1),
    )


def _on_usual_port(name: str, origins: Sequence[str]) -> list[str]:
    port = DEFAULT_PORTS.get(name)
    return [start for start in origins if port is not None and start.endswith(f":{port}")]


def start_of(url: str) -> str:
    """Return where an address lies: its origin, or the placeholder that it begins with; else ""."""
    if url.startswith("__"):
        return url.partition("/")[0]
    return origin(url)


def named(name: str) -> str:
    """``shopping_admin`` for ``__SHOPPING_ADMIN__``."""
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


def given_hosts(file: Path | None, given: Sequence[str], tasks: Iterable[object]) -> Hosts:
    """Read the addresses of ``--sites`` and ``--site``. Raises UserError, also for a site that
    neither the benchmark nor ``--sites`` nor a task has: its address would be ignored."""
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
    """Return the placeholders of the benchmark's sites, and of those that the tasks name."""
    names = set(DEFAULT_PORTS)
    for task in tasks:
        names.update(map(placeholder, getattr(task, "sites", ())))
        names |= placeholders(msgspec.json.encode(task).decode())
    return names


def parse_host(text: str) -> tuple[str, str]:
    """``SITE=URL`` as placeholder and address. Raises UserError."""
    site, equals, url = text.partition("=")
    if not equals:
        raise UserError(f"--site {text}: write SITE=URL, such as gitlab=http://localhost:8023")
    return _named(site, "--site"), _address(url, "--site")


def _named(site: str, where: object) -> str:
    name = placeholder(site.strip("_"))
    if not re.fullmatch(r"__[A-Z][A-Z0-9_]*__", name):
        raise UserError(f"{where}: {site!r} is no site's name: use letters, such as gitlab")
    return name


def _address(url: str, where: object) -> str:
    if not origin(url):
        raise UserError(f"{where}: {url!r} is no address: write http://HOST or https://HOST")
    return url
