"""A session shows a page, acts in it, and waits for what an action leads to."""

from __future__ import annotations

from hashlib import sha256
from io import BytesIO

import pytest
from PIL import Image

from tests.environments.chromium.conftest import Open, bid, click
from trajudge.environments.chromium import Browser, open_session
from trajudge.util.errors import UserError

pytestmark = pytest.mark.browser


def test_a_view_has_the_trees_the_elements_the_picture_and_the_address(at: Open) -> None:
    with at("/form") as session:
        view = session.observe()
    tree, pruned = view.observation.axtree or "", view.observation.axtree_pruned or ""
    assert tree.startswith("RootWebArea 'Site', focused\n\t[0] form ''")
    assert "combobox 'Size' value='Small'" in tree and "LabelText ''" not in pruned
    assert [(element.role, element.name) for element in view.elements] == [
        ("textbox", "Name"),
        ("Date", "Day"),
        ("combobox", "Size"),
        ("option", "Small"),
        ("option", "Large"),
        ("checkbox", "Gift"),
        ("button", "Order"),
        ("button", "Pay"),
    ]
    assert view.title == "Site" and view.open_pages == (view.observation.url,)
    shot = view.observation.screenshot
    assert shot and shot.data and shot.sha256 == sha256(shot.data).hexdigest()
    with Image.open(BytesIO(shot.data)) as picture:
        assert picture.size == (1024, 768)


def test_without_pictures_there_is_none(at: Open) -> None:
    with at("/form", pictures=False, viewport=(640, 480)) as session:
        assert session.observe().observation.screenshot is None
        assert session.evaluate("innerWidth") == 640


def test_the_tree_does_not_tell_how_a_page_arrived(at: Open) -> None:
    with at("/radio") as whole, at("/halves") as halves:
        tree = whole.observe().observation.axtree or ""
        assert "radio 'Garden'" in tree and "StaticText" not in tree
        assert halves.observe().observation.axtree == tree


def test_bids_are_in_document_order_and_stay_with_their_elements(at: Open) -> None:
    with at("/") as session:
        before = [element.bid for element in session.observe().elements]
        assert before == sorted(before, key=int)
        session.evaluate("document.body.prepend(document.createElement('button'))")
        after = {element.name: element.bid for element in session.observe().elements}
        assert [after[name] for name in ("Form", "Slow", "Part", "Say", "Far")] == before
        assert after[""] not in before


def test_a_native_session_leaves_no_trace_in_the_page(at: Open) -> None:
    with at("/attributes") as session:
        before = session.evaluate("seen()")
        session.act(f"click({bid(session, 'two')!r})")
        session.observe()
        assert session.evaluate("seen()") == before


def test_browsergyms_marks_are_written_for_parity(at: Open) -> None:
    with at("/attributes", mark="browsergym") as session:
        native = session.observe()
        page = session.evaluate("seen()")
        assert '<button bid="5">' in page and "browsergym_id" not in page
        assert [element.bid for element in native.elements] == ["5"]
        session.evaluate("document.querySelector('p').ariaRoleDescription = 'note'")
        session.observe()
        assert '<p bid="4" aria-roledescription="note">' in session.evaluate("seen()")
        assert session.act("click('5')") is None


def test_a_form_is_filled_in_and_sent(at: Open) -> None:
    with at("/form") as session:
        named = {element.name: element.bid for element in session.observe().elements}
        for action in (
            f"fill({named['Name']!r}, 'Ann')",
            f"fill({named['Day']!r}, '2026-04-01')",
            f"select_option({named['Size']!r}, 'Large')",
            f"click({named['Gift']!r})",
        ):
            assert session.act(action) is None
        values = {element.name: element.value for element in session.observe().elements}
        assert (values["Name"], values["Size"], values["Gift"]) == ("Ann", "Large", "true")
        assert session.act(f"click({named['Order']!r})") is None
        url = session.observe().observation.url or ""
        assert url.endswith("/thanks?name=Ann&day=2026-04-01&size=l&gift=on")


def test_enter_sends_a_form(at: Open) -> None:
    with at("/form") as session:
        field = bid(session, "Name")
        assert session.act(f"click({field!r})") is None
        assert session.observe().focused == field
        assert session.act(f"press({field!r}, 'Enter')") is None
        assert "/thanks" in (session.observe().observation.url or "")


@pytest.mark.parametrize(("start", "name"), [("/", "Slow"), ("/later", "Later")])
def test_the_observation_after_a_click_is_the_new_page(at: Open, start: str, name: str) -> None:
    with at(start) as session:
        assert click(session, name) is None
        url = session.observe().observation.url or ""
        assert url.endswith(("/slow", "/form"))


def test_what_a_script_fetches_is_waited_for(at: Open) -> None:
    with at("/fetching") as session:
        assert click(session, "Fetch") is None
        assert session.observe().title == "fetched"


def test_a_change_without_navigation_shows(at: Open) -> None:
    with at("/") as session:
        assert click(session, "Say") is None
        assert "StaticText 'done'" in (session.observe().observation.axtree or "")
        assert click(session, "Part") is None
        assert (session.observe().observation.url or "").endswith("/#part")


