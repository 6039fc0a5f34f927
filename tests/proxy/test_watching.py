"""A browser that is watched says itself what loads a page, on hosts where its requests do not."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.ports import free_port
from tests.proxy.site import Site, ThreadedProxy, events_of, settings_of
from tests.waiting import wait_until
from trajudge.eval.cli import main
from trajudge.proxy.http.messages import RequestHead
from trajudge.proxy.pages.loads import watched_kind
from trajudge.proxy.server.embedded import EmbeddedProxy
from trajudge.proxy.server.sites import open_sites

pytestmark = pytest.mark.browser
NEVER = {"kind": "status", "status": 503, "policy": "at(99)"}


def navigations(out: Path, until: Callable[[list[tuple[str, str]]], bool]) -> list[tuple[str, str]]:
    """Wait until the browser's word on its navigations has come; return kinds and paths."""

    def told() -> list[tuple[str, str]]:
        events = events_of(out, "navigation")
        found = [(event["kind"], event["url"].rpartition("/")[2]) for event in events]
        return found if until(found) else []

    return wait_until(told, every=0.05)


def is_watched(proxy: EmbeddedProxy) -> bool:
    return proxy.watch is not None and proxy.watch.attached


@pytest.mark.parametrize(("navigates", "page"), [("1", True), ("", False)])
def test_a_navigation_that_was_not_reached_in_time_is_guessed(navigates: str, page: bool) -> None:
    """Only navigations carry the field; what a script fetches as HTML loads no page."""
    headers = (("Accept", "text/html"), ("Upgrade-Insecure-Requests", navigates))
    head = RequestHead("GET", "/c", "HTTP/1.1", headers)
    _, purpose = watched_kind(head, "token", watched=True)
    assert purpose.page is page
    assert purpose.certain is not page


@pytest.mark.slow
def test_pages_from_the_cache_and_kept_pages_are_told_apart_and_are_no_loads(
    whole_chromium: Path, site: Site, tmp_path: Path
) -> None:
    """A page that an earlier visit left in the browser's cache, and one that ``back`` takes from
    the browser's memory, reach no proxy: both are navigations of their own kind, and no load."""
    sync_api = pytest.importorskip("playwright.sync_api")
    port, url, out = free_port(), "http://shop.test", tmp_path / "out"
    sites = open_sites((f"shop.test=http://127.0.0.1:{site.port}",))
    settings = replace(settings_of(NEVER, out=out, cdp=port), sites=sites)
    with sync_api.sync_playwright() as playwright:

        def opened(*flags: str, **options: Any) -> Any:
            return playwright.chromium.launch_persistent_context(
                str(tmp_path / "profile"),
                executable_path=whole_chromium,
                args=["--no-sandbox", *flags],
                **options,
            )

        earlier = opened(f"--host-resolver-rules=MAP shop.test 127.0.0.1:{site.port}")
        earlier.new_page().goto(url + "/tagged")  # its Cache-Control says 600 seconds
        earlier.close()
        site.seen.clear()
        with ThreadedProxy(settings) as proxy:
            context = opened(
                f"--remote-debugging-port={port}",
                proxy={"server": proxy.url},
                ignore_default_args=["--disable-back-forward-cache"],
            )
            page = context.new_page()
            wait_until(partial(is_watched, proxy))
            page.wait_for_timeout(1000)  # then the watcher attaches to the page that is there
            for path in ("/tagged", "/meta", "/strict"):
                page.goto(url + path)
            page.evaluate("history.back()")
            told = navigations(out, lambda told: len(told) > 3)
            page.goto(url + "/meta")
            context.close()
    assert told == [
        ("cached", "tagged"),
        ("loaded", "meta"),
        ("loaded", "strict"),
        ("restored", "meta"),
    ]
    asked = [path for path in site.paths() if path != "/favicon.ico"]  # asked for when it likes
    assert asked == ["/meta", "/strict", "/meta"]
    loads = [(e["k"], e["url"].removeprefix(url)) for e in events_of(out, "page")]
    assert loads == [(1, "/meta"), (2, "/strict"), (3, "/meta")]


