"""A small site on loopback, and the proxy before it, for tests and measurements."""

from __future__ import annotations

import asyncio
import base64
import gzip
import hashlib
import json
import socket
import ssl
import statistics
import struct
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx

from tests.http_thread import serving
from trajudge.proxy.commands import open_sites
from trajudge.proxy.plan import FaultPlan
from trajudge.proxy.process import ProxySettings, RunningProxy, running

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489"
    "0000000d4944415478da63fccfc0500f0004850180843dd0dc0000000049454e44ae426082"
)
BUSY = """<!doctype html><html><head><title>{path}</title><link rel="prefetch" href="/next">
<link rel="stylesheet" href="/style.css"></head><body><h1>{path}</h1>
<iframe src="/frame"></iframe>{images}<a href="/b" id="b">b</a>
<script>window.ready = Promise.all([fetch('/fragment'), fetch('/a', {{method: 'HEAD'}}),
 new Promise(d => {{ const x = new XMLHttpRequest(); x.open('GET', '/fragment'); x.onload = d;
 x.send(); }})])</script></body></html>"""
BROTLI = bytes.fromhex("8b0c803c7469746c653e62723c2f7469746c653e3c703e7061636b656403")
POLICY = "script-src 'self'; style-src 'self'"


class Site(ThreadingHTTPServer):
    """Remembers the requests in ``seen`` (method, path, headers, body)."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, context: ssl.SSLContext | None = None, host: str = "127.0.0.1") -> None:
        super().__init__((host, 0), _Handler)
        if context is not None:  # the handshake is the handler's: it must hold no other connection
            self.socket = context.wrap_socket(
                self.socket, server_side=True, do_handshake_on_connect=False
            )
        self.scheme = "http" if context is None else "https"
        self.seen: list[tuple[str, str, dict[str, str], bytes]] = []
        self.connections = 0
        self.gathering = threading.Barrier(1)
        self.asked = threading.Event()

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    @property
    def origin(self) -> str:
        return f"{self.scheme}://shop.localhost:{self.port}"

    @property
    def address(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"

    def paths(self) -> list[str]:
        return [path for _, path, _, _ in self.seen]

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that left is no news."""


