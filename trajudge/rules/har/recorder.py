"""Record the network trace of a Playwright browser context while it is used (the sync API)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from trajudge.rules.har.records import is_static
from trajudge.rules.har.writing import RecordedRequest, RecordedResponse, har_entry

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Request, Response


class TraceRecorder:
    """Hears the requests of a context from when it is made. With ``secrets`` cookies and
    credentials are kept, with ``contents`` the JSON documents that came back."""

    def __init__(
        self, context: BrowserContext, *, secrets: bool = False, contents: bool = False
    ) -> None:
        self.context = context
        self._secrets, self._contents = secrets, contents
        self._sent: list[Request] = []
        self._ended: dict[Request, str | None] = {}
        self._responses: dict[Request, Response] = {}
        self._entries: dict[Request, dict[str, Any]] = {}
        context.on("request", self._asked)
        context.on("response", self._answered)
        context.on("requestfinished", self._finished)
        context.on("requestfailed", self._failed)

    def _asked(self, request: Request) -> None:
        self._sent.append(request)

    def _answered(self, response: Response) -> None:
        self._responses[response.request] = response

    def _finished(self, request: Request) -> None:
        self._ended[request] = None

    def _failed(self, request: Request) -> None:
        self._ended[request] = request.failure or "failed"

    def entries(self) -> list[dict[str, Any]]:
        """Return the HAR entries of the requests so far, in the order in which they were sent.

        Ask while the context is open: Playwright is asked for the headers on the wire.
        """
        return [self._entry(request) for request in self._sent]

    def _entry(self, request: Request) -> dict[str, Any]:
        if request in self._entries:
            return self._entries[request]
        ended = request in self._ended
        timing = request.timing
        started = datetime.fromtimestamp(max(timing["startTime"], 0.0) / 1000, UTC)
        total = max(timing["responseEnd"], 0.0)
        body = request.post_data_buffer
        entry = har_entry(
            RecordedRequest(
                method=request.method,
                url=request.url,
                headers=_headers(request) if ended else request.headers,
                body=None if body is None else body.decode("utf-8", "replace"),
                response=self._response(request, ended=ended),
                started=started.isoformat(),
                total=total,
                wait=min(total, max(timing["responseStart"], 0.0)),
                resource_type=request.resource_type,
                error=self._ended.get(request),
            ),
            secrets=self._secrets,
        )
        if ended:
            self._entries[request] = entry
        return entry

    def _response(self, request: Request, *, ended: bool) -> RecordedResponse:
        response = self._responses.get(request)
        if response is None:
            return RecordedResponse()
        headers = _headers(response) if ended else response.headers
        kind = {name.lower(): value for name, value in headers.items()}.get("content-type", "")
        asked = self._contents and ended and "json" in kind and not is_static(request.url)
        text = _text(response) if asked else None
        return RecordedResponse(
            status=response.status,
            status_text=response.status_text,
            headers=headers,
            mime_type=kind,
            size=len(text.encode()) if text else 0,
            text=text,
        )


def _headers(message: Request | Response) -> dict[str, str]:
    """Return the headers on the wire, and those that the page knows where there are no others."""
    from playwright.sync_api import Error  # noqa: PLC0415 - slow to import

    try:
        return message.all_headers()
    except Error:
        return message.headers


def _text(response: Response) -> str | None:
    """Return the body; None where the browser has let it go."""
    from playwright.sync_api import Error  # noqa: PLC0415 - slow to import

    try:
        return response.body().decode("utf-8", "replace")
    except Error:
        return None
