"""What counts as a page load, and what faults look like, in a real Chromium on loopback."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.proxy.arms import Arm
from tests.proxy.site import Site, ThreadedProxy, events_of, settings_of
from tests.tables import table
from trajudge.proxy.commands import open_sites
from trajudge.proxy.process import RunningProxy

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Playwright

pytestmark = pytest.mark.browser
NEVER = {"kind": "status", "status": 503, "policy": "at(99)"}
TALK = """new Promise((done, fail) => {
    const socket = new WebSocket(location.origin.replace('http', 'ws') + '/socket');
    socket.onopen = () => socket.send('hello'); socket.onerror = () => fail('broken');
    socket.onmessage = event => done(event.data); })"""


@pytest.fixture(scope="module")
def playwright() -> Iterator[Playwright]:
    with pytest.importorskip("playwright.sync_api").sync_playwright() as started:
        yield started


@pytest.fixture(scope="module")
def browser(playwright: Playwright, chromium: Path) -> Iterator[Browser]:
    launched = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
    yield launched
    launched.close()


@contextmanager
def browsing(
    browser: Browser, out: Path, *faults: dict[str, Any], **settings: Any
) -> Iterator[tuple[Page, RunningProxy]]:
    """A page whose context goes through a proxy with these faults; the events are whole after."""
    with ThreadedProxy(settings_of(*faults, out=out, **settings)) as proxy:
        context = browser.new_context(
            proxy={"server": proxy.url}, viewport={"width": 1280, "height": 720}
        )
        try:
            yield context.new_page(), proxy
        finally:
            context.close()


def loads(out: Path) -> list[str]:
    """The pages that were counted, by the end of their address, in order."""
    return [page["url"].rpartition("/")[2] for page in events_of(out, "page")]


def settled(page: Page) -> None:
    """Wait until the page's own requests (fetch, HEAD, XHR) are through."""
    page.evaluate("window.ready.then(() => null)")


def test_a_busy_page_is_one_load(browser: Browser, site: Site, tmp_path: Path) -> None:
    popup = {"kind": "popup", "policy": "at(3)"}
    shown = []
    with browsing(browser, tmp_path, popup) as (page, _):
        for path in ("/a", "/b", "/c", "/d", "/e"):
            page.goto(site.origin + path)
            settled(page)
            shown.append(page.get_by_role("dialog").count())
        page.wait_for_load_state("networkidle")  # what is prefetched comes late
    assert shown == [0, 0, 1, 0, 0]
    assert loads(tmp_path) == ["a", "b", "c", "d", "e"]
    asked = {(method, path) for method, path, _, _ in site.seen}
    assert {("GET", "/frame"), ("GET", "/fragment"), ("HEAD", "/a"), ("GET", "/next")} <= asked
    purposes = {path: h.get("sec-purpose", "") for _, path, h, _ in site.seen}
    assert "prefetch" in purposes["/next"]


def test_back_and_cached_pages_load_again_and_pushed_states_do_not(
    browser: Browser, site: Site, tmp_path: Path
) -> None:
    with browsing(browser, tmp_path, NEVER) as (page, _):
        page.goto(site.origin + "/a")
        page.goto(site.origin + "/b")
        page.go_back()
        page.go_forward()
        page.goto(site.origin + "/a")  # its Cache-Control says 600 seconds
        page.reload()
        page.evaluate("history.pushState({}, '', '/pushed'); history.back()")
        page.evaluate("location.hash = 'here'")
        settled(page)
    assert loads(tmp_path) == ["a", "b", "a", "b", "a", "a"]


def test_links_windows_forms_and_redirects(browser: Browser, site: Site, tmp_path: Path) -> None:
    form = "<form method=post action=/save><input name=q value=1></form>"
    with browsing(browser, tmp_path, NEVER) as (page, _):
        page.goto(site.origin + "/a")
        with page.expect_navigation():
            page.click("#b")
        with page.expect_popup() as opened:
            page.evaluate("window.open('/c'); null")
        opened.value.wait_for_load_state()
        page.goto(site.origin + "/moved")
        page.evaluate(f"document.body.innerHTML = '{form}'")
        with page.expect_navigation():
            page.evaluate("document.forms[0].submit()")
        assert page.url.endswith("/saved")
    ks = [
        (page["k"], page["method"], page["url"].rpartition("/")[2])
        for page in events_of(tmp_path, "page")
    ]
    assert ks == [
        (1, "GET", "a"),
        (2, "GET", "b"),
        (3, "GET", "c"),
        (4, "GET", "moved"),
        (4, "GET", "b?from=moved"),
        (5, "POST", "save"),
        (5, "GET", "saved"),
    ]


