"""What the measurements of the proxy share: the proxy as users start it, a raw client, and arms
that are measured in turns."""

from __future__ import annotations

import json
import os
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

WARM_UP = 3  # measurements that do not count
_RESAMPLES = 1000


class Arm(NamedTuple):
    """One way to the site; ``measure`` returns seconds, ``pid`` is the proxy's process."""

    measure: Callable[[], float]
    pid: int | None = None


@contextmanager
def proxy(
    backend: str, *faults: dict[str, Any], api: str = ""
) -> Iterator[tuple[dict[str, Any], Path]]:
    """``trajudge proxy serve`` with a plan; yields its first line and its folder."""
    with tempfile.TemporaryDirectory() as folder:
        plan, out = Path(folder) / "plan.json", Path(folder) / "run"
        plan.write_text(json.dumps({"faults": faults}))
        words = ["proxy", "serve", "--backend", backend, "--faults", str(plan), "--out", str(out)]
        words += ["--api", f"openai={api}"] if api else []
        command = [sys.executable, "-m", "trajudge.eval.cli", *words]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as child:
            assert child.stdout
            try:
                yield json.loads(child.stdout.readline()), out
            finally:
                child.terminate()


class RawClient:
    """One kept connection to a site, through a proxy's port if one is named; ``get`` returns the
    seconds to the answer's end. The certificate is not checked."""

    def __init__(self, site: str, proxy: int | None = None) -> None:
        parts = urlsplit(site)
        self.host = parts.netloc
        self.prefix = site if proxy and parts.scheme == "http" else ""
        self.sock = socket.create_connection(("127.0.0.1", proxy or parts.port or 80))
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if parts.scheme == "https":
            self._encrypt(tunnelled=proxy is not None)
        self.file = self.sock.makefile("rb")

    def _encrypt(self, tunnelled: bool) -> None:
        if tunnelled:
            self.sock.sendall(f"CONNECT {self.host} HTTP/1.1\r\n\r\n".encode())
            assert b" 200 " in self.sock.recv(4096)
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        self.sock = context.wrap_socket(self.sock, server_hostname="shop.localhost")

    def get(self, path: str, fields: str = "") -> float:
        request = f"GET {self.prefix}{path} HTTP/1.1\r\nHost: {self.host}\r\n{fields}\r\n"
        start = time.perf_counter()
        self.sock.sendall(request.encode())
        size = 0
        while (line := self.file.readline()) not in (b"\r\n", b""):
            if line.lower().startswith(b"content-length:"):
                size = int(line.split(b":")[1])
        self.file.read(size)
        return time.perf_counter() - start


def compared(name: str, goal: str, arms: Mapping[str, Arm], n: int) -> None:
    """Measure arms in turns and print, against the first one, medians, their difference with its
    95 % interval (a bootstrap over turns), and the processor time that each proxy took."""
    spent = {arm: -cpu_seconds(one.pid) for arm, one in arms.items() if one.pid}
    taken = {arm: np.zeros(n + WARM_UP) for arm in arms}
    for turn in range(n + WARM_UP):
        for arm, one in arms.items():
            taken[arm][turn] = 1000 * one.measure()
    first, *others = arms
    direct = taken[first][WARM_UP:]
    for number, arm in enumerate(others):
        seconds = spent[arm] + cpu_seconds(arms[arm].pid or 0)
        print(
            f"{'' if number else name:<30} {first} {np.median(direct):8.2f} ms  "
            f"{arm:<9} {_difference(direct, taken[arm][WARM_UP:])}  "
            f"CPU {1000 * seconds / (n + WARM_UP):5.2f} ms   "
            f"{'a peer' if number else f'goal {goal}'}   load {os.getloadavg()[0]:.1f}",
            flush=True,
        )


def _difference(direct: NDArray[np.float64], through: NDArray[np.float64]) -> str:
    """Two medians' difference in words; both arrays in milliseconds, one value per turn."""
    rng = np.random.default_rng(0)
    drawn = rng.integers(len(direct), size=(_RESAMPLES, len(direct)))
    shares = np.median(through[drawn], axis=1) / np.median(direct[drawn], axis=1) - 1
    low, high = 100 * np.quantile(shares, (0.025, 0.975))
    middle, ours = np.median(direct), np.median(through)
    return (
        f"{ours:8.2f} ms {ours - middle:+7.2f} ms ({100 * (ours / middle - 1):+.1f} %, "
        f"95 %: {low:+.1f} to {high:+.1f})"
    )


def cpu_seconds(pid: int) -> float:
    """User and system time of a process and its children so far (Linux): what a busy machine does
    not change."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return sum(_own_seconds(one) for one in (pid, *map(int, children)))


def _own_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
