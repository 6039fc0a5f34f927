"""mitmproxy, run inside its own environment: ``python front.py``.

Its settings are JSON in the environment variable ``TRAJUDGE_FRONT``: a command line can be read by
all users of the machine, and they hold a secret. It imports nothing of ours but the module beside
it. It writes a line of JSON on standard output when it listens, and one per line that it reads,
``{"port": N}``: one more port to listen on. It ends with standard input.

A client speaks the protocol that the site speaks. A connection of HTTP/1.1 is carried to the proxy
at ``inner`` as it is, after a head ``CARRY SITE HTTP/1.1`` with the field ``Trajudge-Front``:
secret and port. SITE stands before each path of a decrypted connection; it is ``*`` where requests
name their whole address. Of HTTP/2 each stream goes there as a request, its whole address in the
request line, with the time at which it came (Unix seconds) in the same field; bodies pass in
pieces. What the inner proxy breaks off is broken off for the client.
"""

import asyncio
import base64
import hashlib
import json
import logging
import os
import re
import socket
import sys
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from mitmproxy import options
from mitmproxy.addons.core import Core
from mitmproxy.addons.next_layer import NextLayer
from mitmproxy.addons.proxyserver import Proxyserver
from mitmproxy.addons.tlsconfig import TlsConfig
from mitmproxy.connection import Client, Server
from mitmproxy.flow import Error, Flow
from mitmproxy.hooks import Hook
from mitmproxy.http import HTTPFlow, Request, Response
from mitmproxy.master import Master
from mitmproxy.proxy.layer import NextLayer as Undecided
from mitmproxy.proxy.layers.http import HTTPMode
from mitmproxy.tls import ClientHelloData

if TYPE_CHECKING:
    from trajudge.proxy.mitm.front_layers import CarriedBytes, Streams, reset
else:  # the package is not known in mitmproxy's environment
    sys.path.append(str(Path(__file__).parent))
    from front_layers import CarriedBytes, Streams, reset

FIELD = "Trajudge-Front"
_PATIENCE = 10.0  # seconds for the inner proxy's word on a host
# Streams of a client's connection that reach the inner proxy at once, as many as Chromium opens;
# mitmproxy's own limit of five would let a held page hold others.
_STREAMS = 100
_METHOD = re.compile(rb"[A-Z]{1,20} ")
_PART_OF_METHOD = re.compile(rb"[A-Z]{0,20}")
_BODILESS = ("GET", "HEAD", "OPTIONS", "TRACE")
_PORTS = {"http": 80, "https": 443}


