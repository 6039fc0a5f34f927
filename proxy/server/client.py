"""The side of a connection that the agent's browser, or its HTTP client, is on."""

from __future__ import annotations

import socket
import struct
from asyncio import StreamReader, StreamWriter
from http import HTTPStatus

from trajudge.proxy.http.bodies import Framing
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
        if not bodiless:
            headers = replaced(headers, "Content-Length", str(len(body)))
        self.writer.write(response_bytes(status, reason, self._own(headers)))
        if not bodiless:
            self.writer.write(body)
            self.sent += len(body)
        await self.writer.drain()

    async def begin(
        self, status: int, reason: str, headers: HeaderFields, framing: Framing, version: str
    ) -> None:
        """Send the head of a response whose body follows in pieces."""
        headers = without(headers, "content-length")
        if framing.length is not None:
            headers = (*headers, ("Content-Length", str(framing.length)))
        elif framing.kind != "none":
            self._chunked = version == "HTTP/1.1"
            self.open = self.open and self._chunked
            if self._chunked:
                headers = (*headers, ("Transfer-Encoding", "chunked"))
        self.writer.write(response_bytes(status, reason, self._own(headers)))

    def _own(self, headers: HeaderFields) -> HeaderFields:
        kept = without(headers, "connection", "keep-alive")
        return kept if self.open else (*kept, ("Connection", "close"))

    async def piece(self, data: bytes) -> None:
        """Send a piece of the body, at once."""
        if self._chunked:
            self.writer.write(b"%x\r\n%b\r\n" % (len(data), data))
        else:
            self.writer.write(data)
        self.sent += len(data)
        await self.writer.drain()

    async def finish(self) -> None:
        """End the body that was sent in pieces."""
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
        self.open = False
        if sock := self.writer.get_extra_info("socket"):
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
