"""Requests and responses of a run. Only what checks read is decoded, and only when it is read."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from functools import cached_property
from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec
from msgspec import Raw, Struct

# A body beyond this is no form that an agent filled in.
MAX_BODY = 32 * 2**20
_ABSENT = Raw(b"null")
_STATIC = (".css", ".js", ".png", ".jpg", ".jpeg", ".gif", ".svg", ".woff", ".woff2", ".ttf")
STATIC_SUFFIXES = (*_STATIC, ".ico", ".webp")

Resources = Callable[[str], bytes | None]
"""The body that a Playwright trace keeps beside its events, by its name; None if it has none."""


class Pair(Struct, frozen=True):
    """A header, cookie, or form field."""

    name: str = ""
    value: str | None = None


class Body(Struct, frozen=True, rename={"mime_type": "mimeType", "stored": "_sha1"}):
    """The body of a request or a response, as HAR writes it."""

    mime_type: str = ""
    text: str | None = None
    params: tuple[Pair, ...] = ()
    encoding: str = ""
    stored: str | None = None


class Request(Struct, frozen=True, rename={"post_data": "postData"}):
    """``headers`` and ``post_data`` are JSON until they are read."""

    method: str
    url: str
    headers: Raw = _ABSENT
    post_data: Raw = _ABSENT


class Response(Struct, frozen=True, rename={"redirect_url": "redirectURL"}):
    """``headers``, ``cookies`` and ``content`` are JSON until they are read."""

    status: int | float | None = None
    headers: Raw = _ABSENT
    cookies: Raw = _ABSENT
    content: Raw = _ABSENT
    redirect_url: str | None = None


class Entry(Struct, frozen=True, rename={"resource_type": "_resourceType"}):
    """One entry of a HAR file, and a snapshot of a Playwright trace: the same fields."""

    request: Request
    response: Response = Response()
    resource_type: str | None = None


def _pairs(raw: Raw) -> tuple[Pair, ...]:
    """Return a list of pairs; nothing from anything else: agents' browsers write these files."""
    try:
        return msgspec.json.decode(raw, type=tuple[Pair, ...] | None) or ()
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return ()


def _body(raw: Raw, resources: Resources | None) -> Body | None:
    if len(bytes(raw)) > MAX_BODY:
        return None
    try:
        body: Body | None = msgspec.json.decode(raw, type=Body | None)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None
    if body is None or body.text is not None:
        return _decoded(body)
    stored = resources(body.stored) if body.stored and resources else None
    if stored is None:
        return body
    return msgspec.structs.replace(body, text=stored.decode("utf-8", "replace"))


def _decoded(body: Body | None) -> Body | None:
    """HAR keeps what is no text as base64."""
    if body is None or body.encoding != "base64" or body.text is None:
        return body
    try:
        text = base64.b64decode(body.text, validate=True).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return body
    return msgspec.structs.replace(body, text=text)


class Event(Struct, dict=True):
    """One request and its response, with what checks ask of them."""

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
        """None where the response was not recorded; HAR writes -1 for an aborted request."""
        status = self.entry.response.status
        return None if status is None else int(status)

    @cached_property
    def static(self) -> bool:
        """Whether a style, a script, a picture or a font was asked for."""
        url = self.entry.request.url
        if not any(suffix in url for suffix in STATIC_SUFFIXES):
            return False
        try:
            return urlsplit(url).path.endswith(STATIC_SUFFIXES)
        except ValueError:
            return False

    @cached_property
    def headers(self) -> dict[str, str]:
        """Of the request, by lower-case name; the last of a repeated one."""
        return {pair.name.lower(): pair.value or "" for pair in _pairs(self.entry.request.headers)}

    @cached_property
    def response_headers(self) -> tuple[Pair, ...]:
        """Of the response, in order."""
        return _pairs(self.entry.response.headers)

    @cached_property
    def listed_cookies(self) -> dict[str, str]:
        """Cookies that the recorder listed for the response, decoded."""
        pairs = _pairs(self.entry.response.cookies)
        return {pair.name: unquote(pair.value or "") for pair in pairs}

    @cached_property
    def cookies(self) -> dict[str, str]:
        """Cookies of the response, decoded, also those in its headers alone."""
        found = {}
        for pair in self.response_headers:
            if pair.name.lower() == "set-cookie":
                for line in (pair.value or "").splitlines():
                    name, _, value = line.partition(";")[0].partition("=")
                    found[name.strip()] = unquote(value)
        return found | self.listed_cookies

    @cached_property
    def post_data(self) -> Body | None:
        """What was sent."""
        return _body(self.entry.request.post_data, self.resources)

    @cached_property
    def content(self) -> Body | None:
        """What came back, where it was recorded."""
        return _body(self.entry.response.content, self.resources)

    def is_document(self) -> bool:
        """Tell whether a page was loaded into the tab: not a frame, not a script's request.

        Browsers that say so are believed (``Sec-Fetch-Dest``, the recorder's resource type); of
        others, what is asked for as HTML and not by a script.
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
        """Return what the released package takes for the load of a page."""
        if self.entry.request.method != "GET":
            return False
        headers = {name: value.lower() for name, value in self.headers.items()}
        accept = headers.get("accept", "")
        if "sec-fetch-user" not in headers:
            return accept.startswith("text/html")
        said = tuple(headers.get(f"sec-fetch-{part}") for part in ("dest", "mode", "user"))
        return said == ("document", "navigate", "?1") and "text/html" in accept


class Trace(Struct, dict=True):
    """The events of a run, in the order in which they were sent."""

    events: tuple[Event, ...]
    source: str = "trace"

    @cached_property
    def relevant(self) -> tuple[Event, ...]:
        """Without styles, scripts, pictures and fonts."""
        return tuple(event for event in self.events if not event.static)

    @cached_property
    def documents(self) -> tuple[Event, ...]:
        """The loads of pages."""
        return tuple(event for event in self.relevant if event.is_document())

    @cached_property
    def release_navigations(self) -> tuple[Event, ...]:
        """The loads of pages, as the released package sees them."""
        return tuple(event for event in self.relevant if event.is_release_navigation())

    @cached_property
    def memory(self) -> dict[Any, Any]:
        """What checks computed of the events, by (event, question)."""
        return {}
