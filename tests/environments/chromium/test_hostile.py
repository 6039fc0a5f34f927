"""What an agent or a page may try: nothing leaves the run's origin, nothing stops the batch."""

from __future__ import annotations

import contextlib

import pytest

from tests.environments.chromium.conftest import Open, bid, click
from tests.environments.chromium.site import Site
from trajudge.environments.chromium import Browser, Session, open_session

pytestmark = pytest.mark.browser

OWN = "http://{run}.localhost"


def usable(session: Session) -> bool:
    """Whether the session still shows its site and acts in it."""
    view = session.observe()
    assert view.observation.page_error is None
    return (view.observation.axtree or "").startswith("RootWebArea") and session.act(
        "noop()"
    ) is None


@pytest.mark.parametrize(
    "url",
    [
        *("javascript:document.title='ran'", "file:///etc/passwd", "view-source:http://{run}/"),
        *("data:text/html,hi", "chrome://version", "chrome://crash", "about:blank", "blob:{run}/x"),
        *("http://other.localhost/", "http://example.com/", "https://{run}/", "//other.localhost/"),
        *(
            "http://{run}.other.localhost/",
            "http://{run}@other.localhost/",
            "HTTP://other.localhost",
        ),
        *("http://{run}:81/", "\tjavascript:document.title='ran'", "http:\\\\other.localhost/", ""),
        *("JaVaScRiPt:document.title='ran'", "http://{run}/\n", "x" * 15_000, "ws://{run}/"),
    ],
)
def test_goto_leads_nowhere_but_to_the_runs_origin(browser: Browser, site: Site, url: str) -> None:
    site.hits.clear()
    with open_session(browser, "http://filter.localhost/form") as session:
        error = session.act(f"goto({url.replace('{run}', 'filter.localhost')!r})")
        assert error and "outside of http://filter.localhost" in error and len(error) < 400
        assert session.observe().title == "Site" and usable(session)
    assert {host for host, _, _ in site.hits} == {"filter.localhost"}


@pytest.mark.parametrize("name", ["Other", "Away", "File", "Data"])
def test_a_link_out_leads_nowhere(at: Open, site: Site, name: str) -> None:
    site.hits.clear()
    with at("/outside") as session:
        session.act(f"click({bid(session, name)!r})")
        assert (session.observe().observation.url or "").endswith("/outside") and usable(session)
        assert click(session, "Script") is None  # the page's own
    assert not any(host == "other.localhost" for host, _, _ in site.hits)


def test_a_redirect_out_leads_nowhere(at: Open, site: Site) -> None:
    site.hits.clear()
    with at("/form") as session:
        away = (session.observe().observation.url or "").replace("/form", "/away")
        error = session.act(f"goto({away!r})")
        assert error and error.startswith("Error: 'http://other.localhost/secret' is outside of")
        assert (session.observe().observation.url or "").endswith("/form") and usable(session)
    assert not any(host == "other.localhost" for host, _, _ in site.hits)


def test_a_page_gets_nothing_from_other_origins(at: Open, site: Site) -> None:
    site.hits.clear()
    with at("/outside") as session:
        session.evaluate(
            "fetch('http://other.localhost/fetched', {mode: 'no-cors'}).catch(() => 0)"
        )
        session.evaluate("navigator.sendBeacon('http://other.localhost/beacon', 'x')")
        session.act("noop(50)")
        assert usable(session)
    assert not any(host == "other.localhost" for host, _, _ in site.hits)


@pytest.mark.parametrize("name", ["Blank", "Open", "Send"])
def test_what_would_open_a_window_opens_in_the_tab(at: Open, name: str) -> None:
    with at("/windows") as session:
        assert click(session, name) is None
        assert "/form" in (session.observe().observation.url or "")


def test_a_window_that_opens_all_the_same_is_closed(at: Open) -> None:
    with at("/windows") as session:
        error = session.act(f"press({bid(session, 'Blank')!r}, 'Control+Enter')")
        assert error == "Error: the action opened another window, which was closed"
        assert len(session.observe().open_pages) == 1 and usable(session)


@pytest.mark.parametrize(("name", "title"), [("Alert", "went on"), ("Confirm", "false")])
def test_native_dialogs_are_dismissed(at: Open, name: str, title: str) -> None:
    with at("/alert") as session:
        assert click(session, name) is None
        assert session.observe().title == title


def test_a_page_cannot_hold_the_agent(at: Open) -> None:
    with at("/leaving") as session:
        assert click(session, "Nothing") is None
        assert click(session, "Leave") is None
        assert (session.observe().observation.url or "").endswith("/form")


@pytest.mark.parametrize(
    "key",
    [
        *("Control+W", "Control+T", "Control+N", "Control+Shift+N", "Alt+F4", "Control+P"),
        *("Control+S", "Control+O", "F5", "F11", "F12", "Control+U", "Control+L", "Alt+Home"),
        *("Control+J", "Control+H", "Alt+ArrowLeft", "x" * 5_000),
    ],
)
def test_no_key_leaves_the_page(at: Open, key: str) -> None:
    with at("/form") as session:
        session.act(f"press({bid(session, 'Name')!r}, {key!r})")
        assert (session.observe().observation.url or "").endswith("/form") and usable(session)


