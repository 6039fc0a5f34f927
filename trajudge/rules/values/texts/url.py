"""url: an address on the web, or of a repository.

Normal form: scheme and host in lower case, no default port, no trailing slash, dot segments
resolved, percent-encoding only where needed, query sorted without parameters that are empty
(``a=``, ``a``), fragment kept; the case of path and query is kept, as servers see it. An address
without a scheme is https. A site's placeholder (``__GITLAB__``) stands for scheme and host.
Addresses of repositories are ``git@host:path``, whichever of the two SSH forms was written; the
placeholder ``__SSH_HOST__`` in a specification stands for any host. A specification's pattern is
matched against the address without its fragment; one with a query fits no pattern, as in requests
(``network.addresses``), where a query is compared apart.
"""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, unquote, unquote_plus

from trajudge.rules.errors import InvalidValue
from trajudge.rules.limits import bounded, unicode_text
from trajudge.rules.values.model import Kind
from trajudge.rules.values.texts.text import raw_text

if TYPE_CHECKING:
    from pydantic import JsonValue

URL_CHARS = 20_000
ANY_SSH_HOST = "__SSH_HOST__"
_SITE = re.compile(r"__[A-Z][A-Z_]*__(?=[/?#]|\Z)")
_SSH = re.compile(
    r"(?:(?:ssh|scp)://([^@/:\s]+)@([^@/:\s]+)(?::\d+)?/|([^@/:\s]+)@([^@/:\s]+):)(\S+)"
)
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_HOST = re.compile(r"[^\s/?#@:\[\]]+(?::\d{1,5})?|\[[0-9A-Fa-f:.]+\](?::\d{1,5})?")
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_SAFE = "/:@!$&'()*,;=~+"


class Url(NamedTuple):
    """``origin`` is scheme and host, or a site's placeholder; ``query`` is sorted and decoded."""

    origin: str
    path: str
    query: tuple[tuple[str, str], ...]
    fragment: str

    @property
    def base(self) -> str:
        """The address without query and fragment."""
        return self.origin + self.path


def parse_query(text: str) -> tuple[tuple[str, str], ...]:
    """List decoded, sorted (name, value) pairs: repeated names kept, empty values dropped."""
    pairs = []
    for part in text.split("&"):
        name, _, value = part.partition("=")
        if name and value:
            pairs.append((unicode_text(unquote_plus(name)), unicode_text(unquote_plus(value))))
    return tuple(sorted(pairs))


def _path(text: str) -> str:
    decoded = "/".join(quote(unquote(part), safe=_SAFE) for part in unicode_text(text).split("/"))
    if "." in decoded:
        parts = decoded.split("/")
        if "." in parts or ".." in parts:
            decoded = posixpath.normpath(decoded)
    return decoded.rstrip("/")


def _origin(text: str) -> tuple[str, str]:
    """Scheme and host in normal form, and the rest."""
    if site := _SITE.match(text):
        return site[0], text[site.end() :]
    if scheme := _SCHEME.match(text):
        name, rest = scheme[1].lower(), text[scheme.end() :]
    else:
        name, rest = "https", text.removeprefix("//")
    end = min((i for i in map(rest.find, "/?#") if i >= 0), default=len(rest))
    user, at, host = rest[:end].rpartition("@")
    host = host.lower()
    known = scheme or "." in host or host.startswith("localhost")
    if not known or not _HOST.fullmatch(host):
        raise InvalidValue("not an address: no host")
    if host.endswith(_DEFAULT_PORTS.get(name, " ")):
        host = host.rpartition(":")[0]
    return f"{name}://{user}{at}{host}", rest[end:]


def parse(raw: JsonValue) -> Url:
    """Return the address that a text states."""
    if not isinstance(raw, str):
        raise InvalidValue("not an address")
    text = _CONTROL.sub("", bounded(raw, URL_CHARS)).strip().strip("<>")
    if ssh := _SSH.fullmatch(text):
        user, host = ssh[1] or ssh[3], ssh[2] or ssh[4]
        host = host if host == ANY_SSH_HOST else host.lower()
        return Url(f"{unicode_text(user)}@{unicode_text(host)}:", _path(ssh[5].lstrip("/")), (), "")
    origin, rest = _origin(unicode_text(text))
    rest, _, fragment = rest.partition("#")
    path, _, query = rest.partition("?")
    return Url(origin, _path(path), parse_query(query), quote(unquote(fragment), safe=_SAFE + "?"))


def show(url: Url) -> str:
    """Return one line, percent-encoded."""
    pairs = (
        quote(name, safe="") + (f"={quote(value, safe='')}" if value else "")
        for name, value in url.query
    )
    query = "&".join(pairs)
    return url.base + (f"?{query}" if query else "") + (f"#{url.fragment}" if url.fragment else "")


def same(expected: Url, actual: Url) -> bool:
    """Return the same address; the specification's placeholder for SSH hosts stands for any
    host."""
    if expected.origin.endswith(f"@{ANY_SSH_HOST}:"):
        user = expected.origin.removesuffix(f"{ANY_SSH_HOST}:")
        alike = actual.origin.startswith(user) and actual.origin.endswith(":")
        return alike and expected[1:] == actual[1:]
    return expected == actual


def texts(raw: JsonValue) -> tuple[str, str]:
    """Return the address, percent-encoded and decoded. Raises InvalidValue for one with a query."""
    url = parse(raw_text(raw, URL_CHARS))
    if url.query:
        raise InvalidValue("the address has a query, which no pattern asks for")
    return url.base, unquote(url.base)


KIND = Kind(parse=parse, show=show, same=same, texts=texts, case_matters=True)
