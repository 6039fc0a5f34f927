"""What a page offers and says, read from its model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from trajudge.environments.model.page import (
    Block,
    Board,
    Chart,
    DefinitionList,
    Disclosure,
    Form,
    ItemList,
    Label,
    Link,
    LinkList,
    Menu,
    Page,
    Section,
    Tabs,
    TreeView,
    TreeViewItem,
    Word,
)


class Fold(NamedTuple):
    """Something that has to be open for what is in it: a disclosure, a menu, a tab. Of those of one
    ``group`` one is open at a time; ``open`` says whether this one is at first."""

    title: Label
    group: Label
    open: bool = False


class PlacedControl(NamedTuple):
    """A link or a form of a page: how many things there are to choose from where it stands, and
    what it is in, from the outside to the inside."""

    control: Link | Form
    among: int = 1
    folds: tuple[Fold, ...] = ()


def blocks(outer: Iterable[Block]) -> Iterator[Block]:
    """Yield every block, those inside of others too."""
    for block in outer:
        yield block
        if isinstance(block, Section | Disclosure):
            yield from blocks(block.blocks)
        elif isinstance(block, Tabs):
            yield from blocks(block.panels)


def controls(page: Page) -> Iterator[PlacedControl]:
    """Yield what can be used on a page; of one that a question covers, the answers."""
    if page.question is not None:
        yield PlacedControl(page.question.agree)
        yield PlacedControl(page.question.cancel)
        return
    yield from map(PlacedControl, page.trail)
    yield from _controls(page.blocks, ())


def _controls(outer: Iterable[Block], folds: tuple[Fold, ...]) -> Iterator[PlacedControl]:
    for block in outer:
        match block:
            case Link() | Form():
                yield PlacedControl(block, 1, folds)
            case Section(_, inner):
                yield from _controls(inner, folds)
            case Disclosure(title, inner, is_open):
                yield from _controls(inner, (*folds, Fold(title, title, is_open)))
            case Tabs(label, panels):
                for index, panel in enumerate(panels):
                    yield from _controls(
                        panel.blocks, (*folds, Fold(panel.title, label, not index))
                    )
            case Menu(title, items):
                behind = (*folds, Fold(title, title))
                yield from (PlacedControl(item, len(items), behind) for item in items)
            case TreeView(_, nodes):
                yield from (PlacedControl(link, len(nodes), folds) for link in _of_tree(nodes))
            case Board():
                yield from _of_board(block, folds)
            case LinkList(_, links):
                yield from (PlacedControl(link, 1, folds) for link in links)
            case ItemList():
                yield from _of_list(block, folds)


def _of_list(items: ItemList, folds: tuple[Fold, ...]) -> Iterator[PlacedControl]:
    for row in items.rows:
        linked = (cell for cell in (row.link, *row.cells) if isinstance(cell, Link))
        here: tuple[Link | Form, ...] = (*linked, *row.forms)
        yield from (PlacedControl(control, len(items.rows), folds) for control in here)
    if items.next is not None:
        yield PlacedControl(items.next, 1, folds)


def _of_tree(nodes: Iterable[TreeViewItem]) -> Iterator[Link]:
    for node in nodes:
        if isinstance(node.link, Link):
            yield node.link
        yield from _of_tree(node.nodes)


def _of_board(board: Board, folds: tuple[Fold, ...]) -> Iterator[PlacedControl]:
    for column in board.columns:
        for card in column.cards:
            among = len(column.cards)
            yield PlacedControl(card.link, among, folds)
            title = card_menu(card.link)
            behind = (*folds, Fold(title, title))
            yield from (PlacedControl(move, among, behind) for move in card.moves.values())


def card_menu(link: Link) -> Word:
    """Return the title of the menu that sends a card to another column."""
    return Word("move_to", link.label if isinstance(link.label, str) else link.label.of)


def links(page: Page) -> Iterator[Link]:
    """Yield the links of a page, those of lists in their places."""
    return (one.control for one in controls(page) if isinstance(one.control, Link))


def forms(page: Page) -> Iterator[Form]:
    """Yield the forms of a page, those of lists in their places."""
    return (one.control for one in controls(page) if isinstance(one.control, Form))


def charts(page: Page) -> int:
    return sum(isinstance(block, Chart) for block in blocks(page.blocks))


def options(page: Page) -> int:
    """Return the most things that one list of the page holds."""
    lists = (block for block in blocks(page.blocks) if isinstance(block, ItemList))
    return max((len(block.rows) for block in lists), default=0)


def texts(page: Page) -> Iterator[str]:
    """Yield the data that a page shows (wordings of the theme left out)."""
    yield _said(page.title)
    if page.question is not None:
        yield _said(page.question.text)
    for block in blocks(page.blocks):
        yield from _said_in(block)


def _said_in(block: Block) -> Iterator[str]:
    """Yield what a block says, but for the blocks inside."""
    match block:
        case Section(title=label) | Disclosure(title=label) | Menu(title=label):
            yield _said(label)
        case Link(label=label) | Tabs(label=label) | Chart(title=label):
            yield _said(label)
        case DefinitionList(rows):
            yield from (text for name, value in rows for text in (_said(name), value))
        case LinkList(_, links):
            yield from (_said(link.label) for link in links)
        case ItemList():
            yield from _said_in_list(block)
        case Form():
            yield from _said_in_form(block)
        case TreeView(label, nodes):
            yield from (_said(label), *_said_in_tree(nodes))
        case Board(columns):
            for column in columns:
                yield column.name
                yield from (t for card in column.cards for t in (_said(card.link.label), card.text))
        case _:
            yield _said(block.text)


def _said_in_list(items: ItemList) -> Iterator[str]:
    for column in items.columns:
        yield _said(column)
    for row in items.rows:
        yield _said(row.link.label if isinstance(row.link, Link) else row.link)
        yield from (_said(c.label) if isinstance(c, Link) else c for c in row.cells)
        for form in row.forms:
            yield from _said_in_form(form)


def _said_in_tree(nodes: Iterable[TreeViewItem]) -> Iterator[str]:
    for node in nodes:
        yield _said(node.link.label if isinstance(node.link, Link) else node.link)
        yield from _said_in_tree(node.nodes)


def _said_in_form(form: Form) -> Iterator[str]:
    for entry in form.fields:
        yield entry.value
        for option in entry.options:
            yield _said(option.label)


def _said(label: Label) -> str:
    return label.of if isinstance(label, Word) else label
