"""Long lists, a page at a time."""

from __future__ import annotations

from collections.abc import Sequence

from trajudge.environments.model.page import Block, ItemList, Label, Link, ListRow, Word
from trajudge.environments.model.spec import PageContext

PART = "part"  # the query argument that counts the pages of a list from 0


def listing(
    view: PageContext, page: str, columns: tuple[Label, ...], rows: Sequence[ListRow]
) -> tuple[Block, ...]:
    """Return the part of ``rows`` that the arguments of ``page`` ask for, with links to the
    neighbours."""
    size = view.ui.page_size
    last = max(0, (len(rows) - 1) // size)
    requested = view.args.get(PART, "0")
    part = (
        min(int(requested), last)
        if requested.isascii() and requested.isdigit() and len(requested) < 6
        else 0
    )
    blocks: list[Block] = [ItemList(columns, tuple(rows[part * size : (part + 1) * size]))]
    for word, step in (("previous_page", -1), ("next_page", 1)):
        if 0 <= part + step <= last:
            args = {**view.args, PART: str(part + step)}
            blocks.append(Link(Word(word), page, args))
    return tuple(blocks)
