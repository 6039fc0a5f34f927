"""Model APIs by their base address: passed on as they stream, and what each call cost noted.

Nothing of a call is changed but the fields that hold for a connection and the encoding: the answer
must be readable. Its bytes go to the agent before they are looked at.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import orjson

from trajudge.proxy.efficiency.latency import Span
from trajudge.proxy.efficiency.streams import EventStream, parsed
from trajudge.proxy.efficiency.usage import StreamedAnswer, usage_of
from trajudge.proxy.http import messages
from trajudge.proxy.http.bodies import response_framing
from trajudge.proxy.http.messages import RequestHead, ResponseHead
from trajudge.proxy.http.origins import OriginAddress, OriginConnection, OriginPool
from trajudge.proxy.server.client import ClientConnection, reason_of
from trajudge.proxy.server.forwarding import FAILURES
from trajudge.proxy.server.tasks import ProxyTask
from trajudge.util.errors import UserError

PREFIX = "/__api/"
PUBLIC: Mapping[str, str] = {
    "openai": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com",
}
_MAX_ANSWER = 64 * 2**20  # bytes of an answer that are read for its usage


class ModelApi(NamedTuple):
    """A model API: ``path`` goes before that of a request."""

    name: str
    origin: OriginAddress
    path: str


def model_api(text: str, defaults: Mapping[str, str]) -> ModelApi:
    """Parse ``openai``, ``anthropic`` or ``NAME=URL``; ``defaults`` are URLs by name. Raises
    UserError."""
    name, equals, address = text.partition("=")
    if name not in PUBLIC:
        raise UserError(f"--api {text!r:.80}: name one of {', '.join(PUBLIC)}, or NAME=URL")
    parts = urlsplit(address if equals else defaults.get(name) or PUBLIC[name])
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UserError(f"--api {text!r:.80} has no URL: write {name}={PUBLIC[name]}")
    tls = parts.scheme == "https"
    origin = OriginAddress(parts.hostname, parts.port or (443 if tls else 80), tls)
    return ModelApi(name, origin, parts.path.rstrip("/"))


class ApiRequest(NamedTuple):
    """A request to a model API, and who waits for its answer. ``path`` is what stands after the
    API's base address."""

    client: ClientConnection
    head: RequestHead
    body: bytes
    path: str
    received: float


@dataclass(eq=False)
class ModelCall:
    """A call under way; ``usage`` None: the answer did not state it."""

    api: str
    path: str
    model: str
    stream: bool
    start: float
    sent: float | None = None
    first: float | None = None
    status: int = -1
    usage: dict[str, int | None] | None = None
    error: str | None = None

    def event(self, end: float) -> dict[str, Any]:
        """Return the fields of the call's event; times in milliseconds."""
        sent = end if self.sent is None else self.sent
        return {
            "api": self.api,
            "path": self.path,
            "model": self.model or None,
            "stream": self.stream,
            "status": self.status,
            "usage": self.usage,
            "ttft_ms": None if self.first is None else _ms(self.first - self.start),
            "duration_ms": _ms(end - self.start),
            "proxy_ms": _ms(sent - self.start),
            "error": self.error,
        }


def _ms(seconds: float) -> float:
    return round(1000 * seconds, 3)


async def call_model(api: ModelApi, pool: OriginPool, request: ApiRequest, task: ProxyTask) -> None:
    """Pass a request on and its answer back; a POST counts as a call of the task."""
    call, client = _call(api, request), request.client
    try:
        await _pass_on(call, api, pool, request)
    except FAILURES as error:
        call.error = f"{type(error).__name__}: {error}"[:200]
        if call.status == -1:
            where = f"{api.origin.host}:{api.origin.port}"
            await _refuse(client, f"the model API at {where} does not answer: {call.error}")
        else:
            client.open = False  # it ends where the API's answer ended, without its proper end
    finally:
        end = time.perf_counter()
        if request.head.method == "POST":
            task.spans += [Span("proxy", call.start, end), Span("model", call.sent or end, end)]
            task.calls.append(call.event(end))
            task.log.write("model", task=task.id, k=task.loads, **task.calls[-1])


async def _refuse(client: ClientConnection, message: str) -> None:
    """Send an error in a form that the SDKs of OpenAI and Anthropic show: they pass over pages."""
    body = orjson.dumps({"type": "error", "error": {"type": "api_error", "message": message}})
    await client.send(502, reason_of(502), (("Content-Type", "application/json"),), body)


def _call(api: ModelApi, request: ApiRequest) -> ModelCall:
    asked = next(parsed(request.body), None) if request.body else None
    fields = asked if isinstance(asked, dict) else {}
    path, model = request.path.partition("?")[0], str(fields.get("model") or "")
    return ModelCall(api.name, path, model, bool(fields.get("stream")), request.received)


async def _pass_on(call: ModelCall, api: ModelApi, pool: OriginPool, request: ApiRequest) -> None:
    client, head, body, target = request.client, request.head, request.body, api.path + request.path
    headers = messages.end_to_end(head.headers, "expect", "content-length")
    headers = messages.replaced(headers, "Host", _authority(api.origin))
    headers = messages.replaced(headers, "Accept-Encoding", "identity")
    if body or head.method == "POST":
        headers = (*headers, ("Content-Length", str(len(body))))
    message = messages.request_bytes(head.method, target or "/", headers) + body
    call.sent = time.perf_counter()
    connection, answer = await pool.send(api.origin, message, repeatable=True)
    call.status = answer.status
    try:
        await _pass_back(call, connection, answer, client, head)
    except BaseException:
        connection.close()
        raise
    pool.release(connection, answer, response_framing(head.method, answer))


def _authority(origin: OriginAddress) -> str:
    return origin.host if origin.default_port else f"{origin.host}:{origin.port}"


async def _pass_back(
    call: ModelCall,
    connection: OriginConnection,
    answer: ResponseHead,
    client: ClientConnection,
    head: RequestHead,
) -> None:
    """Send the answer piece by piece, and read from it what the call cost."""
    framing = response_framing(head.method, answer)
    headers = messages.end_to_end(answer.headers)
    if framing.kind == "none":
        await client.send(answer.status, answer.reason, headers, b"", bodiless=True)
        return
    await client.begin(answer.status, answer.reason, headers, framing, head.version)
    streamed = "text/event-stream" in messages.field(answer.headers, "content-type").lower()
    events, state, whole = EventStream(), StreamedAnswer(), bytearray()

    def look(piece: bytes, arrived: float) -> None:
        if streamed:
            _read_events(call, state, events, piece, arrived)
        elif len(whole) < _MAX_ANSWER:
            whole.extend(piece)

    try:
        await client.pass_on(connection.reader, framing, look)
    finally:
        if streamed:
            call.usage, call.model = state.usage, state.model or call.model
            call.error = state.error or (None if state.ended else "the stream ended early")
        else:
            _read_whole(call, bytes(whole))


def _read_events(
    call: ModelCall, state: StreamedAnswer, events: EventStream, piece: bytes, arrived: float
) -> None:
    for event in events.feed(piece):
        state.feed(event)
        if state.began and call.first is None:
            call.first = arrived


def _read_whole(call: ModelCall, text: bytes) -> None:
    answer = next(parsed(text), None)
    call.usage = usage_of(answer)
    if isinstance(answer, dict) and isinstance(answer.get("model"), str):
        call.model = answer["model"]
    if call.status >= 400:
        call.error = f"status {call.status}"
