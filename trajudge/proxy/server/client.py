"""The side of a connection that the agent's browser, or its HTTP client, is on."""

from __future__ import annotations

import asyncio
import socket
import struct
import time
from asyncio import StreamReader, StreamWriter
from collections.abc import Callable
from contextlib import aclosing
from http import HTTPStatus

from trajudge.proxy.http.bodies import Framing, pieces
from trajudge.proxy.http.messages import HeaderFields, field, replaced, response_bytes, without

_SKETCH = '<!doctype html><meta charset="utf-8"><title>{title}</title><h1>{title}</h1><p>{text}</p>'


class ClientConnection:
    """Writes responses. ``sent`` counts the bytes of bodies; ``open`` is False once no further
    response can be sent."""

    def __init__(self, reader: StreamReader, writer: StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.open = True
        self.sent = 0
        self._chunked = False
        self._head = b""
        self._flushing: asyncio.TimerHandle | None = None

    @property
    def gone(self) -> bool:
        """Whether the client has ended the connection."""
        return self.writer.is_closing() or self.reader.at_eof()

    async def send(
        self,
        status: int,
        reason: str,
        headers: HeaderFields,
        body: bytes,
        *,
        bodiless: bool = False,
    ) -> None:
        """Send a whole response; ``bodiless`` (HEAD, 204, 304) keeps the fields as they are."""
        if bodiless:
            body = b""
        else:
            headers = replaced(headers, "Content-Length", str(len(body)))
        self.writer.write(response_bytes(status, reason, self._own(headers)) + body)
        self.sent += len(body)
        await self.writer.drain()

    async def begin(
        self, status: int, reason: str, headers: HeaderFields, framing: Framing, version: str
    ) -> None:
        """Send the head of a response whose body follows in pieces.

        It goes with the first piece, if that is there already, so that the other side wakes once.
        """
        headers = without(headers, "content-length")
        if framing.length is not None:
            headers = (*headers, ("Content-Length", str(framing.length)))
        elif framing.kind != "none":
            self._chunked = version == "HTTP/1.1"
            self.open = self.open and self._chunked
            if self._chunked:
                headers = (*headers, ("Transfer-Encoding", "chunked"))
        self._head = response_bytes(status, reason, self._own(headers))
        # A timer and not ``call_soon``: once it is cancelled the loop has no turn for it.
        self._flushing = asyncio.get_running_loop().call_later(0, self.flush)

    def flush(self) -> None:
        """Send a head that waits for its first piece."""
        if self._head and not self.writer.is_closing():
            self.writer.write(self._head)
            self._head = b""

    def _own(self, headers: HeaderFields) -> HeaderFields:
        kept = without(headers, "connection", "keep-alive")
        return kept if self.open else (*kept, ("Connection", "close"))

    async def piece(self, data: bytes) -> None:
        """Send a piece of the body, at once."""
        head, self._head = self._head, b""
        if head and self._flushing is not None:
            self._flushing.cancel()
        self.writer.write(head + (b"%x\r\n%b\r\n" % (len(data), data) if self._chunked else data))
        self.sent += len(data)
        await self.writer.drain()

    async def pass_on(
        self,
        reader: StreamReader,
        framing: Framing,
        look: Callable[[bytes, float], None] | None = None,
    ) -> None:
        """Send a body piece by piece as it comes from ``reader``, and end it. ``look`` gets each
        piece once it was sent, with the time of its arrival. Raises as ``pieces``."""
        async with aclosing(pieces(reader, framing)) as body:
            async for piece in body:
                arrived = time.perf_counter()
                await self.piece(piece)
                if look is not None:
                    look(piece, arrived)
        await self.finish()

    async def finish(self) -> None:
        """End the body that was sent in pieces."""
        self.flush()
        if self._chunked:
            self.writer.write(b"0\r\n\r\n")
            self._chunked = False
            await self.writer.drain()

    async def sentence(self, status: int, text: str) -> None:
        """Send a short page of ours: what is wrong, and what to do."""
        title = f"{status} {reason_of(status)}"
        escaped = text.replace("&", "&amp;").replace("<", "&lt;")
        page = _SKETCH.format(title=title, text=escaped).encode()
        kind = (("Content-Type", "text/html; charset=utf-8"), ("Cache-Control", "no-store"))
        await self.send(status, reason_of(status), kind, page)

    def reset(self) -> None:
        """Reset the connection: the client sees no orderly end."""
        self.open, self._head = False, b""
        sock = self.writer.get_extra_info("socket")
        if sock and sock.fileno() >= 0:  # a tunnel may have closed it
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


def reason_of(status: int) -> str:
    """Return the phrase of a status, as in ``503 Service Unavailable``."""
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Unknown"


def asks_to_continue(headers: HeaderFields) -> bool:
    """Tell whether the client waits for ``100 Continue`` before it sends the body."""
    return field(headers, "expect").lower() == "100-continue"
