"""The field by which mitmproxy tells where a request that it hands on came from, and when."""

from __future__ import annotations

import time
from typing import NamedTuple

from trajudge.proxy.http.messages import RequestHead, field, without

FIELD = "Trajudge-Front"
_MAX_LAG = 60.0  # seconds; more is a clock that was set


class FrontSender(NamedTuple):
    """The port of ours that the agent named, and how long ago its request came, in seconds."""

    port: int
    lag: float


def split_sender(head: RequestHead, secret: str) -> tuple[RequestHead, FrontSender | None]:
    """Return the request as the agent sent it, and who sent it; None for what did not come from
    mitmproxy, which alone knows the secret."""
    words = field(head.headers, FIELD.lower()).split()
    if len(words) != 3 or words[0] != secret:
        return head, None
    lag = min(max(0.0, time.time() - float(words[2])), _MAX_LAG)
    own = head._replace(headers=without(head.headers, FIELD.lower()))
    return own, FrontSender(int(words[1]), lag)
