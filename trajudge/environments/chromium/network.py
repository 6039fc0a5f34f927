"""What a run sent and received, heard from the browser and written as HAR (``rules.har``).

Entries stand in the order in which they were sent. Cookies and credentials are left out, and so
are icons of the tab, which the browser asks for when it likes, and what it took from its cache.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from trajudge.rules.har import RecordedRequest, RecordedResponse, har_document, har_entry

if TYPE_CHECKING:
    from trajudge.environments.chromium.protocol import ProtocolSession

MAX_ENTRIES = 10_000
_AWAITED = frozenset({"XHR", "Fetch"})


@dataclass
class Exchange:
    """A request and what came of it, as the DevTools protocol tells it."""

    sent: dict[str, Any]
    headers: dict[str, str]
    response: dict[str, Any] = field(default_factory=dict)
    response_headers: dict[str, str] = field(default_factory=dict)
    finished: float | None = None
    size: int = 0
    error: str | None = None
    cached: bool = False


def inside(url: str, origin: str) -> bool:
    """Tell whether an address is on the origin, by its plain spelling: others are not tried."""
    return url == origin or url.startswith((f"{origin}/", f"{origin}?", f"{origin}#"))


class NetworkTrace:
    """The exchanges of a run at ``origin``; until ``begun`` says that its first page is there,
    those of the page that it replaces are left out. ``awaited``: requests of scripts that have no
    answer yet."""

    def __init__(self, origin: str) -> None:
        self.begun = False
        self._origin = origin
        self.exchanges: list[Exchange] = []
        self.awaited: set[str] = set()
        self._hops: dict[str, list[Exchange]] = {}
        self._extra: dict[tuple[str, str], list[dict[str, str]]] = {}

    def listen(
        self, cdp: ProtocolSession, changed: Callable[[], None], current: Callable[[], NetworkTrace]
    ) -> None:
        """Hear the page's network events; they go to the trace that is current then."""

        def hear(name: str) -> Callable[[dict[str, Any]], None]:
            def heard(event: dict[str, Any]) -> None:
                getattr(current(), f"_{name}")(event)
                changed()

            return heard

        for event, name in _EVENTS.items():
            cdp.on(f"Network.{event}", hear(name))

    def give_up(self) -> None:
        """Wait for no answer any longer."""
        self.awaited.clear()

    def _sent(self, event: dict[str, Any]) -> None:
        if len(self.exchanges) >= MAX_ENTRIES or not _is_traffic(event):
            return
        if not self.begun and not inside(event["documentURL"], self._origin):
            return
        name = event["requestId"]
        hops = self._hops.setdefault(name, [])
        if hops and (redirect := event.get("redirectResponse")):
            hops[-1].response = redirect
            hops[-1].finished = event["timestamp"]
        exchange = Exchange(event, dict(event["request"].get("headers", {})))
        hops.append(exchange)
        self.exchanges.append(exchange)
        if event.get("type") in _AWAITED:
            self.awaited.add(name)
        self._match(name)

    def _sent_headers(self, event: dict[str, Any]) -> None:
        self._extra.setdefault((event["requestId"], "sent"), []).append(event["headers"])
        self._match(event["requestId"])

    def _received_headers(self, event: dict[str, Any]) -> None:
        self._extra.setdefault((event["requestId"], "received"), []).append(event["headers"])
        self._match(event["requestId"])

    def _match(self, name: str) -> None:
        """Match a request with its headers on the wire, which come apart from it, one a hop."""
        hops = self._hops.get(name, [])
        for hop, headers in zip(hops, self._extra.get((name, "sent"), []), strict=False):
            hop.headers = headers
        for hop, headers in zip(hops, self._extra.get((name, "received"), []), strict=False):
            hop.response_headers = headers

    def _received(self, event: dict[str, Any]) -> None:
        if hops := self._hops.get(event["requestId"]):
            hops[-1].response = event["response"]
            hops[-1].cached |= bool(event["response"].get("fromDiskCache"))

    def _from_cache(self, event: dict[str, Any]) -> None:
        if hops := self._hops.get(event["requestId"]):
            hops[-1].cached = True

    def _finished(self, event: dict[str, Any]) -> None:
        self.awaited.discard(event["requestId"])
        if hops := self._hops.get(event["requestId"]):
            hops[-1].finished = event["timestamp"]
            hops[-1].size = int(event.get("encodedDataLength", 0))

    def _failed(self, event: dict[str, Any]) -> None:
        self._finished(event)
        if hops := self._hops.get(event["requestId"]):
            hops[-1].error = str(event.get("errorText") or "failed")

    def har(self, browser_version: str) -> dict[str, Any]:
        """Return the trace as a HAR 1.2 document."""
        sent = [exchange for exchange in self.exchanges if not exchange.cached]
        return har_document([har_entry(_recorded(exchange)) for exchange in sent], browser_version)


_EVENTS = {
    "requestWillBeSent": "sent",
    "requestWillBeSentExtraInfo": "sent_headers",
    "responseReceived": "received",
    "requestServedFromCache": "from_cache",
    "responseReceivedExtraInfo": "received_headers",
    "loadingFinished": "finished",
    "loadingFailed": "failed",
}


def _is_traffic(event: dict[str, Any]) -> bool:
    url = event["request"]["url"]
    is_icon = event.get("type") == "Other" and url.endswith("/favicon.ico")
    return url.startswith(("http:", "https:")) and not is_icon


def _recorded(exchange: Exchange) -> RecordedRequest:
    sent, response = exchange.sent, exchange.response
    started = float(sent["timestamp"])
    ended = exchange.finished if exchange.finished is not None else started
    timing = response.get("timing") or {}
    total = max(0.0, (ended - started) * 1000)
    return RecordedRequest(
        method=sent["request"]["method"],
        url=sent["request"]["url"],
        headers=exchange.headers,
        body=_body(sent["request"]),
        response=RecordedResponse(
            status=response.get("status", -1),
            status_text=response.get("statusText", ""),
            headers=exchange.response_headers or response.get("headers", {}),
            mime_type=response.get("mimeType", ""),
            size=exchange.size,
        ),
        started=datetime.fromtimestamp(sent["wallTime"], UTC).isoformat(),
        total=total,
        wait=min(total, max(0.0, float(timing.get("receiveHeadersEnd", 0.0)))),
        resource_type=str(sent.get("type", "Other")),
        error=exchange.error,
    )


def _body(request: dict[str, Any]) -> str | None:
    if "postData" in request:
        return str(request["postData"])
    if not request.get("hasPostData"):
        return None
    parts = [entry.get("bytes", "") for entry in request.get("postDataEntries", [])]
    try:
        return b"".join(map(base64.b64decode, parts)).decode("utf-8", "replace")
    except binascii.Error:
        return ""
