"""What the proxy costs, and whether planned faults meet exactly their page loads.

    python -m benchmarks.proxy                     # all, about 15 minutes
    python -m benchmarks.proxy --only requests ttft stall
    python -m benchmarks.proxy --only exact --plans 500 --first 500    # plans 500 to 999
    python -m benchmarks.proxy --backend mitm      # mitmproxy before it, by HTTPS

Origin, proxy and client are processes of their own. Direct and proxied measurements alternate, so
that the machine's load meets both alike; medians are compared.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from benchmarks.proxy_origin import OriginPorts, spawned

if TYPE_CHECKING:
    from playwright.sync_api import Browser

WARM_UP = 3  # measurements that do not count
# Of a request, and of a page by the milliseconds that its server takes.
GOALS: dict[str, tuple[str, dict[int, str]]] = {
    "embedded": ("+0.5 ms", {0: "+5 %", 50: "+5 %", 500: "+1 %"}),
    "mitm": ("+2.5 ms", {0: "none", 500: "+6 %"}),
}
Direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))


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


def compared(name: str, goal: str, arms: Mapping[str, Callable[[], float]], n: int) -> None:
    """Alternate two arms and print medians, their difference and their ratio."""
    taken: dict[str, list[float]] = {arm: [] for arm in arms}
    for turn in range(n + WARM_UP):
        for arm, measure in arms.items():
            seconds = measure()
            if turn >= WARM_UP:
                taken[arm].append(1000 * seconds)
    direct, through = (statistics.median(values) for values in taken.values())
    share = 100 * (through / direct - 1)
    print(
        f"{name:<28} direct {direct:8.2f} ms  proxied {through:8.2f} ms  "
        f"{through - direct:+6.2f} ms ({share:+.1f} %)   goal {goal}",
        flush=True,
    )


def schemes(backend: str) -> tuple[str, ...]:
    return ("http", "https") if backend == "mitm" else ("http",)


def requests(backend: str, origin: OriginPorts, n: int) -> None:
    goal = GOALS[backend][0]
    with proxy(backend) as (ready, _):
        at = int(ready["proxy"].rpartition(":")[2])
        for scheme in schemes(backend):
            site = origin.url(scheme)
            _requests(scheme, RawClient(site), RawClient(site, at), goal, n)


def _requests(scheme: str, direct: RawClient, through: RawClient, goal: str, n: int) -> None:
    document = "Sec-Fetch-Dest: document\r\n"
    for what, path, fields in (("request, image", "/i.png", ""), ("document", "/p", document)):
        name = f"{scheme} {what}"
        arms = {
            "direct": partial(direct.get, path, fields),
            "proxied": partial(through.get, path, fields),
        }
        compared(name, goal, arms, n)


def first_token(url: str) -> float:
    body = json.dumps({"model": "m", "stream": True, "messages": []}).encode()
    request = urllib.request.Request(
        f"{url}/chat/completions", body, {"Content-Type": "application/json"}
    )
    start = time.perf_counter()
    with Direct.open(request) as answer:
        while b'"content": "To"' not in answer.readline():
            pass
        seconds = time.perf_counter() - start
        answer.read()
    return seconds


def ttft(backend: str, origin: OriginPorts, n: int) -> None:
    url = f"http://127.0.0.1:{origin.plain}/v1"
    with proxy(backend, api=url) as (ready, _):
        mine = ready["apis"]["openai"]
        arms = {"direct": lambda: first_token(url), "proxied": lambda: first_token(mine)}
        compared("first token of a stream", "+5 ms", arms, n)


def stall(backend: str, origin: OriginPorts, n: int) -> None:
    """Requests beside a page that is held back, against requests with no such page."""
    fault = {"id": "d", "kind": "delay", "seconds": 0.5, "policy": "bernoulli(1)"}
    site = origin.url(schemes(backend)[-1])
    with proxy(backend, fault) as (ready, _):
        at = int(ready["proxy"].rpartition(":")[2])
        other = RawClient(site, at)
        longest = {True: list[float](), False: list[float]()}
        for turn in range(n):
            held = threading.Thread(
                target=RawClient(site, at).get, args=("/p", "Sec-Fetch-Dest: document\r\n")
            )
            if turn % 2:
                held.start()
            until = time.perf_counter() + 0.4
            while time.perf_counter() < until:
                longest[bool(turn % 2)].append(1000 * other.get("/i.png"))
            if turn % 2:
                held.join()
    alone, beside = (statistics.median(longest[held]) for held in (False, True))
    worst = [statistics.quantiles(longest[held], n=100)[98] for held in (False, True)]
    print(
        f"beside a held page           alone {alone:.2f} ms  beside {beside:.2f} ms  "
        f"{beside - alone:+.2f} ms; 99th percentile {worst[0]:.2f} and {worst[1]:.2f} ms   "
        "goal +10 ms",
        flush=True,
    )


@contextmanager
def chromium() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    from trajudge.environments.chromium.browser import find_chromium

    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=sandbox)
        yield browser
        browser.close()


def pages(backend: str, origin: OriginPorts, n: int) -> None:
    with proxy(backend) as (ready, _), chromium() as browser:
        tabs = {
            "direct": browser.new_context(ignore_https_errors=True).new_page(),
            "proxied": browser.new_context(
                ignore_https_errors=True, proxy={"server": ready["proxy"]}
            ).new_page(),
        }

        def load(arm: str, site: str, think: int) -> float:
            start = time.perf_counter()
            tabs[arm].goto(f"{site}/page?think={think}")
            return time.perf_counter() - start

        before, turns = cpu_seconds(ready["pid"]), 0
        for scheme in schemes(backend):
            for think, goal in GOALS[backend][1].items():
                arms = {arm: partial(load, arm, origin.url(scheme), think) for arm in tabs}
                compared(f"{scheme} page, 13 assets, {think} ms", goal, arms, n)
                turns += n + WARM_UP
        spent = 1000 * (cpu_seconds(ready["pid"]) - before) / turns
        print(f"the proxy's own CPU time per page {spent:.1f} ms", flush=True)


def cpu_seconds(pid: int) -> float:
    """User and system time of a process and its children so far (Linux): what a busy machine does
    not change."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return sum(_own_seconds(one) for one in (pid, *map(int, children)))


