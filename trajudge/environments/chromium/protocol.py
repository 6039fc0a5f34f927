"""The DevTools protocol over a pipe: our own questions, and Playwright's beside them.

Chromium has one peer on its pipe. Messages that are not ours go to a relay (``process`` hands them
to Playwright) as the bytes that they are; answers to ours are decoded once, into what the caller
asks for. Playwright's Python side costs 100 ms for each megabyte of an answer, which is most of
what an accessibility tree took.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

if TYPE_CHECKING:
    from playwright.async_api import Page

T = TypeVar("T")

Send = Callable[[bytes], None]
Event = Mapping[str, Any]
Listener = Callable[[dict[str, Any]], None]

FIRST_ID = 1_000_000_000  # Playwright counts from 1
CLOSED = "Target page, context or browser has been closed"


def playwright_error() -> type[Exception]:
    """Return the class of Playwright's own errors; the package is an extra, and slow to import."""
    from playwright.async_api import Error  # noqa: PLC0415

    return Error


class ProtocolError(Exception):
    """Chromium refused a call, or is gone. ``message`` is one line."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class _Head(msgspec.Struct, rename={"session_id": "sessionId"}):
    """What says to whom a message goes."""

    id: int = 0
    session_id: str = ""
    method: str = ""


class _Reply(msgspec.Struct):
    result: dict[str, Any]


class _Notice(msgspec.Struct):
    params: dict[str, Any] = {}


class _Failure(msgspec.Struct):
    message: str = ""


class _Failed(msgspec.Struct):
    error: _Failure | None = None


class _Call(msgspec.Struct):
    """A question under way."""

    method: str
    session: str
    reply: asyncio.Future[bytes]


class ProtocolSession:
    """Calls and events of one target."""

    def __init__(self, protocol: Protocol, session_id: str) -> None:
        self._protocol = protocol
        self.id = session_id
        self._listeners: dict[str, list[Listener]] = {}

    def on(self, event: str, listener: Listener) -> None:
        """Call ``listener`` with the parameters of every such event."""
        self._listeners.setdefault(event, []).append(listener)

    async def send(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return what the call gives. Raises ProtocolError."""
        raw = await self._protocol.ask(method, params, self.id)
        return decoded(raw, _Reply).result

    def tell(self, method: str, params: Mapping[str, Any]) -> None:
        """Make a call whose answer nobody waits for: while a page leaves there is none."""
        self._protocol.tell(method, params, self.id)

    async def send_typed(self, method: str, params: Mapping[str, Any] | None, kind: type[T]) -> T:
        """Return what the call gives as ``kind``, a struct of the whole message with a field
        ``result``; parts that it does not name are skipped. Raises ProtocolError."""
        raw = await self._protocol.ask(method, params, self.id)
        return decoded(raw, kind)

    def hear(self, method: str, message: bytes) -> None:
        """Pass an event on to those who listen."""
        if listeners := self._listeners.get(method):
            parameters = decoded(message, _Notice).params
            for listener in listeners:
                listener(parameters)


class Protocol:
    """One Chromium's pipe, on one event loop. ``send`` writes a message to it; ``relay`` gets the
    messages that are for others."""

    def __init__(self, send: Send, relay: Send) -> None:
        self._send = send
        self._relay = relay
        self._ids = itertools.count(FIRST_ID)
        self._calls: dict[int, _Call] = {}
        self._sessions: dict[str, ProtocolSession] = {}
        self._root = ""
        self._closed = False

    async def open(self) -> None:
        """Attach to the browser, in a session of our own: Playwright hears nothing of it.
        Raises ProtocolError."""
        raw = await self.ask("Target.attachToBrowserTarget", None, "")
        self._root = decoded(raw, _Reply).result["sessionId"]
        root = ProtocolSession(self, self._root)
        root.on("Target.attachedToTarget", self._attached)
        root.on("Target.detachedFromTarget", self._detached)
        self._sessions[self._root] = root

    async def attach(self, target: str) -> ProtocolSession:
        """Return a session of our own at a target. Raises ProtocolError."""
        wanted = {"targetId": target, "flatten": True}
        raw = await self.ask("Target.attachToTarget", wanted, self._root)
        return self._sessions[decoded(raw, _Reply).result["sessionId"]]

    async def attach_page(self, page: Page) -> ProtocolSession:
        """Return a session of our own at Playwright's page. Raises ProtocolError."""
        session = await page.context.new_cdp_session(page)
        target = await session.send("Target.getTargetInfo")
        await session.detach()
        return await self.attach(target["targetInfo"]["targetId"])

    async def detach(self, session: ProtocolSession) -> None:
        """End a session of ours. Raises ProtocolError."""
        await self.ask("Target.detachFromTarget", {"sessionId": session.id}, self._root)

    async def ask(self, method: str, params: Mapping[str, Any] | None, session: str) -> bytes:
        """Return the answer's message as it came. Raises ProtocolError."""
        if self._closed or (session and session not in self._sessions):
            raise ProtocolError(CLOSED)
        reply: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        number = self.tell(method, params or {}, session)
        self._calls[number] = _Call(method, session, reply)
        try:
            return await reply
        finally:
            self._calls.pop(number, None)

    def tell(self, method: str, params: Mapping[str, Any], session: str) -> int:
        """Send a call and return its number."""
        number = next(self._ids)
        message = {"id": number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        self._send(msgspec.json.encode(message))
        return number

    def receive(self, message: bytes) -> None:
        """Take a message from Chromium."""
        head = decoded(message, _Head)
        if call := self._calls.get(head.id):
            _settle(call, message)
        elif head.id >= FIRST_ID:
            return  # nobody waits any longer
        elif session := self._sessions.get(head.session_id):
            session.hear(head.method, message)
        else:
            self._relay(message)

    def close(self) -> None:
        """Chromium is gone: whoever waits waits in vain."""
        self._closed = True
        self._fail(lambda _: True)

    def _attached(self, event: Event) -> None:
        session = event["sessionId"]
        self._sessions[session] = ProtocolSession(self, session)

    def _detached(self, event: Event) -> None:
        gone = event["sessionId"]
        self._sessions.pop(gone, None)
        self._fail(lambda call: call.session == gone)

    def _fail(self, concerned: Callable[[_Call], bool]) -> None:
        for call in list(self._calls.values()):
            if concerned(call) and not call.reply.done():
                call.reply.set_exception(ProtocolError(CLOSED))


class Incoming(asyncio.Protocol):
    """Chromium's messages, each ended by a zero byte."""

    def __init__(self, receive: Callable[[bytes], None], ended: Callable[[], None]) -> None:
        self._receive = receive
        self._ended = ended
        self._begun: list[bytes] = []

    def data_received(self, received: bytes) -> None:
        first, *others = received.split(b"\0")
        self._begun.append(first)
        for part in others:
            message = b"".join(self._begun)
            self._begun = [part]
            self._receive(message)

    def connection_lost(self, _: Exception | None) -> None:
        self._ended()


def decoded(message: bytes, kind: type[T]) -> T:
    """Return a message as ``kind``. A page may hold half a surrogate pair, which Chromium sends as
    it is and only Python's own reader takes."""
    try:
        return msgspec.json.decode(message, type=kind)
    except msgspec.DecodeError:
        return msgspec.convert(json.loads(message), kind)


def _settle(call: _Call, message: bytes) -> None:
    if call.reply.done():
        return
    if b'"error"' in message[:64] and (failure := decoded(message, _Failed).error):
        problem = f"Protocol error ({call.method}): {failure.message}"
        call.reply.set_exception(ProtocolError(problem))
    else:
        call.reply.set_result(message)
