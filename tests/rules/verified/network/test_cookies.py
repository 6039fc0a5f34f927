"""Cookies of a response: those that the recorder lists, and those in its headers alone."""

from __future__ import annotations

from tests.rules.verified.tasks import request
from trajudge.rules.verified.network import trace_of_list


def test_cookies_are_read_from_their_headers_and_from_no_other() -> None:
    entry = request("/a")
    headers = {"Set-Cookie": "a=b%20c; Path=/\nd=e; Secure", "X-Other": "f=g"}
    pairs = [{"name": name, "value": value} for name, value in headers.items()]
    entry["response"] |= {"headers": pairs, "cookies": [{"name": "h", "value": "i%2F"}]}
    (event,) = trace_of_list([entry]).events
    assert event.cookies == {"a": "b c", "d": "e", "h": "i/"}
