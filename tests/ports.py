"""Ports for servers that a test starts."""

from __future__ import annotations

import os
import random
import socket
from pathlib import Path

_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")


def free_port() -> int:
    """Return a port of loopback that nobody has now.

    Where there is one, it is none of those that the system gives to outgoing connections: the suite
    opens many of them a second, and one could take the port before the server of the test has.
    """
    first, last = map(int, _RANGE.read_text().split()) if _RANGE.exists() else (32768, 65535)
    ports = range(1024, first) or range(last + 1, 65536) or range(1024, 65536)
    draw = random.Random(os.urandom(8))
    for _ in range(100):
        port = draw.choice(ports)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("no port is free")
