"""What a page offers and says, wherever on the page it stands."""

from __future__ import annotations

from dataclasses import replace

import pytest

from trajudge.environments.kit.listing import PART, SORT, listing
from trajudge.environments.kit.reading import (
    Fold,
    blocks,
    charts,
    controls,
    forms,
    links,
    options,
    texts,
)
from trajudge.environments.model import page as parts
from trajudge.environments.model.config import Ui
from trajudge.environments.model.page import Page, Word
from trajudge.environments.model.spec import PageContext
from trajudge.environments.model.state import AppState

OPEN, LOOSE = parts.Link("Oak", "mug"), parts.Link(Word("home"), "home")
DROP = parts.Form(Word("remove", "Oak"), operation="drop")
ASK = parts.Form(
    Word("search"),
    (parts.Field("q", Word("words"), value="oak", options=(parts.Option("1", "One"),)),),
)
PAGE = Page(
    "Mugs",
    (
        parts.Paragraph("Hello"),
        LOOSE,
        parts.Section(
            Word("more", "Mugs"),
            (
                parts.ItemList(
                    ("Mug", "Price"),
                    (parts.ListRow(OPEN, ("$5",), (DROP,)), parts.ListRow("Slate", ("$6",))),
                ),
                parts.Section("Deeper", (ASK, parts.Chart("Sales", "bars", ("Jan",), (1.0,)))),
            ),
        ),
        parts.DefinitionList((("Maker", "Finch"),)),
        parts.Notice("Careful"),
    ),
)


def test_everything_is_found_in_sections_and_lists() -> None:
    assert len(list(blocks(PAGE.blocks))) == 9
    assert list(links(PAGE)) == [LOOSE, OPEN]
    assert list(forms(PAGE)) == [DROP, ASK]
    assert charts(PAGE) == 1
    assert options(PAGE) == 2
    assert options(Page("Empty", ())) == 0


def test_a_control_stands_beside_the_rows_of_its_list() -> None:
    among = {id(one.control): one.among for one in controls(PAGE)}
    assert among == {id(LOOSE): 1, id(OPEN): 2, id(DROP): 2, id(ASK): 1}


def test_what_a_control_is_folded_into_comes_from_the_outside_to_the_inside() -> None:
    menu = parts.Menu("Account", (OPEN,))
    panels = (parts.Section("One", (LOOSE,)), parts.Section("Two", (menu, DROP)))
    page = Page("Mugs", (parts.Disclosure("More", (parts.Tabs("About", panels),), open=True),))
    more = Fold("More", "More", open=True)
    assert [(one.control, one.folds) for one in controls(page)] == [
        (LOOSE, (more, Fold("One", "About", open=True))),
        (OPEN, (more, Fold("Two", "About"), Fold("Account", "Account"))),
        (DROP, (more, Fold("Two", "About"))),
    ]


def test_a_question_leaves_its_answers_alone() -> None:
    asked = PAGE._replace(question=parts.Question("Sure?", "Really?", DROP, LOOSE))
    assert [one.control for one in controls(asked)] == [DROP, LOOSE]
    assert "Really?" in texts(asked)


def test_texts_are_the_data_without_the_theme_s_words_and_without_a_chart_s_values() -> None:
    said = list(filter(None, texts(PAGE)))
    assert said == [
        "Mugs", "Hello", "Mugs", "Mug", "Price", "Oak", "$5", "Slate", "$6", "Deeper",
        "oak", "One", "Sales", "Maker", "Finch", "Careful",
    ]  # fmt: skip


def view(part: str | None, size: int = 4) -> PageContext:
    args = {} if part is None else {PART: part}
    return PageContext(
        AppState(()), {"kind": "mug", **args}, Ui("home", size, 0, folded=False), lambda *_: ""
    )


ROWS = [parts.ListRow(f"Mug {n}") for n in range(10)]


def test_a_long_list_comes_a_page_at_a_time_with_links_to_its_neighbours() -> None:
    shown, older, pages = listing(view(None), "mugs", ("Mug",), ROWS)
    assert isinstance(pages, parts.LinkList)
    assert [link.args[PART] for link in pages.links] == ["1", "2"]
    assert isinstance(shown, parts.ItemList)
    assert shown.rows == tuple(ROWS[:4])
    assert older == parts.Link(Word("next_page"), "mugs", {"kind": "mug", PART: "1"})
    middle = listing(view("1"), "mugs", ("Mug",), ROWS)
    assert [block.label for block in middle if isinstance(block, parts.Link)] == [
        Word("previous_page"),
        Word("next_page"),
    ]
    (last, *_) = listing(view("2"), "mugs", ("Mug",), ROWS)
    assert isinstance(last, parts.ItemList)
    assert last.rows == tuple(ROWS[8:])


