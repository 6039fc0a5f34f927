"""Requests and responses of a run. Only what checks read is decoded, and only when it is read."""

from __future__ import annotations

from functools import cached_property
from typing import Any
from urllib.parse import unquote

import msgspec
from msgspec import Struct

from trajudge.rules.har.flaws import Flaw
from trajudge.rules.har.records import (
    Body,
    Entry,
    Pair,
    Resources,
    in_time_order,
    is_static,
    pairs_of,
    whole_body,
    written_body,
)


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
    def headers(self) -> dict[str, str]:
        """Of the request, by lower-case name; the last of a repeated one."""
        return {
            pair.name.lower(): pair.value or "" for pair in pairs_of(self.entry.request.headers)
        }

    @cached_property
    def response_headers(self) -> tuple[Pair, ...]:
        """Of the response, in order."""
        return pairs_of(self.entry.response.headers)

    @cached_property
    def listed_cookies(self) -> dict[str, str]:
        """Cookies that the recorder listed for the response, decoded."""
        pairs = pairs_of(self.entry.response.cookies)
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
        """What was sent. The text is None where it was not recorded: Playwright leaves it blank."""
        body = whole_body(self.entry.request.post_data, self.resources)
        if body is None or body.text or not (body.params or self._sent_bytes):
            return body
        return msgspec.structs.replace(body, text=None)

    @property
    def post_recorded(self) -> bool:
        """Whether the trace holds what was sent; nothing, where nothing was."""
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
        """What was sent, as far as it stands in the entry itself."""
        return written_body(self.entry.request.post_data)

    @cached_property
    def content(self) -> Body | None:
        """What came back, where it was recorded."""
        return whole_body(self.entry.response.content, self.resources)

    @property
    def written_content(self) -> Body | None:
        """What came back, as far as it stands in the entry itself."""
        return written_body(self.entry.response.content)

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
    """The events of a run, in the order of its file; and what cannot be read.

    What the sound mode asks for (``relevant``, ``documents``, ``tabs``) is in the order in which
    the requests were sent; the released package reads the order of the file (``filed``).
    """

    events: tuple[Event, ...]
    source: str = "trace"
    flaws: tuple[Flaw, ...] = ()

    @cached_property
    def filed(self) -> tuple[Event, ...]:
        """Without styles, scripts, pictures and fonts, in the order of the file."""
        return tuple(event for event in self.events if not is_static(event.entry.request.url))

    @cached_property
    def relevant(self) -> tuple[Event, ...]:
        """Without styles, scripts, pictures and fonts, in the order in which they were sent."""
        order = in_time_order([event.entry for event in self.filed])
        return tuple(self.filed[at] for at in order)

    @cached_property
    def tabs(self) -> tuple[tuple[Event, ...], ...]:
        """``relevant`` by the tab that sent it. A trace that names at most one tab has one."""
        tabs: dict[str, list[Event]] = {}
        for event in self.relevant:
            tabs.setdefault(str(event.entry.page or ""), []).append(event)
        return tuple(map(tuple, tabs.values())) if len(tabs.keys() - {""}) > 1 else (self.relevant,)

    @cached_property
    def documents(self) -> tuple[Event, ...]:
        """The loads of pages."""
        return tuple(event for event in self.relevant if event.is_document())

    @cached_property
    def release_navigations(self) -> tuple[Event, ...]:
        """The loads of pages, as the released package sees them."""
        return tuple(event for event in self.filed if event.is_release_navigation())

    @cached_property
    def memory(self) -> dict[Any, Any]:
        """What checks computed of the events, by (event, question)."""
        return {}
