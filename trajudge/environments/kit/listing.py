"""Long lists: a page at a time, in the order that the reader chose."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import count, islice

from trajudge.environments.model.page import Block, ItemList, Label, Link, LinkList, ListRow, Word
from trajudge.environments.model.spec import PageContext

PART = "part"  # the query argument that counts the pages of a list from 0
ORDER = "by"  # the query argument that names the column to sort by, "-" before it for downwards
MOST_PARTS = 9  # that a list links to
_NUMBER = re.compile(r"[^\w-]?(-?[\d,]+(?:\.\d+)?)(?:\s.*|%)?", re.DOTALL)


def listing(
    view: PageContext, page: str, columns: tuple[Label, ...], rows: Sequence[ListRow]
) -> tuple[Block, ...]:
    """Return the part of ``rows`` that the arguments of ``page`` ask for, with links that sort it
    and links to the other parts."""
    size, wanted = view.ui.page_size, view.args.get(ORDER, "")
    last = max(0, (len(rows) - 1) // size)
    requested = view.args.get(PART, "0")
    part = (
        min(int(requested), last)
        if requested.isascii() and requested.isdigit() and len(requested) < 6
        else 0
    )
    rest = {name: value for name, value in view.args.items() if name not in (PART, ORDER)}
    shown = _sorted(rows, wanted, len(columns))[part * size : (part + 1) * size]
    sorts = tuple(
        Link(column, page, {**rest, ORDER: f"-{place}" if wanted == str(place) else str(place)})
        for place, column in enumerate(columns)
    )
    items = ItemList(columns, tuple(shown), sorts=sorts if len(rows) > 1 else ())
    blocks: list[Block] = []
    for word, step in (("previous_page", -1), ("next_page", 1)):
        if 0 <= part + step <= last:
            args = {**view.args, PART: str(part + step)}
            blocks.append(Link(Word(word), page, args))
    if last:
        numbers = (
            Link(Word("page_number", str(number + 1)), page, {**view.args, PART: str(number)})
            for number in count(0)
            if number != part
        )
        blocks.append(LinkList(Word("pages"), tuple(islice(numbers, min(last, MOST_PARTS)))))
    return (items, *blocks)


def _sorted(rows: Sequence[ListRow], wanted: str, columns: int) -> Sequence[ListRow]:
    """Return the rows in the order of a column, as they are for one that is none."""
    number = wanted.removeprefix("-")
    if number not in map(str, range(columns)):
        return rows
    return sorted(rows, key=lambda row: _key(row, int(number)), reverse=wanted != number)


def _key(row: ListRow, column: int) -> tuple[float, str]:
    """Return what a cell is sorted by: a number by its value, before all text."""
    cell = (row.link, *row.cells)[column]
    label = cell.label if isinstance(cell, Link) else cell
    text = label if isinstance(label, str) else label.of
    value = _NUMBER.fullmatch(text)
    return (float(value[1].replace(",", "")), "") if value else (float("inf"), text.casefold())
