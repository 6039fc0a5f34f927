"""The proxy before a real Chromium that is started with the flags they name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.proxy.arms import Arm
from tests.proxy.site import Site, ThreadedProxy, events_of, settings_of
from trajudge.proxy.commands import open_sites

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser
PLAN: tuple[dict[str, Any], ...] = (
    {"kind": "popup", "policy": "at(3)"},
    {"kind": "status", "status": 503, "policy": "at(5)"},
    {"kind": "reset", "policy": "at(6)"},
    {"kind": "truncate", "policy": "at(8)"},
    {"kind": "assets", "assets": ["style"], "policy": "at(9)"},
)
TALK = """new Promise((done, fail) => {
    const socket = new WebSocket(location.origin.replace('http', 'ws') + '/socket');
    socket.onopen = () => socket.send('hello'); socket.onerror = () => fail('broken');
    socket.onmessage = event => done(event.data); })"""


@contextmanager
def browsing(chromium: Path, arm: Arm, out: Path, *faults: dict[str, Any]) -> Iterator[Page]:
    sync_api = pytest.importorskip("playwright.sync_api")
    with (
        ThreadedProxy(arm.settings(*faults, out=out)) as proxy,
        sync_api.sync_playwright() as playwright,
    ):
        flags = ["--no-sandbox", *proxy.chromium_flags()]
        browser = playwright.chromium.launch(executable_path=chromium, args=flags)
        try:
            yield browser.new_page(viewport={"width": 1280, "height": 720})
        finally:
            browser.close()


@pytest.mark.slow
def test_faults_meet_exactly_their_page_loads(chromium: Path, arm: Arm, tmp_path: Path) -> None:
    """A page with a frame, prefetch, fetch, XHR and HEAD is one load; back and reload are one
    each, cached or not; pushed states, fragments and WebSockets are none."""
    from playwright.sync_api import Error

    arm.site.seen.clear()
    with browsing(chromium, arm, tmp_path, *PLAN) as page:
        page.goto(arm.origin + "/a")
        page.evaluate("window.ready.then(() => null)")
        page.evaluate("history.pushState({}, '', '/pushed'); history.back()")
        page.evaluate("location.hash = 'here'")
        page.goto(arm.origin + "/b")
        page.goto(arm.origin + "/strict")
        with page.expect_response(lambda response: "/__trajudge/popup/" in response.url):
            page.get_by_role("button", name="No, thanks").click()
        assert page.get_by_role("dialog").count() == 0
        assert _status(page.go_back()) == 200
        assert _status(page.reload()) == 503
        with pytest.raises(Error, match=r"ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE|ERR_HTTP2"):
            page.goto(arm.origin + "/b")
        page.wait_for_timeout(600)
        page.goto(arm.origin + "/b")
        assert page.evaluate(TALK) == "hello"
        # What the page before still asked for ends with it, and fails as well.
        with page.expect_event("requestfailed", lambda one: one.url.endswith("/plain")) as failed:
            page.goto(arm.origin + "/plain", wait_until="commit")
        assert failed.value.failure in ("net::ERR_CONTENT_LENGTH_MISMATCH", H2_CUT)
        page.goto(arm.origin + "/b")
        colour = "getComputedStyle(document.querySelector('h1')).color"
        assert page.evaluate(colour) == "rgb(0, 0, 0)"
        page.goto(arm.origin + "/packed")
        assert page.title() == "br"
        page.wait_for_load_state("networkidle")
    asked = {(method, path) for method, path, _, _ in arm.site.seen}
    assert {("GET", "/frame"), ("GET", "/fragment"), ("HEAD", "/a"), ("GET", "/next")} <= asked
    (end,) = events_of(tmp_path, "task_end")
    fired = {exposure["fault"]: exposure["fired"] for exposure in end["exposure"]}
    assert fired == {"popup": [3], "status": [5], "reset": [6], "truncate": [8], "assets": [9]}
    counts = ("page_loads", "uncertain_page_loads", "tunnels")
    assert [end[name] for name in counts] == [10, 0, 1]
    means = {event["fault"]: event["means"] for event in events_of(tmp_path, "recovery")}
    assert means["popup"] == "dismissed" and means["reset"] == "reloaded"


H2_CUT = "net::ERR_HTTP2_PROTOCOL_ERROR"


def _status(answer: Any) -> int | None:
    return None if answer is None else answer.status


@pytest.mark.slow
def test_the_flags_of_the_proxy_let_the_browser_say_what_is_a_page_on_any_host(
    whole_chromium: Path, site: Site, tmp_path: Path
) -> None:
    """Else a page and a frame would look alike on a host by plain HTTP."""
    sync_api = pytest.importorskip("playwright.sync_api")
    sites = open_sites((f"shop.test=http://127.0.0.1:{site.port}",))
    with (
        ThreadedProxy(settings_of(out=tmp_path, sites=sites)) as proxy,
        sync_api.sync_playwright() as playwright,
    ):
        flags = ["--no-sandbox", *proxy.chromium_flags()]
        browser = playwright.chromium.launch(executable_path=whole_chromium, args=flags)
        page = browser.new_page()
        for origin in ("http://shop.test", f"http://shop.test:{site.port}", "https://shop.test"):
            page.goto(origin + "/b")
            page.evaluate("window.ready.then(() => null)")
        browser.close()
    pages = [(page["k"], page["certain"]) for page in events_of(tmp_path, "page")]
    assert pages == [(1, True), (2, True), (3, True)]
    assert "/frame" in site.paths()
