"""What a page offers and says, read from its model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from trajudge.environments.model.page import (
    Block,
    Chart,
    DefinitionList,
    Form,
    ItemList,
    Label,
    Link,
    LinkList,
    Page,
    Section,
    Word,
)


def blocks(outer: Iterable[Block]) -> Iterator[Block]:
    """Yield every block, those inside of sections too."""
    for block in outer:
        yield block
        if isinstance(block, Section):
            yield from blocks(block.blocks)


def links(page: Page) -> Iterator[Link]:
    """Yield the links of a page, those of lists in their places."""
    for block in blocks(page.blocks):
        if isinstance(block, Link):
            yield block
        elif isinstance(block, LinkList):
            yield from block.links
        elif isinstance(block, ItemList):
            yield from block.sorts
            for row in block.rows:
                yield from (cell for cell in (row.link, *row.cells) if isinstance(cell, Link))


def forms(page: Page) -> Iterator[Form]:
    """Yield the forms of a page, those of lists in their places."""
    for block in blocks(page.blocks):
        if isinstance(block, Form):
            yield block
        elif isinstance(block, ItemList):
            for row in block.rows:
                yield from row.forms


def charts(page: Page) -> int:
    return sum(isinstance(block, Chart) for block in blocks(page.blocks))


def options(page: Page) -> int:
    """Return the most things that one list of the page holds."""
    lists = (block for block in blocks(page.blocks) if isinstance(block, ItemList))
    return max((len(block.rows) for block in lists), default=0)


def beside(page: Page, control: Link | Form) -> int:
    """Return how many things there are to choose from where this control stands: the rows of its
    list; 1 for a control that stands alone."""
    for block in blocks(page.blocks):
        if isinstance(block, ItemList):
            for row in block.rows:
                if row.link is control or any(form is control for form in row.forms):
                    return len(block.rows)
    return 1


def texts(page: Page) -> Iterator[str]:
    """Yield the data that a page shows (wordings of the theme left out)."""
    yield _said(page.title)
    for block in blocks(page.blocks):
        match block:
            case Section(title=label) | Link(label=label):
                yield _said(label)
            case DefinitionList(rows):
                for name, value in rows:
                    yield _said(name)
                    yield value
            case ItemList():
                yield from _of_items(block)
            case Form():
                yield from _of_form(block)
            case LinkList(_, links):
                yield from (_said(link.label) for link in links)
            case Chart(title=title):
                yield title
            case _:
                yield _said(block.text)


def _of_items(items: ItemList) -> Iterator[str]:
    for column in items.columns:
        yield _said(column)
    for row in items.rows:
        yield _said(row.link.label if isinstance(row.link, Link) else row.link)
        yield from (_said(c.label) if isinstance(c, Link) else c for c in row.cells)
        for form in row.forms:
            yield from _of_form(form)


def _of_form(form: Form) -> Iterator[str]:
    for entry in form.fields:
        yield entry.value
        for option in entry.options:
            yield _said(option.label)


def _said(label: Label) -> str:
    return label.of if isinstance(label, Word) else label