def _own_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def control(ready: dict[str, Any], action: str, **body: Any) -> dict[str, Any]:
    request = urllib.request.Request(f"{ready['control']}/{action}", json.dumps(body).encode())
    with Direct.open(request) as answer:
        told: dict[str, Any] = json.load(answer)
        return told


def exact(backend: str, origin: OriginPorts, plans: int, first: int = 0) -> None:
    """Plans of two page loads of six, of the seeds from ``first`` on, on pages with a frame,
    prefetch, fetch, XHR and HEAD, with a step back and a reload: the browser must see the status at
    the planned ones and nowhere else."""
    fault = {"id": "s", "kind": "status", "status": 503, "policy": "random(2, 6)"}
    wrong = 0
    with proxy(backend, fault) as (ready, _), chromium() as browser:
        tab = browser.new_context(
            ignore_https_errors=True, proxy={"server": ready["proxy"]}
        ).new_page()
        site = f"{origin.url(schemes(backend)[-1])}/busy"
        for count, seed in enumerate(range(first, first + plans), 1):
            tab.goto("about:blank")
            control(ready, "task", id=f"t{seed}", seed=seed)
            moves: tuple[Callable[[], Any], ...] = (
                lambda: tab.goto(f"{site}1"),
                lambda: tab.goto(f"{site}2"),
                tab.go_back,
                tab.reload,
                lambda: tab.goto(f"{site}3"),
                tab.go_back,
            )
            seen = []
            for k, move in enumerate(moves, 1):
                if move().status == 503:
                    seen.append(k)
                else:
                    tab.evaluate("window.ready")
            told = control(ready, "end")
            (met,) = told["exposure"]
            wrong += not (met["planned"] == met["fired"] == seen and told["page_loads"] == 6)
            if not count % 100 or count == plans:
                print(f"page loads of {count} seeded plans: {wrong} wrong   goal 0", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--only", nargs="+", default=["requests", "ttft", "stall", "pages", "exact"]
    )
    parser.add_argument("--plans", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="seed of the first plan")
    parser.add_argument("--n", type=int, default=1, help="times as many measurements")
    parser.add_argument("--backend", choices=("embedded", "mitm"), default="embedded")
    options = parser.parse_args()
    parts: dict[str, tuple[Callable[[str, OriginPorts, int], None], int]] = {
        "requests": (requests, 1000 * options.n),
        "ttft": (ttft, 40 * options.n),
        "stall": (stall, 20 * options.n),
        "pages": (pages, 30 * options.n),
        "exact": (partial(exact, first=options.first), options.plans),
    }
    with spawned() as origin:
        for name in options.only:
            measure, n = parts[name]
            measure(options.backend, origin, n)


if __name__ == "__main__":
    main()
