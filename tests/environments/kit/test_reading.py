"""What a page offers and says, wherever on the page it stands."""

from __future__ import annotations

from dataclasses import replace

import pytest

from trajudge.environments.kit.listing import ORDER, PART, listing
from trajudge.environments.kit.reading import beside, blocks, charts, forms, links, options, texts
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
    assert beside(PAGE, OPEN) == beside(PAGE, DROP) == 2
    assert beside(PAGE, LOOSE) == beside(PAGE, ASK) == 1


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


SORTED = tuple(
    parts.ListRow(name, (price, day))
    for name, price, day in (
        ("oak", "$9.50", "2026-03-02"), ("Ash", "$1,200.00", "2025-12-31"), ("elm", "$12", "-"),
    )
)  # fmt: skip


@pytest.mark.parametrize(
    ("by", "names"),
    [
        ("0", "Ash elm oak"), ("-0", "oak elm Ash"), ("1", "oak elm Ash"), ("-1", "Ash elm oak"),
        ("2", "elm Ash oak"), ("3", "oak Ash elm"), ("--1", "oak Ash elm"), ("²", "oak Ash elm"),
    ],
)  # fmt: skip
def test_a_list_is_sorted_by_its_columns(by: str, names: str) -> None:
    """Numbers by their value, text as in a dictionary, what is no column not at all."""
    columns = ("Wood", "Price", "Day")
    context = replace(view("0"), args={ORDER: by})
    items = listing(context, "woods", columns, SORTED)[0]
    assert isinstance(items, parts.ItemList)
    assert [row.link for row in items.rows] == names.split()
    assert items.sorts[1].args == {ORDER: "-1" if by == "1" else "1"}


@pytest.mark.parametrize("part", ["-1", "x", "", "²", "1e3", "0x1", "99999999", "1" * 5000])
def test_a_part_that_is_no_page_is_an_end_of_the_list(part: str) -> None:
    shown = listing(view(part), "mugs", ("Mug",), ROWS)[0]
    assert isinstance(shown, parts.ItemList)
    assert shown.rows in (tuple(ROWS[:4]), tuple(ROWS[8:]))


def test_a_short_list_has_no_neighbours() -> None:
    assert len(listing(view(None, 14), "mugs", ("Mug",), ROWS)) == 1
    assert len(listing(view(None), "mugs", ("Mug",), [])) == 1