@table(
    "variant accessibility path",
    """
    modal  | full | /strict
    modal  | full | /closed
    modal  | none | /meta
    banner | full | /meta
    banner | none | /strict
    """,
)
def test_a_popup_is_seen_and_closed(
    browser: Browser, site: Site, tmp_path: Path, path: str, accessibility: str, variant: str
) -> None:
    popup = {"kind": "popup", "accessibility": accessibility, "variant": variant, "policy": "at(1)"}
    with browsing(browser, tmp_path, popup) as (page, _):
        page.goto(site.origin + path)
        close = page.locator(".close")
        box, text = close.bounding_box(), page.get_by_text("Get our weekly offers")
        words = text.bounding_box()
        for seen in (box, words):
            assert seen and seen["x"] >= 0 and seen["y"] >= 0
            assert seen["x"] + seen["width"] <= 1280 and seen["y"] + seen["height"] <= 720
        tree = page.locator("body").aria_snapshot()
        assert ('button "No, thanks"' in tree) == (accessibility == "full")
        assert ('dialog "Get our weekly offers"' in tree) == (accessibility == "full")
        with page.expect_response(lambda response: "/__trajudge/popup/" in response.url):
            close.click()
        assert text.count() == 0
    (fired,), (closed,) = events_of(tmp_path, "fault"), events_of(tmp_path, "popup_closed")
    assert fired["overlay"] == closed["overlay"]
    assert not any("__trajudge" in path for path in site.paths())


def test_a_delayed_and_a_hidden_popup(browser: Browser, site: Site, tmp_path: Path) -> None:
    popups: list[dict[str, Any]] = [
        {"id": "late", "kind": "popup", "variant": "delayed", "seconds": 2, "policy": "at(1)"},
        {"id": "below", "kind": "popup", "variant": "offscreen", "policy": "at(2)"},
    ]
    with browsing(browser, tmp_path, *popups) as (page, _):
        page.goto(site.origin + "/strict")
        dialog = page.get_by_role("dialog")
        assert not dialog.is_visible()
        dialog.wait_for(state="visible", timeout=15000)
        page.goto(site.origin + "/strict")
        box = page.locator(".close").bounding_box()
        assert box and box["y"] > 720


def test_a_reset_is_seen_once_though_the_browser_asks_again(
    browser: Browser, site: Site, tmp_path: Path
) -> None:
    from playwright.sync_api import Error

    with browsing(browser, tmp_path, {"kind": "reset", "policy": "at(2)"}) as (page, _):
        page.goto(site.origin + "/a")
        settled(page)
        with pytest.raises(Error, match=r"ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE"):
            page.goto(site.origin + "/b")
        page.wait_for_timeout(600)
        page.goto(site.origin + "/b")
    (end,) = events_of(tmp_path, "task_end")
    assert (end["page_loads"], end["exposure"][0]["fired"]) == (3, [2])


@pytest.mark.parametrize(
    ("fault", "status", "text"),
    [
        ({"kind": "offline"}, 503, "You are offline"),
        ({"kind": "session", "location": "/login"}, 200, ""),
        ({"kind": "assets", "assets": ["style"]}, 200, "/b"),
    ],
)
def test_other_faults_in_the_browser(
    browser: Browser, site: Site, tmp_path: Path, fault: dict[str, Any], status: int, text: str
) -> None:
    with browsing(browser, tmp_path, {**fault, "policy": "at(1)"}) as (page, _):
        answer = page.goto(site.origin + "/b")
        assert answer and answer.status == status
        assert text in page.content()
        if fault["kind"] == "assets":
            colour = "getComputedStyle(document.querySelector('h1')).color"
            assert page.evaluate(colour) == "rgb(0, 0, 0)"
    (end,) = events_of(tmp_path, "task_end")
    assert end["exposure"][0]["fired"] == [1]


def test_a_page_cut_short_fails_as_one_from_a_broken_server(
    browser: Browser, site: Site, tmp_path: Path
) -> None:
    failures = []
    with browsing(browser, tmp_path, {"kind": "truncate", "policy": "at(1)"}) as (page, _):
        for path in ("/b", "/cut"):  # the site itself cuts the second one off
            with page.expect_event("requestfailed") as failed:
                page.goto(site.origin + path, wait_until="commit")
            failures.append(failed.value.failure)
    assert failures[0] == "net::ERR_CONTENT_LENGTH_MISMATCH"
    (event,) = events_of(tmp_path, "fault")
    assert event["kept"] == event["size"] // 2


def test_loads_of_an_untrustworthy_host_are_marked_as_guessed(
    browser: Browser, site: Site, tmp_path: Path
) -> None:
    """Chromium sends Sec-Fetch-Dest to trustworthy addresses alone: a frame looks like a page."""
    sites = open_sites((f"shop.test=http://127.0.0.1:{site.port}",))
    with ThreadedProxy(replace(settings_of(NEVER, out=tmp_path), sites=sites)) as proxy:
        context = browser.new_context(proxy={"server": proxy.url})
        context.new_page().goto("http://shop.test/b")
        context.close()
    pages = events_of(tmp_path, "page")
    assert {page["certain"] for page in pages} == {False}
    (end,) = events_of(tmp_path, "task_end")
    assert end["uncertain_page_loads"] == len(pages) >= 2


