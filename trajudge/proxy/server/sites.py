"""The site's hosts: which requests go through, and where to."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import urlsplit

from trajudge.proxy.http.origins import OriginAddress
from trajudge.util.errors import UserError

LOOPBACK = ("localhost", "*.localhost", "127.0.0.1")
MITM = "--backend mitm carries HTTPS as well"
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


def parse_site(text: str, *, https: bool = False) -> SiteHost:
    """Parse ``HOST`` or ``HOST=http://ADDRESS[:PORT]``; ``https``: the proxy carries it. Raises
    UserError."""
    host, equals, address = text.partition("=")
    if address.startswith("https://") and not https:
        raise UserError(f"--site {text!r:.80}: the embedded proxy carries plain HTTP: {MITM}")
    if text.startswith("https://"):
        name = urlsplit(text).hostname
        raise UserError(f"--site {text!r:.80}: name the host alone, {name}; {MITM}")
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
    known = parts.scheme in ("http", "https") and parts.path in ("", "/")
    if not known or not parts.hostname or port == -1:
        raise UserError(
            f"--site {text!r:.80}: {address!r:.60} is no address of a server: write "
            "http://127.0.0.1:8080"
        )
    tls = parts.scheme == "https"
    name = host.lower() if tls and not host.startswith("*.") else ""
    port = port or (443 if tls else 80)
    return SiteHost(host.lower(), OriginAddress(parts.hostname, port, tls, name))


class Sites(NamedTuple):
    """The hosts of the site, the first that matches decides."""

    hosts: tuple[SiteHost, ...]

    def origin(self, host: str, port: int, *, tls: bool = False) -> OriginAddress | None:
        """Return where a host's requests go; None for a host that is not the site's.

        Names below ``localhost`` lead to 127.0.0.1: browsers resolve them so, the C library does
        not.
        """
        for site in self.hosts:
            if site.matches(host):
                address = "127.0.0.1" if host.endswith(".localhost") else host
                return site.origin or OriginAddress(address, port, tls, host if tls else "")
        return None


def open_sites(hosts: tuple[str, ...], *, https: bool = False) -> Sites:
    """Return the sites of ``--site`` options; without one those on loopback. Raises UserError, also
    for a host that comes twice: the first address alone would count."""
    sites: dict[str, SiteHost] = {}
    for text in hosts or LOOPBACK:
        site = parse_site(text, https=https)
        if site.host in sites:
            raise UserError(f"--site {text!r:.80}: {site.host} is given twice: leave one out")
        sites[site.host] = site
    return Sites(tuple(sites.values()))
