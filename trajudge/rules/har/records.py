"""The entries of HAR files and Playwright traces, as far as rules read them; bodies on demand."""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import msgspec
from msgspec import Raw, Struct

# A body beyond this is no form that an agent filled in.
MAX_BODY = 32 * 2**20
_ABSENT = Raw(b"null")
_STATIC = (".css", ".js", ".png", ".jpg", ".jpeg", ".gif", ".svg", ".woff", ".woff2", ".ttf")
STATIC_SUFFIXES = (*_STATIC, ".ico", ".webp")
# The path of an address of which ``urlsplit``, which takes a hundred times as long, says the same:
# a plain host, and nothing but visible ASCII in the path.
_PLAIN_PATH = re.compile(r"https?://[A-Za-z0-9._:-]+(/[!-\"$->@-~]*)(?=[?#]|\Z)")

Resources = Callable[[str], bytes | None]
"""The body that a trace keeps beside its entries, by its place; None if it has none."""


class Pair(Struct, frozen=True, gc=False):
    """A header, cookie, or form field."""

    name: str = ""
    value: str | None = None


class Body(
    Struct,
    frozen=True,
    gc=False,
    rename={"mime_type": "mimeType", "file": "_file", "digest": "_sha1"},
):
    """The body of a request or a response, as HAR writes it. Playwright names the file that holds
    it by ``_file``, its older traces one in ``resources`` by ``_sha1``."""

    mime_type: str = ""
    text: str | None = None
    params: tuple[Pair, ...] = ()
    encoding: str = ""
    file: str | None = None
    digest: str | None = None

    @property
    def place(self) -> str | None:
        """Where the body is kept beside the trace; None if it is not."""
        return self.file or (f"resources/{self.digest}" if self.digest else None)


class Request(
    Struct, frozen=True, gc=False, rename={"post_data": "postData", "body_size": "bodySize"}
):
    """``headers`` and ``post_data`` are JSON until they are read."""

    method: str
    url: str
    headers: Raw = _ABSENT
    post_data: Raw = _ABSENT
    body_size: Any = None


class Response(Struct, frozen=True, gc=False, rename={"redirect_url": "redirectURL"}):
    """``headers``, ``cookies`` and ``content`` are JSON until they are read."""

    status: int | float | None = None
    headers: Raw = _ABSENT
    cookies: Raw = _ABSENT
    content: Raw = _ABSENT
    redirect_url: str | None = None


class Entry(
    Struct,
    frozen=True,
    gc=False,
    rename={"resource_type": "_resourceType", "started": "startedDateTime", "page": "pageref"},
):
    """One entry of a HAR file, and a snapshot of a Playwright trace: the same fields.

    ``started`` is ISO 8601, ``page`` names the tab (Playwright) or page load (browsers' own tools)
    that sent the request; either may be absent or, in a file of another recorder, anything.
    """

    request: Request
    response: Response = Response()
    resource_type: str | None = None
    started: Any = None
    page: Any = None


def in_time_order(entries: Sequence[Entry]) -> tuple[int, ...]:
    """Return the entries' positions in the order in which they were sent, ties in file order.

    HAR 1.2 leaves the order of a file open. An entry without a time that can be read stays behind
    the one before it in the file.
    """
    times: list[float] = []
    for entry in entries:
        moment = _moment(entry.started)
        times.append((times[-1] if times else -math.inf) if moment is None else moment)
    return tuple(sorted(range(len(times)), key=times.__getitem__))


def _moment(started: object) -> float | None:
    """Return a time in seconds; one without zone is in UTC."""
    if not isinstance(started, str):
        return None
    try:
        time = datetime.fromisoformat(started)
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


_PAIRS = msgspec.json.Decoder(tuple[Pair, ...] | None)
_BODY = msgspec.json.Decoder(Body | None)


def is_static(url: str) -> bool:
    """Tell whether a style, a script, a picture or a font is asked for: no rule reads those."""
    if plain := _PLAIN_PATH.match(url):
        return plain[1].endswith(STATIC_SUFFIXES)
    if not any(suffix in url for suffix in STATIC_SUFFIXES):
        return False
    try:
        return urlsplit(url).path.endswith(STATIC_SUFFIXES)
    except ValueError:
        return False


def pairs_of(raw: Raw) -> tuple[Pair, ...]:
    """Return a list of pairs, or the pairs of an object; of anything else what can be read: agents'
    browsers write these files."""
    try:
        return _PAIRS.decode(raw) or ()
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return _loose_pairs(raw)


def _loose_pairs(raw: Raw) -> tuple[Pair, ...]:
    try:
        value = msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return ()
    if isinstance(value, dict):
        value = [{"name": name, "value": one} for name, one in value.items()]
    items = value if isinstance(value, list) else []
    return tuple(
        Pair(item["name"], one if isinstance(one, str) else str(one))
        for item in items
        if isinstance(item, dict) and isinstance(item.get("name"), str)
        if isinstance(one := item.get("value"), str | int | float)
    )


def written_body(raw: Raw) -> Body | None:
    """Return a body as it stands in the trace; None for none, and for what is no body."""
    if len(bytes(raw)) > MAX_BODY:
        return None
    try:
        body: Body | None = _BODY.decode(raw)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None
    return body


def whole_body(raw: Raw, resources: Resources | None) -> Body | None:
    """Return a body with its text, wherever the trace keeps it; the text is None where it was not
    recorded."""
    body = written_body(raw)
    if body is None or body.text:
        return _decoded(body)
    if body.place is None:
        return body
    stored = resources(body.place) if resources else None
    text = None if stored is None else stored.decode("utf-8", "replace")
    return msgspec.structs.replace(body, text=text)


def _decoded(body: Body | None) -> Body | None:
    """HAR keeps what is no text as base64."""
    if body is None or body.encoding != "base64" or body.text is None:
        return body
    try:
        text = base64.b64decode(body.text, validate=True).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return body
    return msgspec.structs.replace(body, text=text)
