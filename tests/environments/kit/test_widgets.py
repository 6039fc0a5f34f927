"""The widgets in Chromium, under the policy that pages are served with: their keyboard, by the
patterns of the WAI-ARIA Authoring Practices, and their plain forms without the script."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from trajudge.environments.kit.html import render
from trajudge.environments.kit.layout import PageLayout
from trajudge.environments.kit.style import SCRIPT, stylesheet
from trajudge.environments.kit.theme import theme
from trajudge.environments.kit.words import WORDS
from trajudge.environments.model import page as parts
from trajudge.environments.model.page import Page, Word
from trajudge.environments.serving.pages import HEADERS
from trajudge.environments.text.document import PageDocument
from trajudge.environments.text.tree import write

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Route
    from playwright.sync_api import Page as Tab

TREES = Path(__file__).with_name("widgets.txt")
ORIGIN = "http://kit.localhost"
TODAY = "2026-03-02"
LOOK = next(look for look in (theme(n, 1) for n in range(12)) if look.items == "table")
PEOPLE = ("Ada Cole", "Adam Reed", "Bea Long", "Cy Marsh")
CHOICES = tuple(parts.Option(name[:3], name) for name in PEOPLE)
EDIT = parts.Form(
    "Save",
    (
        parts.Field("who", "Assignee", "choice", "", CHOICES, drawn="combobox"),
        parts.Field("day", "Due", "date", "2026-03-31"),
        parts.Field("body", "Remark", "long", "so good", drawn="rich"),
        parts.Field("code", "Code", hint="Six letters"),
        parts.Field("news", "Newsletter", "tick", "on", drawn="switch"),
        parts.Field("stars", "Stars", "choice", "", CHOICES[:2], drawn="rating"),
        parts.Field("city", "City", "choice", "", CHOICES, drawn="listbox"),
        parts.Field("most", "At most", "number", "40", drawn="slider", limits=(0, 50)),
        parts.Field("scan", "Scan", "file"),
    ),
    operation="save",
)
GOODS = tuple(
    parts.ListRow(parts.Link(name, "thing", {"id": name}), (price,))
    for name, price in (("Oak", "$9.50"), ("Elm", "$12.00"), ("Ash", "$10.00"), ("Fir", "$1.00"))
)
NEXT = parts.Link(Word("next_page"), "list", {"part": "1"})


def _moves(card: str, to: str) -> dict[str, parts.Form]:
    return {to: parts.Form(f"{card}: {to}", operation="move", hidden={"card": card})}


BLOCKS: dict[str, parts.Block] = {
    "menu": parts.Menu("Account", tuple(parts.Link(n, n) for n in ("Orders", "Letters", "Out"))),
    "tabs": parts.Tabs(
        "About",
        tuple(parts.Section(n, (parts.Paragraph(f"{n} here"),)) for n in ("One", "Two", "Three")),
    ),
    "fold": parts.Disclosure("More", (parts.Link("Deep", "deep"),)),
    "inline": parts.Disclosure(
        "Rename", (parts.Form("Keep", (parts.Field("n", "Name", value="old"),), "rename"),),
        drawn="edit",
    ),
    "form": EDIT,
    "table": parts.ItemList(("Wood", "Price"), GOODS, complete=True),
    "feed": parts.ItemList(("Wood", "Price"), GOODS[:2], grows=True, next=NEXT),
    "tree": parts.TreeView(
        "Rules",
        (
            parts.TreeViewItem(parts.Link("First", "first"), (parts.TreeViewItem("1.1"),)),
            parts.TreeViewItem("Second", (parts.TreeViewItem("2.1"), parts.TreeViewItem("2.2"))),
        ),
    ),
    "board": parts.Board(
        (
            parts.BoardColumn(
                "open", (parts.BoardCard(parts.Link("T-1", "t"), "a leak", _moves("T-1", "done")),)
            ),
            parts.BoardColumn("done", ()),
        )
    ),
    "modal": parts.Disclosure(
        "Write", (parts.Form("Post", (parts.Field("t", "Text"),), "post"),), drawn="dialog"
    ),
    "carousel": parts.LinkList(
        "Others", tuple(parts.Link(f"Thing {n}", "thing", {"id": str(n)}) for n in range(12)), True
    ),
    "grid": parts.ItemList(
        ("Wood", "Price"),
        tuple(
            row._replace(forms=(parts.Form(Word("cancel", str(row.cells[0])), operation="drop"),))
            for row in GOODS
        ),
        complete=True,
    ),
    "toast": parts.Notice("Done."),
}  # fmt: skip
QUESTION = parts.Question(
    "Sure?", "This is binding.", parts.Form("Yes", operation="go"), parts.Link("No", "back")
)


def document(page: Page, *, script: bool) -> str:
    shell = PageLayout(
        title="Kit",
        navigation=(parts.Link("Start", "home"), parts.Link("Search", "search")),
        theme=LOOK,
        words={key: words[0] for key, words in WORDS.items()},
        nonce=lambda form: "once",
        chart=lambda chart: "/chart.png",
        script=script,
    )
    return render(page, shell)


@pytest.fixture(scope="module")
def browser(chromium: Path) -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])


class Stage:
    """A tab in which pages are shown under the served policy; ``sent`` are the forms and links that
    led away, ``complaints`` what the console said."""

    def __init__(self, tab: Tab) -> None:
        self.tab, self.html = tab, ""
        self.sent: list[str] = []
        self.complaints: list[str] = []
        tab.set_default_timeout(30_000)
        tab.clock.set_fixed_time(f"{TODAY}T10:00:00Z")
        tab.on("console", lambda line: self.complaints.append(line.text))
        tab.on("pageerror", lambda error: self.complaints.append(str(error)))
        tab.route("**/*", self._answer)

    def _answer(self, route: Route) -> None:
        request, path = route.request, route.request.url.removeprefix(ORIGIN)
        files = {f"/assets/{file.name}": file for file in (SCRIPT, stylesheet(LOOK, "plain"))}
        if path in files:
            file = files[path]
            route.fulfill(body=file.text, content_type=file.content_type)
        elif request.resource_type == "xhr":
            rest = parts.ItemList(("Wood", "Price"), GOODS[2:], grows=True)
            last = document(Page("List", (rest,)), script=True)
            route.fulfill(body=last, content_type="text/html", headers=HEADERS)
        else:
            if path != "/":
                self.sent.append(f"{request.method} {path} {request.post_data or ''}".strip())
            route.fulfill(body=self.html, content_type="text/html", headers=HEADERS)

    def show(self, *names: str, script: bool = True, question: bool = False) -> Tab:
        blocks = tuple(BLOCKS[name] for name in names)
        asked = QUESTION if question else None
        self.html = document(Page("Kit", blocks, question=asked), script=script)
        self.tab.goto(f"{ORIGIN}/")
        if script:
            assert self.tab.evaluate("document.documentElement.dataset.idle") == "yes"
        return self.tab

    def keys(self, *keys: str) -> None:
        for key in keys:
            self.tab.keyboard.press(key)

    @property
    def focused(self) -> str:
        """The accessible name, or the text, of what has the focus."""
        script = "(e => e.ariaLabel ?? e.labels?.[0]?.textContent ?? e.textContent)"
        return str(self.tab.evaluate(f"{script}(document.activeElement)")).strip()


@pytest.fixture
def stage(browser: Browser) -> Iterator[Stage]:
    tab = browser.new_page(reduced_motion="reduce")
    stage = Stage(tab)
    yield stage
    tab.close()
    assert stage.complaints == []  # no script or style that the policy refuses


@pytest.mark.browser
def test_menu_button(stage: Stage) -> None:
    tab = stage.show("menu")
    opener = tab.get_by_role("button", name="Account")
    opener.focus()
    stage.keys("Enter")
    assert (stage.focused, opener.get_attribute("aria-expanded")) == ("Orders", "true")
    stage.keys("ArrowDown")
    assert stage.focused == "Letters"
    stage.keys("ArrowUp", "ArrowUp")
    assert stage.focused == "Out"
    stage.keys("ArrowDown")
    assert stage.focused == "Orders"
    stage.keys("End", "Home", "l")
    assert stage.focused == "Letters"
    stage.keys("Escape")
    assert (stage.focused, opener.get_attribute("aria-expanded")) == ("Account", "false")
    stage.keys("ArrowUp")
    assert stage.focused == "Out"
    stage.keys("Escape", "Space", "Enter")
    tab.wait_for_url(f"{ORIGIN}/Orders")
    tab.goto(f"{ORIGIN}/")
    opener.click()
    tab.get_by_role("heading", level=1).click()
    assert tab.get_by_role("menuitem").count() == 0


@pytest.mark.browser
def test_tabs(stage: Stage) -> None:
    tab = stage.show("tabs")
    tab.get_by_role("tab", name="One").focus()
    for key, name in (
        ("ArrowRight", "Two"), ("ArrowRight", "Three"), ("ArrowRight", "One"),
        ("ArrowLeft", "Three"), ("Home", "One"), ("End", "Three"),
    ):  # fmt: skip
        stage.keys(key)
        assert stage.focused == name
        assert tab.get_by_role("tab", selected=True).text_content() == name
        assert tab.get_by_role("tabpanel").text_content() == f"{name} here"
    stage.keys("Shift+Tab", "Tab")
    assert stage.focused == "Three"  # one stop of the tabulator key
    stage.keys("Tab")
    assert stage.focused == "Three here"


@pytest.mark.browser
def test_alert_dialog(stage: Stage) -> None:
    tab = stage.show("fold", question=True)
    dialog = tab.get_by_role("alertdialog", name="Sure?")
    assert dialog.get_attribute("aria-modal") == "true"
    assert stage.focused == "No"
    stage.keys("Tab")
    assert stage.focused == "Yes"
    stage.keys("Tab", "Shift+Tab", "Shift+Tab")
    assert stage.focused == "No"
    stage.keys("Escape")
    tab.wait_for_url(f"{ORIGIN}/back")
    assert stage.sent == ["GET /back"]


@pytest.mark.browser
def test_disclosure_and_edit_in_place(stage: Stage) -> None:
    from playwright.sync_api import expect

    tab = stage.show("fold", "inline")
    tab.locator("summary", has_text="More").focus()
    stage.keys("Enter")
    assert tab.get_by_role("link", name="Deep").is_visible()
    stage.keys("Space")
    assert not tab.get_by_role("link", name="Deep").is_visible()
    tab.locator("summary", has_text="Rename").focus()
    stage.keys("Enter")
    expect(tab.get_by_role("textbox", name="Name")).to_be_focused()
    stage.keys("x", "Escape")
    assert (stage.focused, tab.locator("input[name=n]").input_value()) == ("Rename", "old")
    stage.keys("Enter")
    expect(tab.get_by_role("textbox", name="Name")).to_be_focused()
    stage.keys("End", "2", "Enter")
    tab.wait_for_url(f"{ORIGIN}/do/rename")
    assert stage.sent == ["POST /do/rename _nonce=once&n=old2"]


@pytest.mark.browser
def test_combobox(stage: Stage) -> None:
    tab = stage.show("form")
    box = tab.get_by_role("combobox", name="Assignee")
    chosen = "document.querySelector('select[name=who]').value"
    listed = tab.get_by_role("listbox").first.get_by_role("option")
    box.focus()
    stage.keys("a", "d")
    assert listed.all_text_contents() == ["Ada Cole", "Adam Reed"]
    assert (box.get_attribute("aria-expanded"), tab.evaluate(chosen)) == ("true", "")
    stage.keys("ArrowDown", "ArrowDown")
    active = box.get_attribute("aria-activedescendant")
    assert tab.locator(f"#{active}").text_content() == "Adam Reed"
    stage.keys("ArrowDown", "ArrowUp", "Enter")
    assert (box.input_value(), tab.evaluate(chosen)) == ("Adam Reed", "Ada")
    assert stage.sent == []  # the key chose, and sent no form
    stage.keys("Escape")
    assert (box.input_value(), tab.evaluate(chosen)) == ("", "")
    box.fill("cy marsh")
    assert (box.input_value(), tab.evaluate(chosen)) == ("Cy Marsh", "Cy ")
    box.fill("nobody")
    stage.keys("Tab")
    assert (box.input_value(), tab.evaluate(chosen)) == ("Cy Marsh", "Cy ")
    box.click()
    listed.get_by_text("Bea Long").click()
    assert (box.input_value(), tab.evaluate(chosen)) == ("Bea Long", "Bea")


@pytest.mark.browser
def test_date_picker(stage: Stage) -> None:
    tab = stage.show("form")
    field = tab.get_by_role("textbox", name="Due", exact=True)
    opener = tab.get_by_role("button", name="Change Due, 31 March 2026")
    day = "document.activeElement.dataset.date"
    opener.focus()
    stage.keys("Enter")
    assert tab.get_by_role("dialog", name="Choose date: Due").is_visible()
    for key, expected in (
        ("ArrowRight", "2026-04-01"), ("ArrowLeft", "2026-03-31"), ("ArrowDown", "2026-04-07"),
        ("ArrowUp", "2026-03-31"), ("Home", "2026-03-30"), ("End", "2026-04-05"),
        ("PageUp", "2026-03-05"), ("PageDown", "2026-04-05"), ("Shift+PageUp", "2025-04-05"),
        ("Shift+PageDown", "2026-04-05"),
    ):  # fmt: skip
        stage.keys(key)
        assert tab.evaluate(day) == expected, key
    stage.keys("Escape")
    assert (field.input_value(), stage.focused) == ("2026-03-31", "Change Due, 31 March 2026")
    stage.keys("Space", "PageUp")
    assert tab.evaluate(day) == "2026-02-28"  # the last day of a shorter month
    stage.keys("Enter")
    assert (field.input_value(), stage.focused) == ("2026-02-28", "Change Due, 28 February 2026")
    field.fill("")
    field.blur()
    tab.get_by_role("button", name="Choose date: Due").click()
    assert tab.evaluate(day) == TODAY
    tab.get_by_role("button", name="Next month").click()
    tab.get_by_role("gridcell", name="9 April", exact=True).click()
    assert field.input_value() == "2026-04-09"


@pytest.mark.browser
def test_toolbar_switch_rating_listbox_and_tooltip(stage: Stage) -> None:
    tab = stage.show("form")
    tab.get_by_role("button", name="Bold").focus()
    stage.keys("ArrowRight")
    assert stage.focused == "Italic"
    stage.keys("End", "ArrowRight", "ArrowLeft", "Home")
    assert stage.focused == "Bold"
    area = tab.get_by_role("textbox", name="Remark")
    area.focus()
    area.evaluate("(area) => area.setSelectionRange(3, 7)")
    stage.keys("Shift+Tab", "Enter")
    assert area.input_value() == "so **good**"
    switch = tab.get_by_role("switch", name="Newsletter")
    switch.focus()
    stage.keys("Space")
    assert not switch.is_checked()
    tab.get_by_role("radiogroup", name="Stars").get_by_role("radio").first.focus()
    stage.keys("ArrowDown")
    assert tab.get_by_role("radio", name="Adam Reed").is_checked()
    tab.get_by_role("listbox", name="City").focus()
    stage.keys("End")
    assert tab.locator("select[name=city]").input_value() == "Cy "
    tip = tab.get_by_role("tooltip")
    assert tip.count() == 0
    tab.get_by_role("textbox", name="Code").focus()
    assert tip.text_content() == "Six letters"
    stage.keys("Escape")
    assert tip.count() == 0


@pytest.mark.browser
def test_sortable_and_filterable_table(stage: Stage) -> None:
    tab = stage.show("table")
    rows = tab.locator("tbody tr:visible td:first-child")
    price = tab.get_by_role("button", name="Price")
    price.focus()
    stage.keys("Enter")
    assert rows.all_text_contents() == ["Fir", "Oak", "Ash", "Elm"]
    assert tab.locator("th[aria-sort]").get_attribute("aria-sort") == "ascending"
    stage.keys("Space")
    assert rows.all_text_contents() == ["Elm", "Ash", "Oak", "Fir"]
    tab.get_by_role("button", name="Wood").click()
    assert rows.all_text_contents() == ["Ash", "Elm", "Fir", "Oak"]
    tab.get_by_role("searchbox", name="Filter these rows").fill("a")
    assert rows.all_text_contents() == ["Ash", "Oak"]
    assert tab.get_by_role("status").text_content() == "2 / 4"


@pytest.mark.browser
def test_tree_view(stage: Stage) -> None:
    tab = stage.show("tree")
    tab.get_by_role("treeitem", name="First").focus()
    for key, name in (
        ("ArrowDown", "1.1"), ("ArrowDown", "Second"), ("End", "2.2"), ("ArrowLeft", "Second"),
        ("ArrowLeft", "Second"), ("ArrowDown", "Second"), ("Home", "First"), ("s", "Second"),
        ("ArrowRight", "Second"), ("ArrowRight", "2.1"), ("ArrowUp", "Second"),
        ("Enter", "Second"), ("*", "Second"), ("ArrowDown", "2.1"),
    ):  # fmt: skip
        stage.keys(key)
        assert stage.focused == name, key
    stage.keys("Home", "Enter")
    tab.wait_for_url(f"{ORIGIN}/first")


@pytest.mark.browser
def test_grid(stage: Stage) -> None:
    tab = stage.show("grid")
    assert tab.get_by_role("grid").get_by_role("gridcell").count() == 12
    tab.get_by_role("searchbox", name="Filter these rows").focus()
    stage.keys("Tab", "Tab")  # the heads that sort, then one stop for all cells
    assert tab.evaluate("document.activeElement.textContent") == "Price"
    stage.keys("Tab")
    for key, text in (
        ("ArrowRight", "$9.50"), ("ArrowDown", "$12.00"), ("ArrowUp", "$9.50"),
        ("ArrowUp", "$9.50"),
        ("PageDown", "$1.00"), ("Home", "Fir"), ("ArrowLeft", "Fir"), ("PageUp", "Oak"),
        ("End", "Cancel"), ("Enter", "Cancel $9.50"), ("Escape", "Cancel"), ("Home", "Oak"),
        ("Enter", "Oak"),
    ):  # fmt: skip
        stage.keys(key)
        assert stage.focused == text, key
    stage.keys("Enter")
    tab.wait_for_url(f"{ORIGIN}/thing?id=Oak")


@pytest.mark.browser
def test_dialog(stage: Stage) -> None:
    tab = stage.show("fold", "modal")
    opener = tab.get_by_role("button", name="Write")
    opener.focus()
    stage.keys("Enter")
    assert tab.get_by_role("dialog", name="Write").is_visible()
    assert stage.focused == "Text"
    stage.keys("Escape")
    assert (stage.focused, tab.get_by_role("dialog").count()) == ("Write", 0)
    stage.keys("Space", "x")
    tab.get_by_role("button", name="Close").click()
    stage.keys("Enter", "End", "y", "Enter")
    tab.wait_for_url(f"{ORIGIN}/do/post")
    assert stage.sent == ["POST /do/post _nonce=once&t=xy"]


@pytest.mark.browser
def test_carousel(stage: Stage) -> None:
    from playwright.sync_api import expect

    tab = stage.show("carousel")
    back = tab.get_by_role("button", name="Previous: Others")
    onward = tab.get_by_role("button", name="Next: Others")
    assert back.is_disabled()
    onward.focus()
    stage.keys("Enter")
    expect(back).to_be_enabled()
    expect(onward).to_be_disabled()
    back.focus()
    stage.keys("Space")
    expect(back).to_be_disabled()
    assert tab.get_by_role("region", name="Others").get_by_role("link").count() == 12


@pytest.mark.browser
def test_slider_spinbutton_and_upload(stage: Stage) -> None:
    from playwright.sync_api import expect

    tab = stage.show("form")
    slider, number = tab.get_by_role("slider"), tab.get_by_role("spinbutton", name="At most")
    slider.focus()
    for key, value in (("ArrowRight", "41"), ("ArrowDown", "40"), ("End", "50"), ("Home", "0")):
        stage.keys(key)
        expect(number).to_have_value(value)
    number.fill("7")
    stage.keys("ArrowUp")
    expect(slider).to_have_value("8")
    file, removes = tab.locator("input[type=file]"), tab.get_by_role("button", name="Remove file")
    assert removes.count() == 0
    file.focus()
    with tab.expect_file_chooser() as chooser:
        tab.evaluate("0")  # its answer comes after Chromium has begun to report choosers
        stage.keys("Enter")
    scan = {"name": "a b.pdf", "mimeType": "text/plain", "buffer": b"x"}
    chooser.value.set_files(scan)  # type: ignore[arg-type]
    removes.focus()
    stage.keys("Enter")
    expect(removes).to_have_count(0)
    assert (stage.focused, file.input_value()) == ("Scan", "")
    file.set_input_files(scan)  # type: ignore[arg-type]
    tab.get_by_role("button", name="Save").click()
    tab.wait_for_url(f"{ORIGIN}/do/save")
    assert stage.sent[0].endswith("&most=8&scan=a+b.pdf")


@pytest.mark.browser
def test_a_feed_grows_to_its_end(stage: Stage) -> None:
    from playwright.sync_api import expect

    tab = stage.show("feed")
    more = tab.get_by_role("button", name="Next page")
    more.focus()
    stage.keys("Enter")
    expect(more).to_have_count(0)
    assert tab.evaluate("document.documentElement.dataset.idle") == "yes"
    assert tab.locator("tbody td:first-child").all_text_contents() == ["Oak", "Elm", "Ash", "Fir"]
    assert stage.sent == []


@pytest.mark.browser
def test_a_card_goes_by_its_menu_or_is_dragged(stage: Stage) -> None:
    tab = stage.show("board")
    tab.get_by_role("button", name="Move to T-1").focus()
    stage.keys("Enter", "Enter")
    tab.wait_for_url(f"{ORIGIN}/do/move")
    tab = stage.show("board")
    tab.locator("[data-card]").drag_to(tab.get_by_role("region", name="done"))
    tab.wait_for_url(f"{ORIGIN}/do/move")
    assert stage.sent == ["POST /do/move card=T-1&_nonce=once"] * 2


@pytest.mark.browser
def test_toast_and_command_palette(stage: Stage) -> None:
    tab = stage.show("toast")
    tab.get_by_role("status").get_by_role("button", name="Close").click()
    assert tab.get_by_role("status").count() == 0
    stage.keys("Control+k")
    assert stage.focused == "Go to"
    stage.keys("ArrowDown")
    assert tab.locator("dialog [aria-selected=true]").text_content() == "Search"
    stage.keys("Escape", "Control+k", "s", "e", "Enter")
    tab.wait_for_url(f"{ORIGIN}/search")


@pytest.mark.browser
def test_without_the_script_every_form_sends_the_same(stage: Stage) -> None:
    sent = []
    for script in (True, False):
        tab = stage.show("form", script=script)
        if script:
            tab.get_by_role("combobox", name="Assignee").fill("Bea Long")
        else:
            tab.get_by_role("combobox", name="Assignee").select_option("Bea Long")
        tab.get_by_label("Due", exact=True).fill("2026-03-05")
        tab.get_by_role("textbox", name="Remark").fill("fine")
        tab.get_by_role("button", name="Save").click()
        tab.wait_for_url(f"{ORIGIN}/do/save")
        sent.append(stage.sent.pop())
    assert sent[0] == sent[1]
    assert "who=Bea&day=2026-03-05&body=fine&code=&news=on" in sent[0]


def test_the_plain_forms_have_these_trees() -> None:
    """``widgets.txt`` has the trees, which ``text.test_equality`` holds to Chromium's."""
    trees = {
        name: write(PageDocument(document(Page("Kit", (block,)), script=False))).full
        for name, block in BLOCKS.items()
    }
    pages = "\n\n".join(f"{name}\n{_main(tree)}" for name, tree in trees.items())
    assert pages + "\n" == TREES.read_text()


def _main(tree: str) -> str:
    """Return the lines of the page's own part, after its heading."""
    lines = tree.splitlines()
    begins = next(at for at, line in enumerate(lines) if re.search(r"\] main ", line)) + 3
    ends = next(at for at, line in enumerate(lines) if "contentinfo" in line)
    return "\n".join(line.removeprefix("\t\t") for line in lines[begins:ends])


def test_the_script_is_small_and_has_no_sink_of_markup() -> None:
    assert len(SCRIPT.text.encode()) <= 30 * 1024
    sinks = "innerHTML|outerHTML|insertAdjacentHTML|document.write|eval|Function\\(|fetch"
    assert not re.search(sinks, SCRIPT.text)
    assert json.dumps(HEADERS["Content-Security-Policy"]).count("unsafe") == 0