def test_websockets_pass_and_do_not_count(browser: Browser, site: Site, tmp_path: Path) -> None:
    with browsing(browser, tmp_path, NEVER) as (page, _):
        page.goto(site.origin + "/b")
        assert page.evaluate(TALK) == "hello"
    (end,) = events_of(tmp_path, "task_end")
    assert (end["tunnels"], end["page_loads"]) == (1, 1)


def test_rules_read_the_trace(browser: Browser, site: Site, tmp_path: Path) -> None:
    from trajudge.rules.har import read_recording

    with browsing(browser, tmp_path, NEVER) as (page, _):
        page.context.add_cookies([{"name": "secret", "value": "s3cret", "url": site.origin}])
        page.goto(site.origin + "/a?q=1")
        page.evaluate("fetch('/echo', {method: 'POST', body: new URLSearchParams({sku: '7'})})")
        settled(page)
    file = tmp_path / "traces/task.har"
    recording = read_recording(file)
    assert not recording.flaws
    by_url = {entry.request.url.rpartition("/")[2]: entry for entry in recording.entries}
    assert (by_url["a?q=1"].resource_type, by_url["a?q=1"].response.status) == ("document", 200)
    assert by_url["echo"].request.method == "POST"
    assert json.loads(bytes(by_url["echo"].request.post_data))["text"] == "sku=7"
    assert by_url["i.png"].resource_type == "image"
    assert "s3cret" not in file.read_text()


@pytest.mark.parametrize("seed", range(2))
def test_random_plans_meet_exactly_their_page_loads(
    browser: Browser, site: Site, tmp_path: Path, seed: int
) -> None:
    fault = {"kind": "status", "status": 503, "policy": "random(2, 6)"}
    seen = []
    with browsing(browser, tmp_path, fault, seed=seed) as (page, _):
        for k, path in enumerate(("/a", "/b", None, "/c", "/b", None), 1):
            answer = page.goto(site.origin + path) if path else page.go_back()
            if answer is None or answer.status == 503:
                seen.append(k)
            else:
                settled(page)
    (end,) = events_of(tmp_path, "task_end")
    exposure = end["exposure"][0]
    assert exposure["planned"] == exposure["fired"]
    assert (seen, end["page_loads"]) == (exposure["planned"], 6)


# Started with the flags that the proxy names, over http and https.

PLAN: tuple[dict[str, Any], ...] = (
    {"kind": "popup", "policy": "at(3)"},
    {"kind": "status", "status": 503, "policy": "at(5)"},
    {"kind": "reset", "policy": "at(6)"},
    {"kind": "truncate", "policy": "at(8)"},
    {"kind": "assets", "assets": ["style"], "policy": "at(9)"},
)


@contextmanager
def launched(playwright: Playwright, program: Path, proxy: RunningProxy) -> Iterator[Page]:
    flags = ["--no-sandbox", *proxy.chromium_flags()]
    browser = playwright.chromium.launch(executable_path=program, args=flags)
    try:
        yield browser.new_page(viewport={"width": 1280, "height": 720})
    finally:
        browser.close()


@pytest.mark.slow
def test_faults_meet_exactly_their_page_loads(
    playwright: Playwright, chromium: Path, arm: Arm, tmp_path: Path
) -> None:
    """A page with a frame, prefetch, fetch, XHR and HEAD is one load; back and reload are one
    each, cached or not; pushed states, fragments and WebSockets are none."""
    from playwright.sync_api import Error

    arm.site.seen.clear()
    with (
        ThreadedProxy(arm.settings(*PLAN, out=tmp_path)) as proxy,
        launched(playwright, chromium, proxy) as page,
    ):
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
    playwright: Playwright, whole_chromium: Path, site: Site, tmp_path: Path
) -> None:
    """Else a page and a frame would look alike on a host by plain HTTP."""
    sites = open_sites((f"shop.test=http://127.0.0.1:{site.port}",))
    with (
        ThreadedProxy(settings_of(out=tmp_path, sites=sites)) as proxy,
        launched(playwright, whole_chromium, proxy) as page,
    ):
        for origin in ("http://shop.test", f"http://shop.test:{site.port}", "https://shop.test"):
            page.goto(origin + "/b")
            page.evaluate("window.ready.then(() => null)")
    pages = [(page["k"], page["certain"]) for page in events_of(tmp_path, "page")]
    assert pages == [(1, True), (2, True), (3, True)]
    assert "/frame" in site.paths()
