"""Web addresses in the form that the release compares."""

from __future__ import annotations

import re
import unicodedata
from urllib.parse import parse_qs, quote, unquote, urlparse, urlsplit, urlunparse, urlunsplit

from trajudge.rules.errors import InvalidValue, TooLarge

MOST_PARAMETERS = 10_000
_WITH_HOST = frozenset(("http", "https", "ftp", "ftps"))
_WITH_PATH = frozenset(("http", "https", "ftp", "file"))
_PORTS = {"http": "80", "https": "443", "ftp": "21", "ws": "80", "wss": "443"}
_HOST = re.compile(r"([^@]*@)?([^:]*):?(.*)", re.DOTALL)
_SSH_SCHEME = "ssh://"


def is_ssh(text: str) -> bool:
    """Tell whether an address is that of a repository."""
    lower = text.lower()
    return lower.startswith(_SSH_SCHEME) or (
        lower.startswith("git@") and ":" in text and "://" not in text
    )


def repository(text: str) -> str:
    """Return a repository's address without host and port, in lower case."""
    if text.lower().startswith(_SSH_SCHEME):
        try:
            parts = urlparse(text)
        except ValueError as error:
            raise InvalidValue("not an address") from error
        user = parts.netloc.split("@")[0] if "@" in parts.netloc else "git"
        path = parts.path
    else:
        user, _, rest = text.partition("@")
        path = rest.partition(":")[2]
    return f"{user.lower()}@__SSH_HOST__:{path.lstrip('/').lower()}"


def normal_address(text: str) -> str:
    """Return an address in normal form: scheme and host in lower case, no standard port, the path
    without empty and dot segments. Raises InvalidValue."""
    try:
        return _normal(_with_scheme(text).replace("#!", "?_escaped_fragment_=").rstrip("&? "))
    except ValueError as error:  # brackets, half characters
        raise InvalidValue("not an address") from error


def _with_scheme(text: str) -> str:
    if text == "-" or (text.startswith("/") and not text.startswith("//")):
        return text
    if ":" not in text[:7]:
        return f"https://{text.lstrip('/')}"
    scheme, _, rest = text.partition(":")
    return f"{scheme}://{rest.lstrip('/')}" if scheme.lower() in _WITH_HOST else text


def _normal(text: str) -> str:
    scheme, place, path, query, fragment = urlsplit(text.strip())
    scheme = scheme.lower()
    found = _HOST.match(place)
    before, host, port = map(str, found.groups("")) if found else ("", place, "")
    user = "" if before in ("@", ":@") else before
    host = ".".join(filter(None, _ascii_host(host.lower().strip(".")).split(".")))
    if port.isdigit():
        port = "" if _PORTS.get(scheme) == str(int(port)) else str(int(port))
    place = f"{user}{host}:{port}" if port else user + host
    path = normal_path(path, segments=scheme == "" or scheme in _WITH_PATH)
    if not path and scheme in _WITH_PATH:
        path = "/"
    return urlunsplit((scheme, place, path, _normal_query(query), _quoted(fragment, "~=")))


def _ascii_host(host: str) -> str:
    return host if host.isascii() else host.encode("idna").decode()


def _quoted(text: str, safe: str) -> str:
    return quote(unicodedata.normalize("NFC", unquote(text)), safe=safe)


def normal_path(path: str, *, segments: bool = True) -> str:
    """Return a path without empty and dot segments, percent-encoded where it has to be.

    A slash at its end stays, which a pattern may see.
    """
    text = _quoted(path, "~:/#[]@!$&'()*+,;=")
    if not segments:
        return text
    parts = text.split("/")
    kept: list[str] = []
    for part in parts:
        if part == "..":
            del kept[max(1, len(kept) - 1) :]
        elif part != "." and (part or not kept):
            kept.append(part)
    if parts[-1] in ("", ".", ".."):
        kept.append("")
    return "/".join(kept)


def _normal_query(query: str) -> str:
    kept = []
    for part in filter(None, query.split("&")):
        name, _, value = part.partition("=")
        name, value = (_quoted(text, "~:/?[]@!$'()*+,;") for text in (name, value))
        kept.append(f"{name}={value}" if value else name)
    return "&".join(kept)


def base_and_query(text: str) -> tuple[str, str]:
    """Return the parts of an address in normal form. Raises InvalidValue."""
    try:
        parts = urlparse(text)
    except ValueError as error:
        raise InvalidValue("not an address") from error
    path = f"{parts.path};{parts.params}" if parts.params else parts.path
    place = (parts.scheme.lower(), parts.netloc.lower(), path, "", "", parts.fragment)
    return urlunparse(place), parts.query.strip()


def parameters(query: str) -> dict[str, tuple[str, ...]]:
    """Return the values of a query's parameters, decoded twice, sorted. Raises TooLarge."""
    if not query:
        return {}
    try:
        found = parse_qs(query, keep_blank_values=True, max_num_fields=MOST_PARAMETERS)
    except ValueError as error:
        raise TooLarge(f"a query of more than {MOST_PARAMETERS:,} parameters") from error
    return {unquote(name): tuple(sorted(map(unquote, values))) for name, values in found.items()}