def test_history_goes_back_and_forward_and_not_beyond_the_run(at: Open) -> None:
    with at("/") as session:
        start = session.observe().observation.url
        assert session.act("go_back()") == "Error: there is no page to go back to"
        assert click(session, "Form") is None
        assert session.act("go_back()") is None
        assert session.observe().observation.url == start
        assert session.act("go_forward()") is None
        assert (session.observe().observation.url or "").endswith("/form")
        assert session.act("go_forward()") == "Error: there is no page to go forward to"


def test_scrolling_changes_what_is_visible(at: Open) -> None:
    with at("/") as session:

        def visible() -> bool:
            tree = session.observe().observation.axtree or ""
            return any("link 'Far'" in line and "visible" in line for line in tree.splitlines())

        assert not visible()
        assert session.act("scroll(0, 3000)") is None
        assert visible()


def test_elements_in_a_dialog_are_known(at: Open) -> None:
    with at("/dialog") as session:
        found = {element.name: element.in_dialog for element in session.observe().elements}
    assert found == {"Behind": False, "Close": True}


def test_the_clock_the_language_and_the_time_zone_are_fixed(at: Open) -> None:
    with at("/clock", now="2025-12-24T08:00:00Z") as session:
        assert session.observe().title == "2025-12-24T08:00:00.000Z en-GB UTC true"
        dates = "Date.now(), +new Date(), +new Date(5), Date().slice(4, 15)"
        now = 1766563200000
        assert session.evaluate(f"[{dates}]") == [now, now, 5, "Dec 24 2025"]
        assert session.evaluate("new Date() instanceof Date && new Date().constructor === Date")


@pytest.mark.parametrize("action", ["noop()", "noop(20)", "send_msg_to_user('hi')"])
def test_some_actions_change_nothing(at: Open, action: str) -> None:
    with at("/") as session:
        before = session.observe()
        assert session.act(action) is None
        assert session.observe().observation.axtree == before.observation.axtree


@pytest.mark.parametrize(
    ("path", "name", "action", "reason"),
    [
        ("/form", "Pay", "click({bid})", "is disabled"),
        ("/form", "Size", "select_option({bid}, 'Huge')", "has no option 'Huge'"),
        ("/form", "Name", "select_option({bid}, 'x')", "has no options"),
        ("/form", "Gift", "fill({bid}, 'x')", "takes no text"),
        ("/form", "Name", "press({bid}, 'Nokey')", "no key is called 'Nokey'"),
        ("/form", "Name", "click({bid}, 'fourth')", "no mouse button"),
        ("/form", "Name", "click('999')", "no element with bid '999'"),
        ("/form", "Name", "drag({bid}, '3')", "no action is called 'drag'"),
        ("/covered", "Under", "click({bid})", "covered by"),
    ],
)
def test_a_failed_action_says_why_in_one_line(
    at: Open, path: str, name: str, action: str, reason: str
) -> None:
    with at(path) as session:
        error = session.act(action.format(bid=repr(bid(session, name))))
        assert error and reason in error and "\n" not in error
        assert session.observe(error).observation.page_error == error


def test_the_mouse_and_the_keyboard_act_at_pixels_and_on_the_focus(at: Open) -> None:
    with at("/form") as session:
        name = bid(session, "Name")
        box = session.details().elements[name]["bbox"]
        x, y = box[0] + box[2] / 2, box[1] + box[3] / 2
        for action in (f"mouse_click({x}, {y})", "keyboard_type('An')", "keyboard_press('n')"):
            session.observe()
            assert session.act(action) is None
        values = {element.name: element.value for element in session.observe().elements}
        assert values["Name"] == "Ann"
        assert session.act(f"clear({bid(session, 'Name')!r})") is None
        assert session.observe().elements[0].value == ""


def test_an_uploaded_file_is_made_up_and_nothing_of_the_machine_is_read(at: Open) -> None:
    with at("/file") as session:
        session.observe()
        assert session.act("upload_file('0', '/etc/passwd')") is None
        read = "() => document.querySelector('input').files[0].text()"
        assert session.evaluate(read) == "passwd"
        assert session.act("upload_file('1', 'x')") == "Error: element '1' takes no file"


def test_tabs_share_the_run_and_end_with_it(at: Open) -> None:
    with at("/form") as session:
        first = session.observe().observation.url
        assert session.act("new_tab()") is None
        view = session.observe()
        assert (view.open_pages, view.active_page) == ((first, "about:blank"), 1)
        assert session.act(f"goto({first!r})") is None
        assert session.observe().elements
        hits = [entry["request"]["url"] for entry in session.har()["log"]["entries"]]
        assert hits.count(first) == 2, "one trace for all tabs"
        assert session.act("tab_focus(0)") is None
        assert session.act("tab_close()") is None
        assert session.observe().open_pages == (first,)
        pages = session.tab.context.pages
    assert len(pages) == 2 and len(session.tab.context.pages) <= 1


def test_an_address_that_does_not_answer_is_the_users_mistake(browser: Browser) -> None:
    with (
        pytest.raises(UserError, match=r"nowhere\.test/ cannot be opened"),
        open_session(browser, "http://nowhere.test/"),
    ):
        pass
    with pytest.raises(UserError, match="no http address"), open_session(browser, "file:///etc"):
        pass
