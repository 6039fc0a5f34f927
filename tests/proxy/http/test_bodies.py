"""How long a body is, from the fields of its head."""

from __future__ import annotations

import pytest

from trajudge.proxy.http.bodies import Framing, request_framing
from trajudge.proxy.http.messages import BadMessage


@pytest.mark.parametrize("length", ["12", "12, 12", "12,12"])
def test_a_length_may_be_said_twice(length: str) -> None:
    assert request_framing((("Content-Length", length),)) == Framing("length", 12)


@pytest.mark.parametrize("length", ["12, 13", "-1", "+1", "1_0", "²", "0x10", "9" * 19, "9" * 5000])
def test_what_is_no_length_is_refused(length: str) -> None:
    with pytest.raises(BadMessage, match="is no length"):
        request_framing((("content-length", length),))


def test_chunks_go_with_no_length() -> None:
    assert request_framing((("Transfer-Encoding", "Chunked"),)) == Framing("chunked")
    with pytest.raises(BadMessage, match="both"):
        request_framing((("Transfer-Encoding", "chunked"), ("Content-Length", "1")))
    with pytest.raises(BadMessage, match="'gzip' is not supported"):
        request_framing((("Transfer-Encoding", "gzip"),))
    assert request_framing(()).kind == "none"
