"""A browser that is watched says itself what loads a page, on hosts where its requests do not."""

from __future__ import annotations

import socket
from dataclasses import replace
from pathlib import Path

import pytest

from tests.proxy.site import Site, ThreadedProxy, events_of, settings_of
from trajudge.proxy.server.sites import open_sites

pytestmark = pytest.mark.browser


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.slow
def test_a_watched_browser_tells_pages_from_frames_on_any_host(
    chromium: Path, site: Site, tmp_path: Path
) -> None:
    sync_api = pytest.importorskip("playwright.sync_api")
    port, url = free_port(), "http://shop.test"
    sites = open_sites((f"shop.test=http://127.0.0.1:{site.port}",))
    popup = {"kind": "popup", "policy": "at(3)"}
    settings = replace(settings_of(popup, out=tmp_path, cdp=port), sites=sites)
    with ThreadedProxy(settings) as proxy, sync_api.sync_playwright() as playwright:
        flags = ["--no-sandbox", f"--remote-debugging-port={port}"]
        browser = playwright.chromium.launch(
            executable_path=chromium, args=flags, proxy={"server": proxy.url}
        )
        page = browser.new_page()
        page.wait_for_timeout(1000)  # the watcher finds a browser that has just started
        page.goto(url + "/a")
        page.evaluate("window.ready.then(() => null)")
        page.evaluate("history.pushState({}, '', '/pushed')")
        page.evaluate("location.hash = 'here'")
        page.goto(url + "/b")
        page.go_back()
        assert page.get_by_role("dialog").count() == 1
        with page.expect_popup() as opened:
            page.evaluate("window.open('/c'); null")
        opened.value.wait_for_load_state()
        browser.close()
    pages = [(e["k"], e["url"], e["certain"]) for e in events_of(tmp_path, "page")]
    paths = ("/a", "/b", "/pushed", "/c")
    assert pages == [(k, url + path, True) for k, path in enumerate(paths, 1)]
    (end,) = events_of(tmp_path, "task_end")
    assert (end["page_loads"], end["uncertain_page_loads"]) == (4, 0)
    told = [(e["kind"], e["url"].removeprefix(url)) for e in events_of(tmp_path, "navigation")]
    assert told[:4] == [
        ("loaded", "/a"),
        ("within", "/pushed"),
        ("within", "/pushed#here"),
        ("loaded", "/b"),
    ]
    assert "/frame" in site.paths()
    assert not [h for _, _, h, _ in site.seen if any("trajudge" in name for name in h)]
