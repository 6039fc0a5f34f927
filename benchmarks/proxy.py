"""What the proxy costs, and whether planned faults meet exactly their page loads.

    python -m benchmarks.proxy                     # all, about 15 minutes
    python -m benchmarks.proxy --only requests ttft stall
    python -m benchmarks.proxy --only exact --plans 500 --first 500    # plans 500 to 999
    python -m benchmarks.proxy --only pages --think 500 --n 10
    python -m benchmarks.proxy --backend mitm      # mitmproxy before it, by HTTPS

Origin, proxy and client are processes of their own. The arms are measured in turns, so that the
machine's load meets all alike; medians are compared, with 95 % intervals. Beside ours stands a
peer: a forwarder that reads no byte of what it carries, which is the least that a proxy in Python
can cost, or mitmproxy's own command. Loads of a page vary by 20 ms and more: 1 % of 500 ms is told
from nothing with ``--n 10`` on a quiet machine, in half an hour.
"""

from __future__ import annotations

import argparse
import json
import statistics
import threading
import time
import urllib.request
from collections.abc import Callable
from functools import partial
from urllib.parse import urlsplit

from benchmarks.proxy_arms import Arm, RawClient, compared, proxy
from benchmarks.proxy_origin import OriginPorts, spawned
from benchmarks.proxy_pages import Direct, exact, pages, peer_of

GOALS = {"embedded": "+0.5 ms", "mitm": "+2.5 ms"}  # of a request

ASKED = (
    ("request, image", "/i.png", ""),
    ("document", "/p", "Sec-Fetch-Dest: document\r\n"),
)


def schemes(backend: str) -> tuple[str, ...]:
    return ("http", "https") if backend == "mitm" else ("http",)


def requests(backend: str, origin: OriginPorts, n: int) -> None:
    for scheme in schemes(backend):
        name, starting = peer_of(backend, origin, scheme)
        with proxy(backend) as (ready, _), starting as peer:
            site = origin.url(scheme)
            clients = {
                "direct": (RawClient(site), None),
                "proxied": (RawClient(site, _port(ready["proxy"])), ready["pid"]),
                name: (RawClient(site, _port(peer.proxy)), peer.pid),
            }
            for what, path, fields in ASKED:
                arms = {
                    arm: Arm(partial(client.get, path, fields), pid)
                    for arm, (client, pid) in clients.items()
                }
                compared(f"{scheme} {what}", GOALS[backend], arms, n)


def _port(url: str) -> int:
    return urlsplit(url).port or 0


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
    url = f"http://127.0.0.1:{origin.http}/v1"
    with proxy(backend, api=url) as (ready, _):
        mine = ready["apis"]["openai"]
        arms = {
            "direct": Arm(partial(first_token, url)),
            "proxied": Arm(partial(first_token, mine), ready["pid"]),
        }
        compared("first token of a stream", "+5 ms", arms, n)


def stall(backend: str, origin: OriginPorts, n: int) -> None:
    """Requests beside a page that is held back, against requests with no such page."""
    fault = {"id": "d", "kind": "delay", "seconds": 0.5, "policy": "bernoulli(1)"}
    site = origin.url(schemes(backend)[-1])
    with proxy(backend, fault) as (ready, _):
        at = _port(ready["proxy"])
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    names = ["requests", "ttft", "stall", "pages", "exact"]
    parser.add_argument("--only", nargs="+", default=names, choices=names)
    parser.add_argument("--plans", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="seed of the first plan")
    parser.add_argument("--n", type=int, default=1, help="times as many measurements")
    parser.add_argument("--think", nargs="+", type=int, default=[], help="ms, of pages alone")
    parser.add_argument("--backend", choices=("embedded", "mitm"), default="embedded")
    options = parser.parse_args()
    parts: dict[str, tuple[Callable[[str, OriginPorts, int], None], int]] = {
        "requests": (requests, 1000 * options.n),
        "ttft": (ttft, 40 * options.n),
        "stall": (stall, 20 * options.n),
        "pages": (partial(pages, thinks=options.think), 30 * options.n),
        "exact": (partial(exact, first=options.first), options.plans),
    }
    with spawned() as origin:
        for name in options.only:
            measure, n = parts[name]
            measure(options.backend, origin, n)


if __name__ == "__main__":
    main()