@pytest.mark.parametrize("part", ["-1", "x", "", "²", "1e3", "0x1", "99999999", "1" * 5000])
def test_a_part_that_is_no_page_is_an_end_of_the_list(part: str) -> None:
    shown = listing(view(part), "mugs", ("Mug",), ROWS)[0]
    assert isinstance(shown, parts.ItemList)
    assert shown.rows in (tuple(ROWS[:4]), tuple(ROWS[8:]))


def test_a_long_list_links_to_its_first_nine_parts() -> None:
    rows = [parts.ListRow(f"Mug {n}") for n in range(41)]  # 11 parts of four
    pages = listing(view("3"), "mugs", ("Mug",), rows)[-1]
    assert pages == parts.LinkList(
        Word("pages"),
        tuple(
            parts.Link(Word("page_number", number), "mugs", {"kind": "mug", PART: part})
            for number, part in zip("12356789", "01245678", strict=True)
        ),
    )
    for asked, first in (("00001", 4), ("000001", 0)):  # at most five digits
        shown = listing(view(asked), "mugs", ("Mug",), rows)[0]
        assert isinstance(shown, parts.ItemList)
        assert shown.rows == tuple(rows[first : first + 4])


def test_parts_that_are_full_are_all() -> None:
    shown, before, pages = listing(view("9"), "mugs", ("Mug",), ROWS[:8])
    assert isinstance(shown, parts.ItemList)
    assert shown.rows == tuple(ROWS[4:8])
    assert before == parts.Link(Word("previous_page"), "mugs", {"kind": "mug", PART: "0"})
    assert isinstance(pages, parts.LinkList)
    assert [link.args[PART] for link in pages.links] == ["0"]


def test_a_list_says_the_orders_that_it_offers() -> None:
    rows = [parts.ListRow(name, ("$1",)) for name in "ab"]
    for sort, orders in (
        ("1", [("-1", 1), ("2", 0)]),
        ("-2", [("1", 0), ("2", -1)]),
    ):
        (items,) = listing(replace(view(None), args={SORT: sort}), "mugs", ("Mug", "Price"), rows)
        assert isinstance(items, parts.ItemList)
        assert items.orders == tuple(
            parts.ListOrder("mugs", {SORT: other}, now) for other, now in orders
        )
    (single,) = listing(view(None), "mugs", ("Mug", "Price"), rows[:1])
    assert isinstance(single, parts.ItemList)
    assert single.orders == ()


def sorted_by(order: str) -> list[str]:
    prices = ("$9.50", "$1,000.00", "$10.00")
    rows = [parts.ListRow(name, (price,)) for name, price in zip("bca", prices, strict=True)]
    context = replace(view(None), args={SORT: order})
    (items,) = listing(context, "mugs", ("Mug", "Price"), rows)
    assert isinstance(items, parts.ItemList)
    return [str(row.link) for row in items.rows]


def test_a_list_comes_in_the_order_of_a_column() -> None:
    assert [sorted_by(order) for order in ("1", "-1", "2", "-2")] == [
        ["a", "b", "c"], ["c", "b", "a"], ["b", "a", "c"], ["c", "a", "b"],
    ]  # fmt: skip
    for unknown in ("", "0", "3", "-3", "x", "+1", "01"):
        assert sorted_by(unknown) == ["b", "c", "a"]
    items = listing(view("1"), "mugs", ("Mug",), ROWS)[0]
    assert isinstance(items, parts.ItemList)
    assert items.orders == (parts.ListOrder("mugs", {"kind": "mug", SORT: "1"}),)


def test_a_feed_has_its_next_part_in_itself() -> None:
    (items,) = listing(view("1"), "mugs", ("Mug",), ROWS, feed=True)
    assert isinstance(items, parts.ItemList)
    assert items.next == parts.Link(Word("next_page"), "mugs", {"kind": "mug", PART: "2"})


def test_a_short_list_has_no_neighbours() -> None:
    assert len(listing(view(None, 14), "mugs", ("Mug",), ROWS)) == 1
    assert len(listing(view(None), "mugs", ("Mug",), [])) == 1
