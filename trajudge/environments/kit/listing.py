"""Long lists, a page at a time, in the order of any of their columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from trajudge.environments.model.page import (
    Block,
    ItemList,
    Label,
    Link,
    ListOrder,
    ListRow,
    Word,
)
from trajudge.environments.model.spec import PageContext

PART = "part"  # the query argument that counts the pages of a list from 0
SORT = "sort"  # the column that a list is in the order of, from 1; negative: descending
_AMOUNT = re.compile(r"\$?(\d[\d,]*(?:\.\d+)?)(?:[ %].*)?")


def listing(
    view: PageContext,
    page: str,
    columns: tuple[Label, ...],
    rows: Sequence[ListRow],
    *,
    feed: bool = False,
) -> tuple[Block, ...]:
    """Return the part of ``rows`` that the arguments of ``page`` ask for, with links to the
    neighbours and to the list in the order of each column. A ``feed`` has no way back: a script
    adds the next part to the one that is shown."""
    size, sort = view.ui.page_size, _sort(view.args.get(SORT, ""), len(columns))
    if sort:
        rows = sorted(rows, key=_key(rows, abs(sort) - 1), reverse=sort < 0)
    last = max(0, (len(rows) - 1) // size)
    requested = view.args.get(PART, "0")
    part = (
        min(int(requested), last)
        if requested.isascii() and requested.isdigit() and len(requested) < 6
        else 0
    )
    shown = tuple(rows[part * size : (part + 1) * size])
    base = {name: value for name, value in view.args.items() if name not in (PART, SORT)}
    orders = tuple(
        ListOrder(page, {**base, SORT: str(-n if sort == n else n)}, (sort == n) - (sort == -n))
        for n in range(1, len(columns) + 1)
    )
    items = ItemList(columns, shown, orders=orders if len(rows) > 1 else ())
    beside = {
        word: Link(Word(word), page, {**view.args, PART: str(part + step)})
        for word, step in (("previous_page", -1), ("next_page", 1))
        if 0 <= part + step <= last
    }
    if feed:
        return (items._replace(grows=True, next=beside.get("next_page")),)
    return (items, *beside.values())


def _sort(requested: str, columns: int) -> int:
    """Return the order that an address asks for, 0 for none."""
    known = {str(sign * n): sign * n for n in range(1, columns + 1) for sign in (1, -1)}
    return known.get(requested, 0)


def _key(rows: Sequence[ListRow], column: int) -> Callable[[ListRow], tuple[float, str]]:
    """Return what rows are ordered by: numbers where a column has nothing else, else texts."""

    def shown(row: ListRow) -> str:
        if column:
            return row.cells[column - 1]
        label = row.link.label if isinstance(row.link, Link) else row.link
        return label.of if isinstance(label, Word) else label

    amounts = [_AMOUNT.fullmatch(shown(row)) for row in rows]
    if all(amounts):
        values = {
            shown(row): float(m[1].replace(",", ""))
            for row, m in zip(rows, amounts, strict=True)
            if m
        }
        return lambda row: (values[shown(row)], "")
    return lambda row: (0.0, shown(row).casefold())
