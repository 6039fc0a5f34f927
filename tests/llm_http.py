"""The wire of the test server: as much of HTTP/1.1 as the SDKs use, parsed by hand for speed."""

from __future__ import annotations

import asyncio
from typing import Protocol, cast

from tests.llm_replies import Incoming, Outgoing


class Server(Protocol):
    """Who decides what to answer; the connection keeps itself in ``connections``."""

    connections: set[Connection]
    connections_made: int

    def handle(
        self, target: str, headers: dict[str, str], body: bytes
    ) -> Outgoing | tuple[Incoming, Outgoing, float]:
        """An answer for now, or a model call with its answer and the seconds to wait."""

    def settle(self, incoming: Incoming, outgoing: Outgoing) -> None:
        """Called when the answer of a model call leaves."""


class Connection(asyncio.Protocol):
    """One client connection: keep-alive, Content-Length bodies, one request at a time."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.buffer = bytearray()
        self.busy = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.server.connections.add(self)
        self.server.connections_made += 1

    def connection_lost(self, exc: Exception | None) -> None:
        self.server.connections.discard(self)

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        if not self.busy:
            self.read_request()

    def read_request(self) -> None:
        head_end = self.buffer.find(b"\r\n\r\n")
        if head_end < 0:
            return
        lines = self.buffer[:head_end].decode("latin-1").split("\r\n")
        fields = (line.partition(":") for line in lines[1:])
        headers = {name.lower(): value.strip() for name, _, value in fields}
        body_end = head_end + 4 + int(headers.get("content-length", 0))
        if len(self.buffer) < body_end:
            return
        body = bytes(self.buffer[head_end + 4 : body_end])
        del self.buffer[:body_end]
        self.busy = True
        self.route(lines[0].split(" ")[1], headers, body)

    def route(self, target: str, headers: dict[str, str], body: bytes) -> None:
        handled = self.server.handle(target, headers, body)
        if isinstance(handled, Outgoing):
            self.write(handled)
            return
        incoming, outgoing, delay = handled
        if delay:
            asyncio.get_running_loop().call_later(delay, self.finish, incoming, outgoing)
        else:
            self.finish(incoming, outgoing)

    def finish(self, incoming: Incoming, outgoing: Outgoing) -> None:
        self.server.settle(incoming, outgoing)
        if outgoing.silence == "hang":
            return
        if outgoing.silence == "drop" or self.transport.is_closing():
            self.transport.abort()
            return
        self.write(outgoing)

    def write(self, outgoing: Outgoing) -> None:
        extra = "".join(f"{name}: {value}\r\n" for name, value in outgoing.headers.items())
        head = (
            f"HTTP/1.1 {outgoing.status} -\r\ncontent-type: application/json\r\n"
            f"content-length: {len(outgoing.body)}\r\n{extra}\r\n"
        )
        body = outgoing.body[: len(outgoing.body) // 2] if outgoing.cut else outgoing.body
        self.transport.write(head.encode() + body)
        if outgoing.cut:
            self.transport.close()
            return
        self.busy = False
        if self.buffer:
            self.read_request()