class Front:
    """The hooks of mitmproxy: what a flow needs is read from that flow alone."""

    def __init__(self, inner: int, secret: str, server: Proxyserver) -> None:
        self.inner, self.secret, self.server = inner, secret, server
        self._known: set[tuple[str, int]] = set()
        self._protocols: dict[tuple[str, int], bytes] = {}

    def client_connected(self, client: Client) -> None:
        """Lift mitmproxy's limit of connections to one address: all requests go to one."""
        handler = self.server.connections[client.id]
        handler.max_conns = defaultdict(lambda: asyncio.Semaphore(_STREAMS))

    async def tls_clienthello(self, hello: ClientHelloData) -> None:
        """Offer a client HTTP/2 where the site speaks it."""
        site = hello.context.server
        if b"h2" not in hello.client_hello.alpn_protocols or site.address is None:
            return
        if site.address not in self._protocols:
            host, port = site.address
            target, sender = f"{host}:{port}", f"{self.secret} {hello.context.client.sockname[1]}"
            status, text = await self._asked("PROTOCOL", target, sender)
            if status == 200:
                self._protocols[site.address] = text
        site.alpn = self._protocols.get(site.address, b"http/1.1")

    def next_layer(self, undecided: Undecided) -> bool:
        """Carry what is HTTP/1.1; tell whether that was decided, or must wait for more bytes."""
        context, first = undecided.context, undecided.data_client()
        address, client = context.server.address, context.client
        if client.alpn == b"h2":
            undecided.layer = Streams(context, HTTPMode.transparent)
            return True
        if address is None and first.startswith(b"CONNECT "):
            return False
        if not _METHOD.match(first):
            return bool(_PART_OF_METHOD.fullmatch(first))
        site = "*"
        if address is not None:
            scheme, (host, port) = "https" if client.tls else "http", address
            host = f"[{host}]" if ":" in host else host
            site = f"{scheme}://{host}" + ("" if port == _PORTS[scheme] else f":{port}")
        port = client.sockname[1]
        head = f"CARRY {site} HTTP/1.1\r\n{FIELD}: {self.secret} {port}\r\n\r\n".encode()
        to = Server(address=("127.0.0.1", self.inner))
        undecided.layer = CarriedBytes(context, self.server.connections, to, head)
        return True

    def _sender(self, flow: HTTPFlow) -> str:
        port = flow.client_conn.sockname[1]
        return f"{self.secret} {port} {flow.request.timestamp_start:.6f}"

    async def http_connect(self, flow: HTTPFlow) -> None:
        """Ask the inner proxy whether a host is the site's."""
        host, port = flow.request.host, flow.request.port
        if (host, port) in self._known:
            return
        status, text = await self._asked("CONNECT", f"{host}:{port}", self._sender(flow))
        if status == 200:
            self._known.add((host, port))
        else:
            flow.response = Response.make(status, text, {"Content-Type": "text/html"})

    async def _asked(self, method: str, target: str, sender: str) -> tuple[int, bytes]:
        head = f"{method} {target} HTTP/1.1\r\nConnection: close\r\n{FIELD}: {sender}\r\n\r\n"
        try:
            async with asyncio.timeout(_PATIENCE):
                reader, writer = await asyncio.open_connection("127.0.0.1", self.inner)
                writer.write(head.encode("latin-1"))
                answer = await reader.read()
                writer.close()
        except (OSError, TimeoutError) as error:
            return 502, f"the proxy does not answer: {error}".encode()
        first, _, rest = answer.partition(b"\r\n")
        return int(first.split(b" ")[1]), rest.partition(b"\r\n\r\n")[2]

    def requestheaders(self, flow: HTTPFlow) -> None:
        """Send a request to the inner proxy, its body as it comes."""
        request = flow.request
        authority, url = request.authority or request.host_header, request.url
        request.headers[FIELD] = self._sender(flow)
        request.authority = ""
        request.path = url
        if authority and "host" not in request.headers:
            request.headers["Host"] = authority
        if request.is_http2:
            self._as_http1(request)
        # The fields of the object, not its properties: those would change the Host field as well.
        request.data.host, request.data.port = "127.0.0.1", self.inner
        request.data.scheme = b"http"
        request.stream = True
        framed = "content-length" in request.headers or "transfer-encoding" in request.headers
        if not framed and request.method not in _BODILESS:  # HTTP/2 ends a body without its length
            request.headers["Transfer-Encoding"] = "chunked"

    @staticmethod
    def _as_http1(request: Request) -> None:
        """Make a request of HTTP/2 one of HTTP/1.1, which leaves its connection open."""
        request.http_version = "HTTP/1.1"
        cookies = request.headers.get_all("cookie")
        if len(cookies) > 1:
            request.headers["cookie"] = "; ".join(cookies)

    def responseheaders(self, flow: HTTPFlow) -> None:
        """Pass an answer on in pieces."""
        if flow.response is not None and flow.response.status_code != 101:
            flow.response.stream = True

    def error(self, flow: HTTPFlow) -> None:
        """Break off for the client what the inner proxy broke off, without an answer of ours."""
        flow.error = Error(Error.KILLED_MESSAGE)
        if flow.response is None:
            reset(self.server.connections, flow.client_conn)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class MitmServer:
    """mitmproxy with what decrypts and forwards, and nothing else."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.master = Master(options.Options())
        self.options = self.master.options
        self.server = Proxyserver()
        front = Front(settings["inner"], settings["secret"], self.server)
        self.master.addons.add(Core(), self.server, NextLayer(), TlsConfig())
        self._let_alone_handle_flows(front)
        self.options.update(
            confdir=settings["authority"],
            mode=[],
            connection_strategy="lazy",
            upstream_cert=False,
        )
        self.tls = self.master.addons.get("tlsconfig")

    def _let_alone_handle_flows(self, front: Front) -> None:
        """Ask ``front`` first, and of flows it alone: by itself mitmproxy asks each of its parts,
        twice per event, and none of those here has an answer."""
        others = self.master.addons.handle_lifecycle

        async def handle(event: Hook) -> None:
            hook = getattr(front, event.name, None)
            decided = hook(*event.args()) if hook else None
            if asyncio.iscoroutine(decided):
                decided = await decided
            if not (decided or isinstance(event.args()[0], Flow)):
                await others(event)

        self.master.addons.handle_lifecycle = handle

    async def listen(self, port: int) -> int:
        """Listen on one more port. Raises OSError for one that is taken."""
        port = port or _free_port()
        mode = f"regular@127.0.0.1:{port}"
        self.options.update(mode=[*self.options.mode, mode])
        await self.server.setup_servers()
        instance = self.server.servers[mode]
        if not instance.is_running:
            self.options.update(mode=self.options.mode[:-1])
            raise OSError(f"port {port}: {instance.last_exception}")
        return port

    def spki(self) -> str:
        """Return the hash of the public key of all its certificates, as browsers take it."""
        key = self.tls.certstore.default_privatekey.public_key()
        text = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        return base64.b64encode(hashlib.sha256(text).digest()).decode()

    async def answer_lines(self, port: int) -> None:
        """Answer the lines of standard input until it ends."""
        reader = asyncio.StreamReader()
        loop = asyncio.get_running_loop()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        certificate = str(Path(self.options.confdir) / "mitmproxy-ca-cert.pem")
        answer: dict[str, Any] = {"certificate": certificate, "spki": self.spki()}
        while True:
            try:
                answer |= {"port": await self.listen(port)}
            except OSError as error:
                answer = {"error": str(error)}
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()
            line = await reader.readline()
            if not line:
                return
            port, answer = json.loads(line)["port"], {}


async def main() -> None:
    """Serve until standard input ends."""
    settings = json.loads(os.environ.pop("TRAJUDGE_FRONT"))
    logging.disable(logging.INFO)  # what nobody reads is a hook per request
    server = MitmServer(settings)
    running = asyncio.create_task(server.master.run())
    lines = asyncio.create_task(server.answer_lines(settings["port"]))
    await asyncio.wait((running, lines), return_when=asyncio.FIRST_COMPLETED)
    for ended in (running, lines):
        if ended.done():
            ended.result()
    os._exit(0)  # at once: whoever waits for an open connection has left


if __name__ == "__main__":
    asyncio.run(main())
