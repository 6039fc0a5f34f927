"""Pages in Chromium, through the proxy and past it: what a load costs, and which are counted."""

from __future__ import annotations

import json
import os
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from benchmarks.proxy_arms import Arm, compared, proxy
from benchmarks.proxy_origin import OriginPorts
from benchmarks.proxy_peers import Peer, forwarder, mitmdump

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# By the milliseconds that the page's server takes.
GOALS: dict[str, dict[int, str]] = {
    "embedded": {0: "+5 %", 50: "+5 %", 500: "+1 %"},
    "mitm": {0: "none", 500: "+6 %"},
}
SPOKEN: dict[str, tuple[str, ...]] = {
    "embedded": ("http",),
    "mitm": ("http", "https", "http2"),
}
Direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@contextmanager
def chromium() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    from trajudge.environments.chromium.browser import find_chromium

    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=sandbox)
        yield browser
        browser.close()


def peer_of(
    backend: str, origin: OriginPorts, spoken: str
) -> tuple[str, AbstractContextManager[Peer]]:
    """A peer that carries what the site speaks, and its name."""
    if backend == "embedded":
        return "forwarder", forwarder(origin.http)
    return "mitmdump", mitmdump(http2=spoken == "http2")


def pages(backend: str, origin: OriginPorts, n: int, thinks: Sequence[int] = ()) -> None:
    """Loads of a page with 13 assets, in turns: direct, through ours, through a peer. ``thinks``
    are the milliseconds that the origin thinks (none: all that have a goal)."""
    for spoken in SPOKEN[backend]:
        with ExitStack() as stack:
            ready, _ = stack.enter_context(proxy(backend))
            name, starting = peer_of(backend, origin, spoken)
            peer = stack.enter_context(starting)
            browser = stack.enter_context(chromium())
            through: dict[str, Peer | None] = {
                "direct": None,
                "proxied": Peer(ready["proxy"], ready["pid"]),
                name: peer,
            }
            for think, goal in GOALS[backend].items():
                if thinks and think not in thinks:
                    continue
                url = f"{origin.url(spoken)}/page?think={think}"
                arms = {arm: _loading(browser, to, url) for arm, to in through.items()}
                compared(f"{spoken} page, 13 assets, {think} ms", goal, arms, n)


def _loading(browser: Browser, through: Peer | None, url: str) -> Arm:
    """Load a page again and again in a tab of its own."""
    proxied: Any = {"proxy": {"server": through.proxy}} if through else {}
    tab = browser.new_context(ignore_https_errors=True, **proxied).new_page()

    def load() -> float:
        start = time.perf_counter()
        tab.goto(url)
        return time.perf_counter() - start

    return Arm(load, through.pid if through else None)


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
        site = f"{origin.url(SPOKEN[backend][-1])}/busy"
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
