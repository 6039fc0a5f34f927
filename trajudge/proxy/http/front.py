"""How mitmproxy tells where a connection that it carries, or a request that it hands on, came from.

``proxy.mitm.front`` writes it.
"""

from __future__ import annotations

import time
from typing import NamedTuple

from trajudge.proxy.http.messages import RequestHead, field, without

FIELD = "Trajudge-Front"
CARRY = "CARRY"
PROTOCOL = "PROTOCOL"
_MAX_LAG = 60.0  # seconds; more is a clock that was set


class FrontSender(NamedTuple):
    """The port of ours that the agent named, and how long ago its request came, in seconds."""

    port: int
    lag: float


def split_sender(head: RequestHead, secret: str) -> tuple[RequestHead, FrontSender | None]:
    """Return the request as the agent sent it, and who sent it; None for what did not come from
    mitmproxy, which alone knows the secret."""
    words = field(head.headers, FIELD.lower()).split()
    if len(words) not in (2, 3) or words[0] != secret:
        return head, None
    lag = min(max(0.0, time.time() - float(words[2])), _MAX_LAG) if len(words) == 3 else 0.0
    own = head._replace(headers=without(head.headers, FIELD.lower()))
    return own, FrontSender(int(words[1]), lag)


class CarriedConnection(NamedTuple):
    """An agent's connection that mitmproxy carries as it is: the port of ours that the agent named,
    and what stands before each path, "" where requests name their whole address."""

    port: int
    site: str

    def whole(self, head: RequestHead) -> RequestHead:
        """Return a request's head with its whole address, as agents ask a proxy."""
        inside = self.site and head.target.startswith("/")
        return head._replace(target=self.site + head.target) if inside else head


def carried_connection(head: RequestHead, secret: str) -> CarriedConnection | None:
    """Return the connection that a head begins; None for one that is no such beginning."""
    words = field(head.headers, FIELD.lower()).split()
    if head.method != CARRY or len(words) != 2 or words[0] != secret:
        return None
    return CarriedConnection(int(words[1]), "" if head.target == "*" else head.target)
