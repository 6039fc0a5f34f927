"""A quick origin for measurements of the proxy: pages with assets, and a streaming model API.

``python -m benchmarks.proxy_origin`` prints its ports, for plain HTTP and for TLS; it runs in a
process of its own, so that neither the proxy nor the client waits for its interpreter.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from asyncio import StreamReader, StreamWriter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit

from tests.proxy.model_server import openai_events
from tests.proxy.tls import own_certificate

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 500
ASSETS = "".join(f'<img src="/i{n}.png" alt="">' for n in range(12))
LIGHT = f"<!doctype html><title>page</title><link rel=stylesheet href=/s.css><p>page{ASSETS}"
BUSY = """<!doctype html><html><head><title>busy</title><link rel="prefetch" href="/next"></head>
<body><iframe src="/frame"></iframe><script>window.ready = Promise.all([fetch('/fragment'),
fetch('/head', {method: 'HEAD'}), new Promise(done => {const x = new XMLHttpRequest();
x.open('GET', '/fragment'); x.onload = done; x.send()})]).then(() => null)</script></body></html>"""


class OriginPorts(NamedTuple):
    """Where the origin listens."""

    plain: int
    tls: int

    def url(self, scheme: str) -> str:
        return f"{scheme}://shop.localhost:{self.plain if scheme == 'http' else self.tls}"


def page(path: str) -> tuple[str, bytes]:
    """Content type and body."""
    if path.endswith(".png"):
        return "image/png", PNG
    if path.endswith(".css"):
        return "text/css", b"p { color: teal }"
    if path.startswith("/busy"):
        return "text/html", BUSY.encode()
    return "text/html", (LIGHT if path.startswith("/page") else "<p>part").encode()


async def serve(reader: StreamReader, writer: StreamWriter) -> None:
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            method, target, _ = head.split("\r\n")[0].split(" ")
            for line in head.lower().split("\r\n"):
                if line.startswith("content-length:"):
                    await reader.readexactly(int(line.partition(":")[2]))
            parts = urlsplit(target)
            if parts.path.endswith("/chat/completions"):
                await stream(writer)
                continue
            await asyncio.sleep(float(parse_qs(parts.query).get("think", ["0"])[0]) / 1000)
            kind, body = page(parts.path)
            fields = f"Content-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
            sent = b"" if method == "HEAD" else body
            writer.write(f"HTTP/1.1 200 OK\r\nCache-Control: no-store\r\n{fields}".encode() + sent)
            await writer.drain()
    except (OSError, asyncio.IncompleteReadError):
        writer.close()


async def stream(writer: StreamWriter) -> None:
    """An answer of nine events, the first after 50 ms, 10 ms apart."""
    writer.write(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    await asyncio.sleep(0.05)
    for event in openai_events(usage=True):
        writer.write(b"%x\r\n%b\r\n" % (len(event), event.encode()))
        await writer.drain()
        await asyncio.sleep(0.01)
    writer.write(b"0\r\n\r\n")
    await writer.drain()


async def main() -> None:
    plain = await asyncio.start_server(serve, "127.0.0.1", 0)
    tls = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=own_certificate())
    print(*(server.sockets[0].getsockname()[1] for server in (plain, tls)), flush=True)
    await asyncio.gather(plain.serve_forever(), tls.serve_forever())


@contextmanager
def spawned() -> Iterator[OriginPorts]:
    """The origin in a process of its own; yields its ports."""
    command = [sys.executable, "-m", "benchmarks.proxy_origin"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        try:
            yield OriginPorts(*map(int, process.stdout.readline().split()))
        finally:
            process.terminate()


if __name__ == "__main__":
    asyncio.run(main())
