"""In a real browser: every control is found by role and name and can be used, in every theme."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from axe_playwright_python.sync_playwright import Axe

from tests.app.browsing import WITH_TARGETS
from tests.environments.kit.pages import WORDS
from tests.samples import FUZZING
from trajudge.environments.kit.html import render
from trajudge.environments.kit.identities import IDENTITIES
from trajudge.environments.kit.layout import PageLayout
from trajudge.environments.kit.style import stylesheet
from trajudge.environments.kit.theme import theme
from trajudge.environments.model import page as parts
from trajudge.environments.model.page import Page, Word

if TYPE_CHECKING:
    from playwright.sync_api import Browser
    from playwright.sync_api import Page as Tab

pytestmark = pytest.mark.browser
VIEWPORTS = ((1024, 768), (390, 844))
# Every theme at one of them; a search (``make fuzz``) tries both.
THEMES = [
    (index, viewport)
    for index in range(12)
    for turn, viewport in enumerate(VIEWPORTS)
    if FUZZING or index % len(VIEWPORTS) == turn
]
XSS = "<img src=x onerror=\"document.title='broken into'\"><script>document.title='x'</script>"
OPTIONS = ("First", "Second one", "Third of a rather long kind")
CHOICES = tuple(parts.Option(name[0], name) for name in OPTIONS)
SEARCH = parts.Form(
    "Look up",
    (
        parts.Field("q", "Query", "search", required=True),
        parts.Field("kind", "Kind", "choice", "", CHOICES),
    ),
    page="list",
)
EDIT = parts.Form(
    "Save all",
    (
        parts.Field("name", "Name", "text", "x" * 200),
        parts.Field("count", "Count", "number", "1"),
        parts.Field("day", "Day", "date", "2026-03-02"),
        parts.Field("body", "Body", "long", "\nfirst line"),
        parts.Field("sure", "I am sure", "tick"),
    ),
    operation="save",
)
THINGS = ("Oak Mug", "Wool Throw", "Unbroken" * 9)
ROWS = tuple(
    parts.ListRow(
        parts.Link(name, "thing", {"id": name}),
        ("$3.00", "a rather long remark " * 3, XSS),
        tuple(parts.Form(Word(key, name), operation="act") for key in ("alpha", "beta")),
    )
    for name in THINGS
)
ITEMS = parts.ItemList(("Thing", "Price", "Remark", "Note"), ROWS)
PAGE = Page(
    "A page with everything",
    (
        parts.Notice("Saved."),
        parts.Paragraph(XSS),
        SEARCH,
        parts.DefinitionList((("Status", "open"), ("Where", "5 Station Street, " * 5))),
        ITEMS,
        parts.Link("Onward", "list", {"part": "1"}),
        parts.Section("Editing", (EDIT, parts.Form(Word("gamma"), operation="gamma"))),
    ),
)
PLACES = tuple(f"Place {number}" for number in range(7))
NAVIGATION = tuple(parts.Link(place, "place") for place in PLACES)
COOKIES = parts.Overlay(
    "Cookies", "We use cookies. " * 6, Word("accept_cookies"), "/dismiss/cookies"
)
PROMOTION = parts.Overlay(
    "Just for you", "Buy more. " * 9, Word("dismiss"), "/dismiss/promotion", True
)


@pytest.fixture(scope="module")
def browser(chromium: Path) -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])


def show(tab: Tab, index: int, *noise: parts.Overlay) -> None:
    """Show the page in a theme, the frames by turns; on a telephone the menu is opened."""
    shell = PageLayout(
        identity=sorted(IDENTITIES)[index % len(IDENTITIES)],
        name="list",
        information=(parts.Link("Imprint", "info"),),
        title="Everything",
        navigation=NAVIGATION,
        theme=theme(index, 1),
        words=WORDS,
        nonce=lambda form: "once",
        chart=lambda chart: "/chart.png",
        noise=noise,
    )
    sheet, page = stylesheet(shell.theme, shell.identity), render(PAGE, shell)
    tab.route("**/assets/*", lambda route: route.fulfill(body=sheet.text, content_type="text/css"))
    tab.route("**/page", lambda route: route.fulfill(body=page, content_type="text/html"))
    tab.goto("http://kit.localhost/page")
    if tab.viewport_size == dict(zip(("width", "height"), VIEWPORTS[1], strict=True)):
        assert not tab.locator(".sections a").first.is_visible()
        tab.locator("summary").first.evaluate("menu => menu.click()")


@pytest.fixture(params=VIEWPORTS, ids=["wide", "narrow"])
def tab(request: pytest.FixtureRequest, browser: Browser) -> Iterator[Tab]:
    width, height = request.param
    tab = browser.new_page(viewport={"width": width, "height": height})
    tab.set_default_timeout(30_000)
    yield tab
    tab.close()


@pytest.mark.sampled
@pytest.mark.parametrize(("index", "tab"), THEMES, indirect=["tab"])
def test_every_control_is_found_by_name_and_can_be_clicked(tab: Tab, index: int) -> None:
    show(tab, index, COOKIES)
    sections = tab.locator(".sections")
    found = [sections.get_by_role("link", name=name, exact=True) for name in PLACES]
    found += [tab.get_by_role("link", name=name, exact=True) for name in (*THINGS, "Imprint")]
    found += [
        tab.get_by_role("button", name=f"{WORDS[key]} {name}", exact=True)
        for key in ("alpha", "beta")
        for name in THINGS
    ]
    found += [
        tab.get_by_role("button", name=name, exact=True)
        for name in ("Look up", "Save all", WORDS["gamma"], "Accept")
    ]
    found += [
        tab.get_by_role("link", name="Onward", exact=True),
        tab.get_by_role("searchbox", name="Query", exact=True),
        tab.get_by_role("textbox", name="Name", exact=True),
        tab.get_by_role("spinbutton", name="Count", exact=True),
        tab.get_by_label("Day", exact=True),
        tab.get_by_role("textbox", name="Body", exact=True),
        tab.get_by_role("checkbox", name="I am sure", exact=True),
    ]
    if theme(index, 1).choice == "radio":
        group = tab.get_by_role("group", name="Kind", exact=True)
        found += [group.get_by_role("radio", name=name, exact=True) for name in OPTIONS]
    else:
        found.append(tab.get_by_role("combobox", name="Kind", exact=True))
    for control in found:
        control.click(trial=True)  # raises where something else would get the click
    everything = tab.locator("a, button, input:not([type=hidden]), select, textarea")
    again = tab.locator(".column a, .crumbs a").count() - 1  # the imprint is among those found
    assert everything.count() == len(found) + again
    assert tab.title() == "A page with everything - Everything"


@pytest.mark.parametrize(
    "index",
    [*range(7), *(pytest.param(further, marks=pytest.mark.slow) for further in range(7, 12))],
)
def test_no_page_is_wider_than_the_window_or_hard_to_use(tab: Tab, index: int) -> None:
    """Contrast, names, order of headings, size of targets (WCAG 2.2, AA), by axe."""
    show(tab, index)
    width = tab.evaluate("document.documentElement.scrollWidth - innerWidth")
    assert width <= 0
    found = Axe().run(tab, options=WITH_TARGETS)
    assert found.violations_count == 0, found.generate_report()


def test_a_dialog_blocks_the_page_and_its_button_can_be_clicked(tab: Tab) -> None:
    from playwright.sync_api import TimeoutError as NotClickable

    show(tab, 0, COOKIES, PROMOTION)
    tab.get_by_role("dialog").get_by_role("button", name="Close", exact=True).click(trial=True)
    with pytest.raises(NotClickable):
        tab.locator("footer a", has_text="Place 0").click(trial=True, timeout=200)


def test_an_untouched_form_sends_what_the_model_says(tab: Tab) -> None:
    for index in range(12):
        show(tab, index)
        sent = tab.evaluate("[...document.forms].map(f => [...new FormData(f)])")
        by_names = {tuple(name for name, _ in entries): dict(entries) for entries in sent}
        edited = by_names["_nonce", "name", "count", "day", "body"]
        assert edited["body"] == "\nfirst line"
        searched = next(entries for names, entries in by_names.items() if names[0] == "q")
        assert searched.get("kind", "") == ""
