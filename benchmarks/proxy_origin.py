"""A quick origin for measurements of the proxy: pages with assets, and a streaming model API.

``python -m benchmarks.proxy_origin`` prints its ports, for plain HTTP, for TLS and for TLS with
HTTP/2; it runs in a process of its own, so that neither the proxy nor the client waits for its
interpreter.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from asyncio import StreamReader, StreamWriter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit

import h2.config
import h2.connection
import h2.events

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
    """Where the origin listens; with ``http2`` it speaks HTTP/1.1 as well, as most of the web."""

    http: int
    https: int
    http2: int

    def url(self, spoken: str) -> str:
        """Return the site's address by ``http``, ``https`` or ``http2``."""
        scheme = "http" if spoken == "http" else "https"
        return f"{scheme}://shop.localhost:{getattr(self, spoken)}"


def page(path: str) -> tuple[str, bytes]:
    """Content type and body."""
    if path.endswith(".png"):
        return "image/png", PNG
    if path.endswith(".css"):
        return "text/css", b"p { color: teal }"
    if path.startswith("/busy"):
        return "text/html", BUSY.encode()
    return "text/html", (LIGHT if path.startswith("/page") else "<p>part").encode()


def think(path: str) -> float:
    """Seconds that the server takes for a page."""
    return float(parse_qs(urlsplit(path).query).get("think", ["0"])[0]) / 1000


async def serve(reader: StreamReader, writer: StreamWriter) -> None:
    encrypted = writer.get_extra_info("ssl_object")
    if encrypted and encrypted.selected_alpn_protocol() == "h2":
        await serve_streams(reader, writer)
        return
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
            await asyncio.sleep(think(target))
            kind, body = page(parts.path)
            fields = f"Content-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
            sent = b"" if method == "HEAD" else body
            writer.write(f"HTTP/1.1 200 OK\r\nCache-Control: no-store\r\n{fields}".encode() + sent)
            await writer.drain()
    except (OSError, asyncio.IncompleteReadError):
        writer.close()


async def serve_streams(reader: StreamReader, writer: StreamWriter) -> None:
    """Serve a connection of HTTP/2: pages and assets, side by side."""
    connection = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
    connection.initiate_connection()
    answering = set[asyncio.Task[None]]()

    async def answer(number: int, path: str) -> None:
        await asyncio.sleep(think(path))
        kind, body = page(urlsplit(path).path)
        fields = [(":status", "200"), ("content-type", kind), ("cache-control", "no-store")]
        connection.send_headers(number, [*fields, ("content-length", str(len(body)))])
        connection.send_data(number, body, end_stream=True)
        writer.write(connection.data_to_send())

    writer.write(connection.data_to_send())
    with suppress(OSError):
        while data := await reader.read(65536):
            for event in connection.receive_data(data):
                if isinstance(event, h2.events.RequestReceived):
                    path = dict(event.headers)[b":path"].decode()
                    answering.add(asyncio.create_task(answer(event.stream_id, path)))
            writer.write(connection.data_to_send())
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
    contexts = (None, own_certificate(), own_certificate("h2", "http/1.1"))
    servers = [await asyncio.start_server(serve, "127.0.0.1", 0, ssl=one) for one in contexts]
    print(*(server.sockets[0].getsockname()[1] for server in servers), flush=True)
    await asyncio.gather(*(server.serve_forever() for server in servers))


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
