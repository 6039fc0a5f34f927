"""A WebSocket as a client on loopback: whole text messages, in order (RFC 6455)."""

from __future__ import annotations

import asyncio
import base64
import os
import struct
from asyncio import StreamReader, StreamWriter
from typing import Self
from urllib.parse import urlsplit

_TEXT, _CLOSE, _PING, _PONG = 1, 8, 9, 10
_LIMIT = 64 * 2**20  # bytes of a message


class WebSocketClient:
    """An open WebSocket. ``receive`` raises OSError or IncompleteReadError at its end."""

    def __init__(self, reader: StreamReader, writer: StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def open(cls, url: str) -> Self:
        """Connect to a ``ws://`` address. Raises OSError."""
        parts = urlsplit(url)
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
        key = base64.b64encode(os.urandom(16)).decode()
        writer.write(
            f"GET {parts.path} HTTP/1.1\r\nHost: {parts.netloc}\r\nUpgrade: websocket\r\n"
            f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\n"
            "Sec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        head = await reader.readuntil(b"\r\n\r\n")
        if b" 101 " not in head.partition(b"\r\n")[0]:
            writer.close()
            raise ConnectionRefusedError(f"{url} is no WebSocket")
        return cls(reader, writer)

    def send(self, text: str) -> None:
        """Send a message."""
        self._frame(_TEXT, text.encode())

    def _frame(self, kind: int, payload: bytes) -> None:
        size = len(payload)
        if size < 126:
            length = bytes([0x80 | size])
        elif size < 2**16:
            length = bytes([0x80 | 126]) + struct.pack(">H", size)
        else:
            length = bytes([0x80 | 127]) + struct.pack(">Q", size)
        # The mask guards intermediaries, of which loopback has none: zeros are a mask as well.
        self._writer.write(bytes([0x80 | kind]) + length + bytes(4) + payload)

    async def receive(self) -> str:
        """Return the next message."""
        parts: list[bytes] = []
        while True:
            first, second = await self._reader.readexactly(2)
            size = second & 0x7F
            if size == 126:
                (size,) = struct.unpack(">H", await self._reader.readexactly(2))
            elif size == 127:
                (size,) = struct.unpack(">Q", await self._reader.readexactly(8))
            if size > _LIMIT:
                raise ConnectionAbortedError("a message is too long")
            payload, kind = await self._reader.readexactly(size), first & 0x0F
            if kind == _CLOSE:
                raise ConnectionResetError("the other side closed the WebSocket")
            if kind == _PING:
                self._frame(_PONG, payload)
            elif kind != _PONG:
                parts.append(payload)
                if first & 0x80:
                    return b"".join(parts).decode()

    def close(self) -> None:
        """Close the connection."""
        self._writer.close()
