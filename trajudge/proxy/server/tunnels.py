"""Connections that are carried unread: WebSockets and CONNECT."""

from __future__ import annotations

import asyncio
from asyncio import StreamReader, StreamWriter
from contextlib import suppress

from trajudge.proxy.http.bodies import PIECE
from trajudge.proxy.http.messages import HeaderFields, RequestHead, field, request_bytes, without
from trajudge.proxy.http.origins import OriginAddress, connect
from trajudge.proxy.server.client import ClientConnection


def is_websocket(headers: HeaderFields) -> bool:
    """Tell whether a request asks for a WebSocket."""
    return field(headers, "upgrade").lower() == "websocket"


async def tunnel(
    client: ClientConnection,
    origin: OriginAddress,
    *,
    opening: RequestHead | None,
    target: str = "",
) -> None:
    """Carry bytes both ways until either side ends. ``opening`` is the request that goes first, for
    ``target`` if that is named; None for CONNECT. Raises OSError where the origin does not answer.
    """
    reader, writer = await connect(origin)
    client.open = False
    try:
        if opening is None:
            client.writer.write(b"HTTP/1.1 200 Connection Established\r\n\r\n")
        else:
            headers = without(opening.headers, "proxy-connection", "proxy-authorization")
            writer.write(request_bytes(opening.method, target or opening.target, headers))
        ways = (_carry(client.reader, writer), _carry(reader, client.writer))
        await asyncio.gather(*ways)
    finally:
        writer.close()


async def _carry(reader: StreamReader, writer: StreamWriter) -> None:
    with suppress(OSError):  # an end of either side, orderly or not, ends the tunnel
        while piece := await reader.read(PIECE):
            writer.write(piece)
            await writer.drain()
    with suppress(OSError, RuntimeError):
        if writer.can_write_eof():
            writer.write_eof()
        if reader.exception():
            writer.close()
