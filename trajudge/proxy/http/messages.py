"""Heads of HTTP/1.1 messages: parsed strictly, written as they came."""

from __future__ import annotations

import re
from asyncio import IncompleteReadError, LimitOverrunError, StreamReader
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

MAX_HEAD = 256 * 1024  # bytes; also the limit of the streams that heads are read from
HeaderFields = tuple[tuple[str, str], ...]

# Fields that hold for one connection, not for the message.
_HOP_BY_HOP = frozenset(
    {
        *("connection", "keep-alive", "proxy-connection", "proxy-authenticate", "te", "trailer"),
        *("proxy-authorization", "transfer-encoding", "upgrade"),
    }
)
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
# A line break of another kind within a value may end the field for whoever reads it next.
_FIELD = re.compile(rf"({_TOKEN.pattern}):([^\r\n\0]*)\r\n")
_FIELDS = re.compile(rf"(?:{_TOKEN.pattern}:[^\r\n\0]*\r\n)*")


class BadMessage(Exception):
    """A message that breaks HTTP/1.1's rules, in one sentence."""


class RequestHead(NamedTuple):
    """``target`` as it stands in the request line."""

    method: str
    target: str
    version: str
    headers: HeaderFields


class ResponseHead(NamedTuple):
    """The status line and fields of a response."""

    status: int
    reason: str
    version: str
    headers: HeaderFields


def field(headers: HeaderFields, name: str) -> str:
    """Return a field's value, several joined by a comma; "" without one. ``name`` is lower case."""
    return fields_by_name(headers).get(name, "")


@lru_cache(maxsize=256)
def fields_by_name(headers: HeaderFields) -> Mapping[str, str]:
    """Return the fields by their name in lower case, several of a name joined by a comma: a message
    is asked for a dozen."""
    named: dict[str, str] = {}
    for key, value in headers:
        name = key.lower()
        named[name] = f"{named[name]}, {value}" if name in named else value
    return named


def without(headers: HeaderFields, *names: str) -> HeaderFields:
    """Return the fields but those of ``names`` (lower case)."""
    return tuple([pair for pair in headers if pair[0].lower() not in names])


def replaced(headers: HeaderFields, name: str, value: str) -> HeaderFields:
    """Return the fields with one value for ``name``."""
    return (*without(headers, name.lower()), (name, value))


@lru_cache(maxsize=256)
def end_to_end(headers: HeaderFields, *names: str) -> HeaderFields:
    """Return the fields that are passed on, but those of ``names`` (lower case)."""
    named = {word.strip().lower() for word in field(headers, "connection").split(",")}
    left_out = _HOP_BY_HOP.union(named, names)
    return tuple([pair for pair in headers if pair[0].lower() not in left_out])


def keeps_alive(version: str, headers: HeaderFields) -> bool:
    """Tell whether the connection serves another message after this one."""
    named = fields_by_name(headers)
    asked = (named.get("connection") or named.get("proxy-connection", "")).lower()
    return "close" not in asked if version == "HTTP/1.1" else "keep-alive" in asked


async def read_request(reader: StreamReader) -> RequestHead | None:
    """Read a request's head; None where the client ended the connection instead.

    Raises BadMessage.
    """
    head = await _head(reader)
    if head is None:
        return None
    first, fields = head
    words = first.split(" ")
    if len(words) != 3 or not _TOKEN.fullmatch(words[0]) or words[2] not in _VERSIONS:
        raise BadMessage(f"{first!r:.80} is no request line of HTTP/1.1")
    return RequestHead(words[0], words[1], words[2], _fields(fields))


async def read_response(reader: StreamReader) -> ResponseHead:
    """Read a response's head, past interim ones but 101.

    Raises BadMessage, and ConnectionError where the origin ended the connection instead.
    """
    while True:
        message = await _head(reader)
        if message is None:
            raise ConnectionResetError("the origin closed the connection without an answer")
        first, fields = message
        version, _, rest = first.partition(" ")
        status, _, reason = rest.partition(" ")
        if version not in _VERSIONS or not (len(status) == 3 and status.isdecimal()):
            raise BadMessage(f"{first!r:.80} is no status line of HTTP/1.1")
        head = ResponseHead(int(status), reason, version, _fields(fields))
        if head.status == 101 or head.status >= 200:
            return head


_VERSIONS = ("HTTP/1.1", "HTTP/1.0")


async def _head(reader: StreamReader) -> tuple[str, str] | None:
    """Read the first line of a message and the lines of its fields; None at the end."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except IncompleteReadError as error:
        if error.partial.strip():
            raise BadMessage("the connection ended within a message's head") from None
        return None
    except LimitOverrunError:
        raise BadMessage(f"a message's head has more than {MAX_HEAD} bytes") from None
    first, _, fields = head[:-2].decode("latin-1").lstrip("\r\n").partition("\r\n")
    return first, fields


@lru_cache(maxsize=256)
def _fields(lines: str) -> HeaderFields:
    """Parse the lines of a head: a browser sends the same ones with one asset after the other."""
    if not _FIELDS.fullmatch(lines):
        wrong = next(line for line in lines.split("\r\n") if not _FIELD.fullmatch(f"{line}\r\n"))
        raise BadMessage(f"{wrong!r:.80} is no header field")
    return tuple([(name, value.strip(" \t")) for name, value in _FIELD.findall(lines)])


def request_bytes(method: str, target: str, headers: HeaderFields) -> bytes:
    """Write a request's head."""
    return _head_bytes(f"{method} {target} HTTP/1.1", headers)


def response_bytes(status: int, reason: str, headers: HeaderFields) -> bytes:
    """Write a response's head."""
    return _head_bytes(f"HTTP/1.1 {status} {reason}", headers)


def _head_bytes(first: str, headers: HeaderFields) -> bytes:
    lines = "".join([f"{name}: {value}\r\n" for name, value in headers])
    return f"{first}\r\n{lines}\r\n".encode("latin-1")
