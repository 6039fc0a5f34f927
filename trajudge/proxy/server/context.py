"""What the parts of a running proxy share, and a request as they get it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import NamedTuple

from trajudge.proxy.http.messages import RequestHead
from trajudge.proxy.http.origins import OriginPool
from trajudge.proxy.server.client import ClientConnection
from trajudge.proxy.server.registry import TaskRegistry
from trajudge.proxy.server.settings import ProxySettings


@dataclass(frozen=True)
class ProxyContext:
    """``open_port`` listens on one more port and returns it."""

    settings: ProxySettings
    pool: OriginPool
    tasks: TaskRegistry
    open_port: Callable[[], Awaitable[int]]


class ReceivedRequest(NamedTuple):
    """A request that was read whole, on the proxy's ``port``. ``received`` is when its head came,
    in seconds of ``perf_counter``; ``fronted``: mitmproxy took it from the agent."""

    client: ClientConnection
    head: RequestHead
    body: bytes
    port: int
    received: float
    fronted: bool = False
