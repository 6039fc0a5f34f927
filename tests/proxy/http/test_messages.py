"""Heads of messages are read as another parser of HTTP reads them; what is none is refused."""

from __future__ import annotations

import asyncio
import string

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trajudge.proxy.http.messages import (
    BadMessage,
    RequestHead,
    ResponseHead,
    field,
    read_request,
    read_response,
    request_bytes,
    response_bytes,
)

NAMES = st.text(string.ascii_letters + string.digits + "!#$%&'*+.^_`|~-", min_size=1, max_size=12)
VALUES = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=30)
FIELDS = st.lists(st.tuples(NAMES, VALUES.map(str.strip)), max_size=8)


def request(data: bytes) -> RequestHead | None:
    async def read() -> RequestHead | None:
        reader = asyncio.StreamReader()
        reader.feed_data(data)
        reader.feed_eof()
        return await read_request(reader)

    return asyncio.run(read())


def response(data: bytes) -> ResponseHead:
    async def read() -> ResponseHead:
        reader = asyncio.StreamReader()
        reader.feed_data(data)
        reader.feed_eof()
        return await read_response(reader)

    return asyncio.run(read())


def peer(data: bytes, side: type[h11.CLIENT | h11.SERVER]) -> list[tuple[str, str]]:
    """The fields that h11 reads of a head."""
    connection = h11.Connection(side)
    if side is h11.CLIENT:
        connection.send(h11.Request(method="GET", target="/", headers=[("Host", "a")]))
    connection.receive_data(data)
    event = connection.next_event()
    assert isinstance(event, h11.Request | h11.Response)
    return [(name.decode(), value.decode()) for name, value in event.headers.raw_items()]


@given(FIELDS)
def test_what_is_written_is_read_alike_by_others(fields: list[tuple[str, str]]) -> None:
    own = {"host", "content-length", "transfer-encoding"}
    headers = (("Host", "a"), *(pair for pair in fields if pair[0].lower() not in own))
    asked = request_bytes("GET", "/a?b", headers)
    assert request(asked) == RequestHead("GET", "/a?b", "HTTP/1.1", headers)
    assert peer(asked, h11.SERVER) == list(headers)
    answered = response_bytes(200, "OK", headers)
    assert response(answered) == ResponseHead(200, "OK", "HTTP/1.1", headers)
    assert peer(answered, h11.CLIENT) == list(headers)


def test_fields_are_found_in_any_case_and_joined() -> None:
    head = request(b"GET / HTTP/1.1\r\nAccept:a\r\nX-A: \t b \r\nACCEPT: c\r\nempty:\r\n\r\n")
    assert head
    assert field(head.headers, "accept") == "a, c"
    assert (field(head.headers, "x-a"), field(head.headers, "empty")) == ("b", "")
    assert field(head.headers, "absent") == ""


def test_empty_lines_before_a_head_are_passed_over_and_an_end_is_none() -> None:
    assert request(b"\r\nGET / HTTP/1.0\r\n\r\n") == RequestHead("GET", "/", "HTTP/1.0", ())
    assert request(b"") is None


@pytest.mark.parametrize(
    "fields",
    [
        *(b"no colon\r\n", b" folded: a\r\n", b"a b: c\r\n", b": value\r\n", b"a: b\r\n c\r\n"),
        *(b"a: b\nTransfer-Encoding: chunked\r\n", b"a: b\rc\r\n", b"a: b\0\r\n", b"a : b\r\n"),
    ],
)
def test_what_another_server_may_read_otherwise_is_refused(fields: bytes) -> None:
    """A line break within a value would end the field for a server that takes it for one."""
    with pytest.raises(BadMessage, match="is no header field"):
        request(b"GET / HTTP/1.1\r\nHost: a\r\n" + fields + b"\r\n")
    with pytest.raises(BadMessage, match="is no header field"):
        response(b"HTTP/1.1 200 OK\r\n" + fields + b"\r\n")


@pytest.mark.parametrize("first", [b"GET /", b"GET / HTTP/2", b"G<T / HTTP/1.1", b"a b c d", b""])
def test_what_is_no_request_is_refused(first: bytes) -> None:
    with pytest.raises(BadMessage, match="is no request line"):
        request(first + b"\r\n\r\n")


@pytest.mark.parametrize("first", [b"HTTP/1.1 20", b"HTTP/2 200 OK", b"hello", b"HTTP/1.1 abc x"])
def test_what_is_no_response_is_refused(first: bytes) -> None:
    with pytest.raises(BadMessage, match="is no status line"):
        response(first + b"\r\n\r\n")


def test_interim_responses_are_passed_over() -> None:
    whole = b"HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n"
    assert response(whole) == ResponseHead(204, "No Content", "HTTP/1.1", ())


def test_a_connection_that_ends_within_a_head_is_told_from_one_that_ends() -> None:
    with pytest.raises(BadMessage, match="ended within"):
        request(b"GET / HTTP/1.1\r\nHost")
    with pytest.raises(ConnectionResetError):
        response(b"")