class _Handler(BaseHTTPRequestHandler):
    server: Site
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 65536

    def setup(self) -> None:
        super().setup()
        self.server.connections += 1

    def log_message(self, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        self.server.asked.set()
        body = b"".join(self._body())
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.seen.append((self.command, self.path, headers, body))
        path = self.path.partition("?")[0]
        action = getattr(self, f"_{path.strip('/').replace('.', '_')}", None)
        if action is None:
            self._page(BUSY.format(path=path, images="" if path != "/a" else '<img src="/i.png">'))
        else:
            action()
        self.wfile.flush()

    def _body(self) -> Iterator[bytes]:
        if "chunked" not in (self.headers.get("transfer-encoding") or ""):
            yield self.rfile.read(int(self.headers.get("content-length") or 0))
            return
        while size := int(self.rfile.readline(), 16):
            yield self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()

    do_HEAD = do_POST = do_PUT = do_GET

    def _send(self, status: int, kind: str, body: bytes, **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _page(self, html: str, **headers: str) -> None:
        body = html.encode()
        if "gzip" in self.headers.get("accept-encoding", ""):
            body, headers = gzip.compress(body), headers | {"Content_Encoding": "gzip"}
        headers = {"Cache_Control": "max-age=600", "ETag": '"1"'} | headers
        self._send(200, "text/html;charset=UTF-8", body, **headers)

    def _packed(self) -> None:
        """A page in Brotli, if it is asked for."""
        if "br" in self.headers.get("accept-encoding", ""):
            self._send(200, "text/html", BROTLI, Content_Encoding="br")
        else:
            self._page("<title>br</title><p>packed")

    def _tagged(self) -> None:
        if self.headers.get("if-none-match") == '"1"':
            self.send_response(304)
            self.send_header("ETag", '"1"')
            self.end_headers()
        else:
            self._page("<p>tagged")

    def _frame(self) -> None:
        self._page("<p>frame")

    _fragment = _frame

    def _strict(self) -> None:
        self._page("<title>strict</title><p>strict", Content_Security_Policy=POLICY)

    def _closed(self) -> None:
        self._page("<title>closed</title>", Content_Security_Policy="default-src 'none'")

    def _meta(self) -> None:
        meta = f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        self._page(f"<head>{meta}<title>meta</title></head><body>meta</body>")

    def _style_css(self) -> None:
        self._send(200, "text/css", b"h1{color:teal}", Cache_Control="max-age=600")

    def _i_png(self) -> None:
        self._send(200, "image/png", PNG)

    def _moved(self) -> None:
        self._send(302, "text/plain", b"", Location="/b?from=moved")

    def _save(self) -> None:
        self._send(303, "text/plain", b"", Location="/saved")

    def _plain(self) -> None:
        self._send(200, "text/plain", b"x" * 1000)

    def _login(self) -> None:
        self._send(200, "text/html", b"<title>login</title>", Set_Cookie="session=1; Path=/")

    def _echo(self) -> None:
        method, path, headers, body = self.server.seen[-1]
        text = {"method": method, "path": path, "headers": headers, "body": body.decode()}
        self._send(200, "application/json", json.dumps(text).encode())

    def _slow(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for part in (b"<p>one", b"<p>two"):
            self.wfile.write(b"%x\r\n%b\r\n" % (len(part), part))
            self.wfile.flush()
            time.sleep(0.3)
        self.wfile.write(b"0\r\n\r\n")

    def _gathered(self) -> None:
        """Answer nobody before as many wait here as the site's barrier is for."""
        try:
            self.server.gathering.wait(timeout=20)
        except threading.BrokenBarrierError:
            self._send(503, "text/plain", b"some never came")
        else:
            self._send(200, "text/plain", b"all are here")

    def _socket(self) -> None:
        """Echo one short WebSocket message."""
        key = self.headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        self.send_response(101)
        self.send_header("Upgrade", "websocket")
        self.send_header("Connection", "Upgrade")
        accept = base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()
        self.send_header("Sec-WebSocket-Accept", accept)
        self.end_headers()
        self.wfile.flush()
        size = self.rfile.read(2)[1] & 0x7F
        mask, data = self.rfile.read(4), self.rfile.read(size)
        text = bytes(byte ^ mask[index % 4] for index, byte in enumerate(data))
        self.wfile.write(bytes([0x81, size]) + text)
        self.wfile.flush()
        self.rfile.read(2)  # the browser's closing
        self.close_connection = True

    def _closes(self) -> None:
        """Keep the connection alive in word, and reset it in deed after the answer."""
        self._send(200, "text/plain", b"last")
        self.wfile.flush()
        linger = struct.pack("ii", 1, 0)
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.close_connection = True

    def _cut(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", "1000")
        self.end_headers()
        self.wfile.write(b"x" * 10)
        self.close_connection = True


@contextmanager
def open_site(context: ssl.SSLContext | None = None, host: str = "127.0.0.1") -> Iterator[Site]:
    """The site; with a context by TLS."""
    site = Site(context, host)
    with serving(site):
        yield site


def plan_of(*faults: Mapping[str, Any], seed: int = 0) -> FaultPlan:
    """A plan; faults without an id are named by their kind."""
    named = [{"id": fault["kind"], **fault} for fault in faults]
    return FaultPlan.model_validate({"seed": seed, "faults": named})


def settings_of(*faults: Mapping[str, Any], **fields: Any) -> ProxySettings:
    given: dict[str, Any] = {"sites": open_sites(()), "out": Path(tempfile.mkdtemp())}
    given |= {"seed": 0, "port": 0, **fields}
    return ProxySettings(plan=plan_of(*faults), **given)


class ThreadedProxy:
    """A proxy that runs on a loop in a thread of its own."""

    def __init__(self, settings: ProxySettings) -> None:
        self.settings = settings
        self.proxy: RunningProxy
        self._ready, self._done = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()))

    async def _run(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        async with running(self.settings) as self.proxy:
            self._ready.set()
            await self._stop.wait()

    def __enter__(self) -> RunningProxy:
        self._thread.start()
        assert self._ready.wait(60)
        return self.proxy

    def __exit__(self, *exc: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()


@asynccontextmanager
async def proxied(*faults: Mapping[str, Any], **fields: Any) -> AsyncIterator[RunningProxy]:
    async with running(settings_of(*faults, **fields)) as proxy:
        yield proxy


def events_of(folder: Path, *types: str) -> list[dict[str, Any]]:
    lines = (folder / "events.jsonl").read_text(encoding="utf-8").splitlines()
    events: list[dict[str, Any]] = [json.loads(line) for line in lines]
    return [event for event in events if not types or event["type"] in types]


async def median_wait(http: httpx.AsyncClient, url: str, page: asyncio.Task[Any]) -> float:
    """Ask for ``url`` again and again until ``page`` has come; the usual wait, in seconds."""
    loop, waits = asyncio.get_running_loop(), []
    while not page.done():
        began = loop.time()
        await http.get(url)
        waits.append(loop.time() - began)
        await asyncio.sleep(0.02)
    return statistics.median_high(waits)


def page_headers(destination: str = "document", **more: str) -> dict[str, str]:
    """The fields with which a browser asks for a page, a frame or an asset."""
    return {"Sec-Fetch-Dest": destination, "Accept": "text/html,*/*;q=0.8", **more}


Faults = Sequence[Mapping[str, Any]]
