"""Proxies that do less than ours, or are less our own, to stand beside it in ``benchmarks.proxy``.

``forwarder``: one asyncio process that carries bytes between each connection of the browser and one
to the origin, and reads none of them. ``mitmdump``: mitmproxy's own command, with nothing of ours
but the address that names below ``localhost`` have. Both run in a process of their own.
"""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import tempfile
import time
from asyncio import BaseTransport, Protocol, Transport
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, cast

from trajudge.proxy.mitm.process import mitmproxy_python

# Names below localhost are unknown to the C library.
_TO_LOOPBACK = """
def requestheaders(flow):
    flow.request.data.host = "127.0.0.1"
"""
_DUMP = "from mitmproxy.tools.main import mitmdump; mitmdump()"
# The certificate of the origin is its own.
_OPTIONS = ("ssl_insecure=true", "connection_strategy=lazy")
_PATIENCE = 60.0  # seconds


class Peer(NamedTuple):
    """A proxy that is running: its address, and its process."""

    proxy: str
    pid: int


class _Side(Protocol):
    """One connection; what it gets goes to ``other``."""

    def __init__(self, other: _Side | None = None) -> None:
        self.other = other
        self.early: list[bytes] = []
        self.transport: Transport | None = None

    def connection_made(self, transport: BaseTransport) -> None:
        self.transport = cast(Transport, transport)

    def data_received(self, data: bytes) -> None:
        if self.other and self.other.transport:
            self.other.transport.write(data)
        else:
            self.early.append(data)

    def connection_lost(self, exc: Exception | None) -> None:
        if self.other and self.other.transport:
            self.other.transport.close()


class _Accepted(_Side):
    """The browser's side, which opens the origin's."""

    def __init__(self, port: int) -> None:
        super().__init__()
        self.port = port

    def connection_made(self, transport: BaseTransport) -> None:
        super().connection_made(transport)
        self.opening = asyncio.create_task(self._open())

    async def _open(self) -> None:
        other = _Side(self)
        await asyncio.get_running_loop().create_connection(lambda: other, "127.0.0.1", self.port)
        self.other = other
        assert other.transport
        other.transport.write(b"".join(self.early))


async def forward(origin: int) -> None:
    """Carry bytes to the origin's port until the process ends."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: _Accepted(origin), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


@contextmanager
def forwarder(origin: int) -> Iterator[Peer]:
    """The byte carrier before an origin's port of plain HTTP."""
    command = [sys.executable, "-m", "benchmarks.proxy_peers", str(origin)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        try:
            yield Peer(f"http://127.0.0.1:{process.stdout.readline().strip()}", process.pid)
        finally:
            process.terminate()


@contextmanager
def mitmdump(*, http2: bool) -> Iterator[Peer]:
    """mitmproxy's own command; ``http2``: it speaks that with browsers."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        addon = Path(folder) / "loopback.py"
        addon.write_text(_TO_LOOPBACK)
        options = [*_OPTIONS, f"http2={str(http2).lower()}", f"confdir={folder}"]
        words = [word for option in options for word in ("--set", option)]
        where = ["--listen-host", "127.0.0.1", "--listen-port", str(port)]
        command = [str(mitmproxy_python()), "-c", _DUMP, "-q", "-s", str(addon), *words, *where]
        with subprocess.Popen(command) as process:
            try:
                _wait_for(port)
                yield Peer(f"http://127.0.0.1:{port}", process.pid)
            finally:
                process.terminate()


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


if __name__ == "__main__":
    asyncio.run(forward(int(sys.argv[1])))
