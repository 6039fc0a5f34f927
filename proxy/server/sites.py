"""The site's hosts: which requests go through, and where to."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import urlsplit

from trajudge.proxy.http.origins import OriginAddress
from trajudge.trajectories.util.errors import UserError

LOOPBACK = ("localhost", "*.localhost", "127.0.0.1")
_HOST = re.compile(r"(\*\.)?[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")


class SiteHost(NamedTuple):
    """A host of the site, ``*.`` before it for all below; ``origin`` is where it listens, None for
    where its own name leads."""

    host: str
    origin: OriginAddress | None

    def matches(self, host: str) -> bool:
        if self.host.startswith("*."):
            return host.endswith(self.host[1:])
        return host == self.host


def parse_site(text: str) -> SiteHost:
    """Parse ``HOST`` or ``HOST=http://ADDRESS[:PORT]``. Raises UserError."""
    host, equals, address = text.partition("=")
    if not _HOST.fullmatch(host):
        raise UserError(
            f"--site {text!r:.80} is no host: write shop.localhost, *.localhost or "
            "shop.localhost=http://127.0.0.1:8080"
        )
    if not equals:
        return SiteHost(host.lower(), None)
    parts = urlsplit(address if "://" in address else f"http://{address}")
    try:
        port = parts.port
    except ValueError:
        port = -1
    if parts.scheme != "http" or not parts.hostname or port == -1 or parts.path not in ("", "/"):
        raise UserError(
            f"--site {text!r:.80}: {address!r:.60} is no address of a plain HTTP server: write "
            "http://127.0.0.1:8080"
        )
    return SiteHost(host.lower(), OriginAddress(parts.hostname, port or 80))


class Sites(NamedTuple):
    """The hosts of the site, the first that matches decides."""

    hosts: tuple[SiteHost, ...]

    def origin(self, host: str, port: int) -> OriginAddress | None:
        """Return where a host's requests go; None for a host that is not the site's.

        Names below ``localhost`` lead to 127.0.0.1: browsers resolve them so, the C library does
        not.
        """
        for site in self.hosts:
            if site.matches(host):
                name = "127.0.0.1" if host.endswith(".localhost") else host
                return site.origin or OriginAddress(name, port)
        return None


def open_sites(hosts: tuple[str, ...]) -> Sites:
    """Return the sites of ``--site`` options; without one those on loopback. Raises UserError."""
    return Sites(tuple(parse_site(host) for host in hosts or LOOPBACK))