def test_a_page_that_closes_itself_is_opened_again(at: Open) -> None:
    with at("/closing") as session:
        click(session, "Close")
        view = session.observe()
        assert (view.observation.url or "").endswith("/closing") and view.elements
        assert usable(session)


def crash(browser: Browser, session: Session) -> None:
    """End the page's process."""
    with contextlib.suppress(Exception):
        browser.run(session.tab.cdp.send("Page.crash"), 0.5)


def test_a_crashed_page_is_opened_again(at: Open, browser: Browser) -> None:
    with at("/form") as session:
        target = bid(session, "Name")
        crash(browser, session)
        error = session.act(f"click({target!r})")
        assert error and error.endswith("/form was opened again")
        assert usable(session)


def test_a_page_that_crashed_between_two_looks_says_so(at: Open, browser: Browser) -> None:
    with at("/form") as session:
        session.observe()
        crash(browser, session)
        view = session.observe()
        assert view.observation.page_error and "opened again" in view.observation.page_error
        assert view.elements[0].name == "Name"


def test_a_page_that_hangs_is_opened_again(at: Open) -> None:
    with at("/hanging") as session:
        error = click(session, "Hang")
        assert error and "opened again" in error
        assert usable(session)


@pytest.mark.parametrize("name", ["Download", "Nothing", "Mail"])
def test_a_link_without_a_page_leaves_the_page(at: Open, name: str) -> None:
    with at("/file") as session:
        click(session, name)
        assert (session.observe().observation.url or "").endswith("/file") and usable(session)


def test_choosing_files_opens_nothing(at: Open) -> None:
    with at("/file") as session:
        chooser = session.observe().elements[0].bid
        assert session.act(f"click({chooser!r})") is None
        error = session.act(f"fill({chooser!r}, '/etc/passwd')")
        assert error and "takes no text" in error and usable(session)


def test_a_page_that_never_comes_is_given_up(at: Open) -> None:
    with at("/outside", patience=1.0) as session:
        error = click(session, "Never")
        assert error and "did not load within" in error
        assert (session.observe().observation.url or "").endswith("/outside") and usable(session)


@pytest.mark.parametrize("page", ["/loop", "/often"])
def test_a_page_that_loads_itself_for_ever_stops_nothing(at: Open, page: str) -> None:
    """Every look is answered, though Chromium may never send the screenshot of a document that is
    replaced. A page that loads itself faster than a busy machine loads it never comes."""
    with at(page) as session:
        for _ in range(5):
            assert session.act("noop()") is None
            view = session.observe().observation
            assert view.page_error is None and "again" in (view.axtree or "")


@pytest.mark.parametrize(
    "text",
    [
        *("", "click(", "\x00", "__import__('os').system('id')", "noop()\nnoop()", "(" * 10_000),
        *(
            "fill('0', '\ud800')",
            "x" * 1_000_000,
            "tab_close(0)",
            "tab_focus()",
            "drag_and_drop('1')",
        ),
    ],
)
def test_text_that_is_no_action_is_an_error_of_one_line(at: Open, text: str) -> None:
    with at("/form") as session:
        error = session.act(text)
        assert error and "\n" not in error and len(error) < 400 and error.startswith("BadAction")


def test_long_texts_are_filled_in_or_refused(at: Open) -> None:
    with at("/form") as session:
        field = bid(session, "Name")
        assert session.act(f"fill({field!r}, {'x' * 9_000!r})") is None
        error = session.act(f"fill({field!r}, {'x' * 11_000!r})")
        assert error == "Error: a text of 11000 characters: at most 10000 are filled in"


def test_a_bid_is_no_selector(at: Open) -> None:
    with at("/form") as session:
        session.observe()
        for wrong in ('"] , body, [x="', "*", "0 >> body", "x" * 5_000, "-1", ""):
            error = session.act(f"click({wrong!r})")
            assert error and error.startswith("Error: no element with bid") and len(error) < 200


def test_an_element_that_went_away_is_missing(at: Open) -> None:
    with at("/form") as session:
        button = bid(session, "Order")
        session.evaluate("document.forms[0].remove()")
        assert session.act(f"click({button!r})") == f"Error: no element with bid {button!r}"


def test_a_browser_that_ended_is_started_again(browser: Browser) -> None:
    with open_session(browser, "http://ended.localhost/form") as session:
        target = bid(session, "Name")
        chromium = session.tab.context.browser
        assert chromium
        browser.run(chromium.close(), 10)
        error = session.act(f"click({target!r})")
        assert error and error.startswith("Error: ") and "\n" not in error
        view = session.observe(error)
        assert not view.elements and (view.observation.page_error or "").startswith(error)
    with open_session(browser, "http://after.localhost/form") as session:
        assert usable(session)


def test_what_pages_complain_of_is_kept(at: Open) -> None:
    with at("/form") as session:
        assert session.console_errors == []
        session.evaluate("setTimeout(() => { console.error('one\\ntwo'); nowhere(); }, 0)")
        session.act("noop(50)")
        first, second = session.console_errors
    assert "\n" not in first and "nowhere is not defined" in second
