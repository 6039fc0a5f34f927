"""A visitor without a browser finds controls by their labels and notes what it took."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from trajudge.environments.checks.walk import TURNS, ControlNotFound, Walk
from trajudge.environments.kit.listing import PART, listing
from trajudge.environments.model import page as parts
from trajudge.environments.model.config import Ui
from trajudge.environments.model.page import Page, Word
from trajudge.environments.model.plan import choose, enter, follow, press, scan, tick
from trajudge.environments.model.schema import table
from trajudge.environments.model.site import Site
from trajudge.environments.model.spec import (
    App,
    FormSubmission,
    Operation,
    PageContext,
    Rejected,
    Success,
)
from trajudge.environments.model.state import AppState

NAMES = [f"Mug {n}" for n in range(10)]


def _home(view: PageContext) -> Page:
    rows = [parts.ListRow(parts.Link(name, "mug", {"id": name})) for name in NAMES]
    return Page("Mugs", listing(view, "home", ("Mug",), rows))


def _mug(view: PageContext) -> Page:
    fields = (
        parts.Field(
            "size", "Size", "choice", "", (parts.Option("s", "Small"), parts.Option("l", "Large"))
        ),
        parts.Field("note", "Note"),
        parts.Field("gift", "Gift", "tick", ""),
    )
    order = parts.Form("Order", fields, operation="order", hidden={"mug": view.args["id"]})
    look = parts.Form("Look", (parts.Field("id", "Name"),), page="mug")
    rows = tuple(
        parts.ListRow(name, (), (parts.Form(Word("remove", name), operation="order"),))
        for name in "abc"
    )
    return Page(view.args["id"], (order, look, parts.ItemList(("Part",), rows)))


def _order(call: FormSubmission) -> Success | Rejected:
    if call.form.get("size") == "l":
        return Rejected("None left.")
    call.state.add("log", id=call.state.token("log"), said=str(sorted(call.form.items())))
    return Success("home")


def _app(**operation: bool) -> App:
    asks = {"confirm": lambda _: "Sure?"} if operation.pop("asks", False) else {}
    return App(
        id="mugs",
        domain="tool-use",
        title="Mugs",
        tables=(table("log", id="token", said="text"),),
        profile=lambda *_: {},
        pages={"home": _home, "mug": _mug},
        operations={"order": Operation(_order, **operation, **asks)},  # type: ignore[arg-type]
        navigation=(parts.Link(Word("home"), "home"),),
        scenarios=(),
        words={},
    )


def walker(app: App | None = None, *, folded: bool = False, start: str = "home") -> Walk:
    app = app or _app()
    walk = Walk(Site(app, AppState(app.tables), Ui("home", 4, 0, folded)))
    walk.open(start, {"id": "x"})
    return walk


@pytest.fixture
def walk() -> Iterator[Walk]:
    yield walker()


def test_a_link_is_sought_on_the_further_pages_of_a_list(walk: Walk) -> None:
    walk.do(follow("Mug 9", "open it"))
    assert walk.page.title == "Mug 9"
    assert [visit.args.get(PART) for visit in walk.visits] == [None, "1", "2", None]
    assert walk.moved == 3
    assert [visit.options for visit in walk.visits] == [4, 4, 2, 1]


def test_a_scan_reads_a_list_to_its_end(walk: Walk) -> None:
    walk.do(scan("see all"))
    assert (walk.moved, walk.visits[-1].args[PART]) == (2, "2")


def test_a_folded_navigation_is_opened(walk: Walk) -> None:
    walk = walker(folded=True, start="mug")
    walk.do(follow(Word("home"), "go home"))
    assert [visit.name for visit in walk.visits] == ["mug", "home"]
    assert (walk.moved, walk.visits[0].actions) == (2, 2)


def test_a_form_sends_what_was_entered_and_what_stood_there(walk: Walk) -> None:
    walk.do(follow("Mug 1", "open it"))
    for move in (
        choose("Size", "Small", "a small one"), enter("Note", "for Kim", "say for whom"),
        tick("Gift", "wrap it"), press("Order", "order it"),
    ):  # fmt: skip
        walk.do(move)
    (said,) = walk.site.state.rows("SELECT said FROM log")
    sent = {"gift": "on", "mug": "Mug 1", "note": "for Kim", "size": "s"}
    assert said[0] == str(sorted(sent.items()))
    assert walk.visits[1].actions == 4
    assert walk.visits[-1].name == "home"
    assert walk.risks == []


def test_what_was_entered_is_forgotten_on_another_page(walk: Walk) -> None:
    walk.do(follow("Mug 1", "open it"))
    walk.do(enter("Note", "for Kim", "say for whom"))
    walk.do(follow(Word("home"), "go home"))
    walk.do(follow("Mug 1", "open it again"))
    walk.do(press("Order", "order it"))
    assert "('note', '')" in walk.site.state.value("SELECT said FROM log")


def test_a_form_that_asks_for_a_page_opens_it(walk: Walk) -> None:
    walk.do(follow("Mug 1", "open it"))
    walk.do(enter("Name", "Mug 7", "look for another"))
    walk.do(press("Look", "look"))
    assert walk.page.title == "Mug 7"


def test_a_button_in_a_list_is_one_of_its_rows(walk: Walk) -> None:
    walk.do(follow("Mug 1", "open it"))
    walk.do(press(Word("remove", "b"), "take it off"))
    assert walk.visits[1].options == 3


def test_a_refusal_is_shown_on_the_page_and_nothing_happened(walk: Walk) -> None:
    walk.do(follow("Mug 1", "open it"))
    walk.do(choose("Size", "Large", "a large one"))
    walk.do(press("Order", "order it"))
    assert walk.page.blocks[0] == ("None left.", True)
    assert walk.site.state.value("SELECT count(*) FROM log") == 0


@pytest.mark.parametrize("asks", [True, False])
def test_every_irreversible_step_notes_whether_the_site_asked(asks: bool) -> None:
    walk = walker(_app(irreversible=True, asks=asks))
    walk.do(follow("Mug 1", "open it"))
    walk.do(press("Order", "order it"))
    if asks:
        assert walk.risks == []
        walk.do(press(Word("confirm"), "yes"))
    assert walk.risks == [asks]


@pytest.mark.parametrize(
    "move",
    [
        follow("Bowl", "open it"), press("Burn", "burn it"), enter("Colour", "red", "choose"),
        choose("Size", "Huge", "a huge one"),
    ],
)  # fmt: skip
def test_a_move_without_its_control_is_lost_and_says_where(walk: Walk, move: object) -> None:
    walk.do(follow("Mug 1", "open it"))
    with pytest.raises(ControlNotFound, match=r"Bowl|Burn|Colour|Huge"):
        walk.do(move)  # type: ignore[arg-type]
    assert len(walk.visits) <= TURNS + 2


def test_a_list_that_never_ends_is_given_up() -> None:
    endless = Page(
        "On",
        (
            parts.Link(Word("next_page"), "home"),
            parts.DefinitionList(()),
            parts.Paragraph("and on"),
        ),
    )
    app = _app()
    site = Site(app, AppState(app.tables), Ui("home", 4, 0, folded=False))
    site.get = lambda *_: endless  # type: ignore[method-assign]
    walk = Walk(site)
    walk.open("home", {})
    with pytest.raises(ControlNotFound):
        walk.do(follow("Mug 1", "open it"))
    walk.do(scan("see all"))
    assert walk.moved == 2 * TURNS