@pytest.mark.slow
def test_a_watched_browser_tells_pages_from_frames_on_any_host(
    whole_chromium: Path, site: Site, tmp_path: Path
) -> None:
    sync_api = pytest.importorskip("playwright.sync_api")
    port, url = free_port(), "http://shop.test"
    sites = open_sites((f"shop.test=http://127.0.0.1:{site.port}",))
    popup = {"kind": "popup", "policy": "at(3)"}
    settings = replace(settings_of(popup, out=tmp_path, cdp=port), sites=sites)
    with ThreadedProxy(settings) as proxy, sync_api.sync_playwright() as playwright:
        flags = ["--no-sandbox", f"--remote-debugging-port={port}"]
        browser = playwright.chromium.launch(
            executable_path=whole_chromium, args=flags, proxy={"server": proxy.url}
        )
        page = browser.new_page()
        wait_until(partial(is_watched, proxy))
        page.wait_for_timeout(1000)  # then the watcher attaches to the page that is there
        page.goto(url + "/a")
        page.evaluate("window.ready.then(() => null)")
        page.evaluate("history.pushState({}, '', '/pushed')")
        page.evaluate("location.hash = 'here'")
        page.goto(url + "/b")
        page.go_back()
        assert page.get_by_role("dialog").count() == 1
        with page.expect_popup() as opened:
            page.evaluate("window.open('/c'); null")
        # Its first load may be that of about:blank, and Playwright may miss that of a page which
        # takes its place just then: the page itself is asked.
        opened.value.wait_for_url(url + "/c", wait_until="commit")
        opened.value.wait_for_function("document.readyState === 'complete'")
        browser.close()
    pages = [(e["k"], e["url"], e["certain"]) for e in events_of(tmp_path, "page")]
    paths = ("/a", "/b", "/pushed", "/c")
    assert [page[:2] for page in pages] == [(k, url + path) for k, path in enumerate(paths, 1)]
    # On a busy machine a new window may be on its way before it is watched.
    assert [certain for _, _, certain in pages[:3]] == [True, True, True]
    (end,) = events_of(tmp_path, "task_end")
    assert (end["page_loads"], end["uncertain_page_loads"]) == (4, not pages[3][2])
    told = [(e["kind"], e["url"].removeprefix(url)) for e in events_of(tmp_path, "navigation")]
    assert told[:4] == [
        ("loaded", "/a"),
        ("within", "/pushed"),
        ("within", "/pushed#here"),
        ("loaded", "/b"),
    ]
    assert "/frame" in site.paths()
    assert not [h for _, _, h, _ in site.seen if any("trajudge" in name for name in h)]


AGENT = """
import os, sys
from playwright.sync_api import sync_playwright
with sync_playwright() as playwright:
    browser = playwright.chromium.launch(
        executable_path=sys.argv[1],
        args=["--no-sandbox", "--remote-debugging-port=" + sys.argv[2]],
        proxy={"server": os.environ["TRAJUDGE_PROXY"]},
    )
    page = browser.new_page()
    page.wait_for_timeout(1000)
    page.goto(sys.argv[3])
    browser.close()
"""


@pytest.mark.slow
def test_a_browser_that_the_agent_starts_itself_is_in_time(
    whole_chromium: Path, site: Site, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("playwright.sync_api")
    port, out = str(free_port()), tmp_path / "run"
    agent = [sys.executable, "-c", AGENT, str(whole_chromium), port, "http://shop.test/a"]
    words = ["--cdp", port, "--site", f"shop.test=http://127.0.0.1:{site.port}", "--out", str(out)]
    assert main(["proxy", "run", *words, "--", *agent]) == 0
    assert "no browser listened" not in capfd.readouterr().out
    assert [page["certain"] for page in events_of(out, "page")] == [True]
