"""What the proxy adds to mitmproxy's own latency.

    python -m benchmarks.proxy                     # about two minutes
    python -m benchmarks.proxy --n 3000

Origin, both proxies and client are processes of their own. One proxy is ``mitmdump`` with no addon,
the other ``trajudge proxy serve`` with a plan that fires nothing. Each turn asks both for the same,
in an order that alternates, so that the machine's load meets both alike; medians are compared, with
95 % intervals (a bootstrap over turns). The exit code is 1 if a median is more than 15 % above
mitmproxy's own.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from trajudge.proxy.process import find_mitmdump

GOAL = 1.15
WARM_UP = 20  # turns that do not count
RESAMPLES = 1000
DOCUMENT = b"<!doctype html><title>p</title>" + b"<p>" + b"words and more words " * 1000 + b"</p>"
ASKED = {
    "asset": ("/i.png", "Sec-Fetch-Dest: image\r\n"),
    "page": ("/p", "Sec-Fetch-Dest: document\r\nAccept: text/html\r\n"),
}
NEVER = {"id": "never", "kind": "status", "status": 503, "policy": "at(10000)"}


def certificate(folder: Path) -> Path:
    """Write a certificate that a server on loopback signs for itself, and its key."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    building = x509.CertificateBuilder(name, name, key.public_key(), 1)
    building = building.not_valid_before(now - timedelta(days=1))
    signed = building.not_valid_after(now + timedelta(days=1)).sign(key, hashes.SHA256())
    form, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    text = key.private_bytes(serialization.Encoding.PEM, form, plain)
    file = folder / "own.pem"
    file.write_bytes(text + signed.public_bytes(serialization.Encoding.PEM))
    return file


async def serve_origin(own: str) -> None:
    """Answer requests on two ports, the second by TLS, until the process ends."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            while head := await reader.readuntil(b"\r\n\r\n"):
                page = head.split()[1].endswith(b"/p")
                kind, body = (b"text/html", DOCUMENT) if page else (b"image/png", b"x" * 500)
                writer.write(
                    b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\nContent-Length: %d\r\n\r\n%b"
                    % (kind, len(body), body)
                )
                await writer.drain()
        writer.close()

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(own)
    ports = []
    for tls in (None, context):
        server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=tls)
        ports.append(server.sockets[0].getsockname()[1])
    print(json.dumps(ports), flush=True)
    await asyncio.Event().wait()


@contextmanager
def origin(folder: Path) -> Iterator[dict[str, int]]:
    """Yield the ports of the origin, by scheme."""
    command = [sys.executable, "-m", "benchmarks.proxy", "--origin", str(certificate(folder))]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout
        try:
            yield dict(zip(("http", "https"), json.loads(process.stdout.readline()), strict=True))
        finally:
            process.terminate()


@contextmanager
def bare(folder: Path) -> Iterator[int]:
    """Yield the port of ``mitmdump`` with no addon; the origin's certificate is its own."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    options = ("ssl_insecure=true", f"confdir={folder}")
    words = [word for option in options for word in ("--set", option)]
    where = ["--listen-host", "127.0.0.1", "--listen-port", str(port)]
    with subprocess.Popen([find_mitmdump(), "-q", *words, *where], process_group=0) as process:
        try:
            while True:
                with suppress(OSError):
                    socket.create_connection(("127.0.0.1", port)).close()
                    break
                time.sleep(0.05)
            yield port
        finally:
            process.terminate()


@contextmanager
def ours(folder: Path) -> Iterator[int]:
    """Yield the port of ``trajudge proxy serve``."""
    plan = folder / "plan.json"
    plan.write_text(json.dumps({"faults": [NEVER]}))
    words = ["proxy", "serve", "--faults", str(plan), "--out", str(folder / "run")]
    command = [sys.executable, "-m", "trajudge.eval.cli", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as child:
        assert child.stdout
        try:
            ready = json.loads(child.stdout.readline())
            yield int(ready["proxy"].rpartition(":")[2])
        finally:
            child.terminate()


class RawClient:
    """One kept connection to a site through a proxy. The certificate is not checked."""

    def __init__(self, scheme: str, port: int, proxy: int) -> None:
        self.host = f"127.0.0.1:{port}"
        self.prefix = f"http://{self.host}" if scheme == "http" else ""
        self.sock = socket.create_connection(("127.0.0.1", proxy))
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if scheme == "https":
            connect = f"CONNECT {self.host} HTTP/1.1\r\nHost: {self.host}\r\n\r\n"
            self.sock.sendall(connect.encode())
            assert b" 200 " in self.sock.recv(4096)
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            self.sock = context.wrap_socket(self.sock, server_hostname="127.0.0.1")
        self.file = self.sock.makefile("rb")

    def get(self, path: str, fields: str) -> float:
        """Return the milliseconds to the answer's end."""
        request = f"GET {self.prefix}{path} HTTP/1.1\r\nHost: {self.host}\r\n{fields}\r\n"
        start, size = time.perf_counter(), 0
        self.sock.sendall(request.encode())
        assert b" 200 " in self.file.readline()
        while (line := self.file.readline()) != b"\r\n":
            if line.lower().startswith(b"content-length:"):
                size = int(line.split(b":")[1])
        assert len(self.file.read(size)) == size
        return 1000 * (time.perf_counter() - start)


def ratio(name: str, clients: list[RawClient], path: str, fields: str, n: int) -> float:
    """Measure mitmproxy's own and ours in turns; print and return the ratio of the medians."""
    taken = np.zeros((2, n + WARM_UP))
    for turn in range(n + WARM_UP):
        for arm in (0, 1) if turn % 2 else (1, 0):
            taken[arm, turn] = clients[arm].get(path, fields)
    own, mine = taken[:, WARM_UP:]
    drawn = np.random.default_rng(0).integers(n, size=(RESAMPLES, n))
    resampled = np.median(mine[drawn], axis=1) / np.median(own[drawn], axis=1)
    low, high = 100 * (np.quantile(resampled, (0.025, 0.975)) - 1)
    share = float(np.median(mine) / np.median(own))
    print(
        f"{name:<12} mitmproxy {np.median(own):6.2f} ms  with the addon {np.median(mine):6.2f} ms  "
        f"{100 * (share - 1):+.1f} % (95 %: {low:+.1f} to {high:+.1f})   "
        f"goal {100 * (GOAL - 1):+.0f} %   load {os.getloadavg()[0]:.1f}",
        flush=True,
    )
    return share


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=2000, help="turns of each kind of request")
    parser.add_argument("--origin", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.origin:
        asyncio.run(serve_origin(options.origin))
    shares = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with origin(folder) as ports, bare(folder) as own, ours(folder) as mine:
            for scheme, port in ports.items():
                for what, (path, fields) in ASKED.items():
                    clients = [RawClient(scheme, port, proxy) for proxy in (own, mine)]
                    shares.append(ratio(f"{scheme} {what}", clients, path, fields, options.n))
    return int(max(shares) > GOAL)


if __name__ == "__main__":
    sys.exit(main())
