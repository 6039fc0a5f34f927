"""Connections to origins, kept for the next request."""

from __future__ import annotations

import asyncio
import ssl
from asyncio import StreamReader, StreamWriter
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from trajudge.proxy.http.bodies import Framing
from trajudge.proxy.http.messages import MAX_HEAD, ResponseHead, keeps_alive, read_response

LOOPBACK = ("127.0.0.1", "::1", "localhost")
_MAX_IDLE = 32  # connections per origin
_CONNECT_PATIENCE = 20.0  # seconds


class OriginAddress(NamedTuple):
    """Where a server listens; ``name`` is what its certificate is for, if not ``host``."""

    host: str
    port: int
    tls: bool = False
    name: str = ""

    @property
    def default_port(self) -> bool:
        return self.port == (443 if self.tls else 80)


async def connect(
    origin: OriginAddress, protocols: tuple[str, ...] = ("http/1.1",)
) -> tuple[StreamReader, StreamWriter]:
    """Open a connection, by TLS with an offer of ``protocols``. Raises OSError (TimeoutError among
    them).

    A server on loopback is a site under test: its certificate is its own and proves nothing.
    """
    context = _tls_context(origin.host in LOOPBACK, protocols) if origin.tls else None
    opening = asyncio.open_connection(
        origin.host,
        origin.port,
        ssl=context,
        server_hostname=(origin.name or origin.host) if context else None,
        limit=MAX_HEAD,
        happy_eyeballs_delay=0.25,
    )
    async with asyncio.timeout(_CONNECT_PATIENCE):
        return await opening


async def protocol_of(origin: OriginAddress) -> str:
    """Return what a server would speak with a browser: ``h2``, or else ``http/1.1``. Raises
    OSError."""
    if not origin.tls:
        return "http/1.1"
    _, writer = await connect(origin, ("h2", "http/1.1"))
    chosen = writer.get_extra_info("ssl_object").selected_alpn_protocol()
    writer.transport.abort()
    return "h2" if chosen == "h2" else "http/1.1"


@dataclass(eq=False)
class OriginConnection:
    """A connection; ``served`` counts the requests before the current one."""

    origin: OriginAddress
    reader: StreamReader
    writer: StreamWriter
    served: int = 0

    @property
    def usable(self) -> bool:
        return not self.reader.at_eof() and not self.writer.is_closing()

    def close(self) -> None:
        """Close at once: nobody waits for what is left."""
        self.writer.transport.abort()


class OriginPool:
    """Idle connections per origin, the latest used first."""

    def __init__(self) -> None:
        self._idle: dict[OriginAddress, list[OriginConnection]] = defaultdict(list)

    async def send(
        self, origin: OriginAddress, message: bytes, *, repeatable: bool
    ) -> tuple[OriginConnection, ResponseHead]:
        """Send a whole request and return the connection with the head of its response.

        A request that is not ``repeatable`` gets a connection of its own: on a kept one nobody can
        tell whether an origin that closes it has processed the request. Raises OSError
        (ConnectionError, TimeoutError, ...) and BadMessage.
        """
        while True:
            connection = await self._take(origin, fresh=not repeatable)
            try:
                connection.writer.write(message)
                await connection.writer.drain()
                return connection, await read_response(connection.reader)
            except BaseException as error:
                connection.close()
                # The origin may close a kept connection at any time: not a failure of the request.
                if not (isinstance(error, ConnectionError) and connection.served):
                    raise

    async def _take(self, origin: OriginAddress, *, fresh: bool) -> OriginConnection:
        idle = self._idle[origin]
        while idle and not fresh:
            connection = idle.pop()
            if connection.usable:
                return connection
            connection.close()
        return OriginConnection(origin, *await connect(origin))

    def release(self, connection: OriginConnection, answer: ResponseHead, framing: Framing) -> None:
        """Keep a connection whose response was read to its end, if the origin does, too."""
        idle = self._idle[connection.origin]
        connection.served += 1
        kept = keeps_alive(answer.version, answer.headers) and framing.kind != "close"
        if kept and connection.usable and len(idle) < _MAX_IDLE:
            idle.append(connection)
        else:
            connection.close()

    def close(self) -> None:
        """Close all idle connections."""
        for idle in self._idle.values():
            for connection in idle:
                with suppress(RuntimeError):  # the loop is gone
                    connection.close()
        self._idle.clear()


@cache
def _tls_context(own: bool, protocols: tuple[str, ...]) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if own:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(protocols)
    return context
