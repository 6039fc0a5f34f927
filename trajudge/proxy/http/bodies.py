"""Bodies of HTTP/1.1 messages: how long they are, and their pieces as they arrive."""

from __future__ import annotations

from asyncio import IncompleteReadError, StreamReader
from collections.abc import AsyncGenerator
from typing import Literal, NamedTuple

from trajudge.proxy.http.messages import BadMessage, HeaderFields, ResponseHead, fields_by_name

PIECE = 64 * 1024
_NO_BODY = (204, 304)
_MOST_DIGITS = 18  # of a length, which no body comes near: Python refuses to read thousands of them


class BodyTooLarge(Exception):
    """A body that was to be held in memory has more bytes than allowed."""


class Framing(NamedTuple):
    """How a body ends; ``length`` is None but for ``length``."""

    kind: Literal["none", "length", "chunked", "close"]
    length: int | None = None


NO_BODY = Framing("none")


def request_framing(headers: HeaderFields) -> Framing:
    """Return the framing of a request's body. Raises BadMessage."""
    return _framing(headers) or NO_BODY


def response_framing(method: str, head: ResponseHead) -> Framing:
    """Return the framing of a response's body. Raises BadMessage."""
    if method == "HEAD" or head.status in _NO_BODY or head.status < 200:
        return NO_BODY
    return _framing(head.headers) or Framing("close")


def _framing(headers: HeaderFields) -> Framing | None:
    named = fields_by_name(headers)
    encoding, length = named.get("transfer-encoding"), named.get("content-length")
    if encoding and length:
        raise BadMessage("a message has both Transfer-Encoding and Content-Length")
    if encoding:
        if encoding.strip().lower() != "chunked":
            raise BadMessage(f"Transfer-Encoding {encoding!r:.80} is not supported")
        return Framing("chunked")
    if not length:
        return None
    first, *others = {part.strip() for part in length.split(",")}
    if others or not first.isdecimal() or len(first) > _MOST_DIGITS:
        raise BadMessage(f"Content-Length {length!r:.80} is no length")
    return Framing("length", int(first))


async def pieces(reader: StreamReader, framing: Framing) -> AsyncGenerator[bytes, None]:
    """Yield a body's pieces as they arrive, without the framing.

    Raises IncompleteReadError for a body that ends early, BadMessage for wrong chunks.
    """
    if framing.kind == "length":
        left = framing.length or 0
        while left:
            left -= len(piece := await _some(reader, left))
            yield piece
    elif framing.kind == "chunked":
        while size := await _chunk_size(reader):
            while size:
                size -= len(piece := await _some(reader, size))
                yield piece
            if await reader.readexactly(2) != b"\r\n":
                raise BadMessage("a chunk is longer than its size")
        while (await reader.readuntil(b"\n")).strip():
            pass  # trailers hold for the connection to the origin alone
    elif framing.kind == "close":
        while piece := await reader.read(PIECE):
            yield piece


async def _some(reader: StreamReader, left: int) -> bytes:
    """Read what has come of the ``left`` bytes of a body or chunk. Raises IncompleteReadError at
    the end of the connection."""
    piece = await reader.read(min(left, PIECE))
    if not piece:
        raise IncompleteReadError(b"", left)
    return piece


async def _chunk_size(reader: StreamReader) -> int:
    line = (await reader.readuntil(b"\n")).partition(b";")[0].strip()
    try:
        size = int(line, 16)
    except ValueError:
        size = -1
    if size < 0 or line[:1] in b"+-":
        raise BadMessage(f"{line!r:.40} is no size of a chunk")
    return size


async def read_body(reader: StreamReader, framing: Framing, most: int) -> bytes:
    """Read a body into memory. Raises as ``pieces``, and BodyTooLarge beyond ``most`` bytes."""
    if framing.kind == "none":
        return b""
    parts, size = [], 0
    async for piece in pieces(reader, framing):
        size += len(piece)
        if size > most:
            raise BodyTooLarge(f"a body has more than {most} bytes")
        parts.append(piece)
    return b"".join(parts)
