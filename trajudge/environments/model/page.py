"""A page as data: what it says and offers, never how it looks.

Applications build these; ``environments.kit.html`` renders them in a theme for the browser,
``environments.checks.walk`` reads them directly. A label is either text of the application's data
(a product's name) or a ``Word``: a key whose wording the theme chooses among synonyms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple


class Word(NamedTuple):
    """A wording that the theme chooses; ``of`` names what it applies to (``Delete`` + the item),
    which is part of the accessible name and not shown where the place makes it plain."""

    key: str
    of: str = ""


Label = str | Word
NO_ARGS: Mapping[str, str] = {}


class Link(NamedTuple):
    """A link to a page of the same application; ``args`` are its query."""

    label: Label
    page: str
    args: Mapping[str, str] = NO_ARGS


class Option(NamedTuple):
    """One choice of a field: the value that is sent and what is shown."""

    value: str
    label: Label


Input = Literal["text", "search", "number", "date", "long", "choice", "tick", "file"]
Drawn = Literal["", "combobox", "listbox", "rating", "rich", "slider", "switch"]


class Field(NamedTuple):
    """One control. ``choice`` is a list or radio buttons, as the theme likes; ``tick`` a checkbox
    that sends ``value`` "on"; ``long`` a text area; of a ``file`` the name is sent.

    ``drawn`` says that it looks otherwise: a choice as a ``combobox`` that suggests what fits, as a
    ``listbox`` that shows all of its options, or as a ``rating`` in stars; a tick as a
    ``switch``; a long text as ``rich``, with a toolbar; a number as a ``slider``. A number may have
    ``limits``, the least and the most, which a slider needs. ``hint`` describes it.
    """

    name: str
    label: Label
    input: Input = "text"
    value: str = ""
    options: tuple[Option, ...] = ()
    required: bool = False
    drawn: Drawn = ""
    hint: Label = ""
    limits: tuple[int, int] | None = None


class Form(NamedTuple):
    """A form. With ``operation`` it changes the state (POST), with ``page`` it asks for a page
    (GET). ``hidden`` is sent along."""

    submit: Label
    fields: tuple[Field, ...] = ()
    operation: str = ""
    page: str = ""
    hidden: Mapping[str, str] = NO_ARGS


class Paragraph(NamedTuple):
    """A paragraph. User content is passed as it is: rendering escapes it."""

    text: Label


class Notice(NamedTuple):
    """A message about what happened; ``error`` says that it went wrong."""

    text: Label
    error: bool = False


class DefinitionList(NamedTuple):
    """Names and values of one thing."""

    rows: tuple[tuple[Label, str], ...]


class ListRow(NamedTuple):
    """One thing in a list: the link that opens it, what is known of it, what can be done with it.

    ``cells`` are in the order of the list's columns after the first, which is the link; a link
    among them shows what its Word applies to.
    """

    link: Link | str
    cells: tuple[str | Link, ...] = ()
    forms: tuple[Form, ...] = ()


class ListOrder(NamedTuple):
    """The order of a list by one of its columns: the address that asks for it, and whether the list
    is in it (1: ascending, -1: descending, 0: it is not)."""

    page: str
    args: Mapping[str, str]
    now: int = 0


class ItemList(NamedTuple):
    """A list of things, drawn as table, cards or lines. ``columns`` names the first one too.

    A part of a long list has ``orders``, one a column; a list that ``grows`` has the link to its
    ``next`` part, which a script appends; a ``complete`` one is sorted and filtered where it is.
    """

    columns: tuple[Label, ...]
    rows: Sequence[ListRow]
    empty: Label = Word("nothing_here")
    orders: tuple[ListOrder, ...] = ()
    complete: bool = False
    grows: bool = False
    next: Link | None = None


class LinkList(NamedTuple):
    """Links under a name. Of a Word, what it applies to is shown (``Category`` + Kitchen). A
    ``carousel`` has them in a row, each with its picture."""

    title: Label
    links: tuple[Link, ...]
    carousel: bool = False


class Chart(NamedTuple):
    """A picture of numbers: the values are in its pixels only, never in the page's text."""

    title: str
    kind: Literal["bars", "line", "pie"]
    labels: tuple[str, ...]
    values: tuple[float, ...]


class Section(NamedTuple):
    """Blocks under a heading."""

    title: Label
    blocks: tuple[Block, ...]


class Disclosure(NamedTuple):
    """Blocks that are hidden until their title is opened: below it, as the form that changes in
    place what stands before it (``edit``), or in a ``dialog`` over the page."""

    title: Label
    blocks: tuple[Block, ...]
    open: bool = False
    drawn: Literal["", "edit", "dialog"] = ""


class Tabs(NamedTuple):
    """Sections of which one is shown at a time, at first the first."""

    label: Label
    panels: tuple[Section, ...]


class Menu(NamedTuple):
    """Links, and forms without fields, behind a button with this title."""

    title: Label
    items: tuple[Link | Form, ...]


class TreeViewItem(NamedTuple):
    """A thing of a hierarchy and what is below it."""

    link: Link | str
    nodes: tuple[TreeViewItem, ...] = ()


class TreeView(NamedTuple):
    """A hierarchy of things."""

    label: Label
    nodes: tuple[TreeViewItem, ...]


class BoardCard(NamedTuple):
    """A thing on a board. ``moves`` are the forms that send it to other columns, by their names."""

    link: Link
    text: str
    moves: Mapping[str, Form]


class BoardColumn(NamedTuple):
    """A column of a board: things in the same state, which names it."""

    name: str
    cards: tuple[BoardCard, ...]


class Board(NamedTuple):
    """Things by their state, which a drag to another column changes, or each card's menu."""

    columns: tuple[BoardColumn, ...]


Block = (
    Paragraph | Notice | DefinitionList | ItemList | LinkList | Chart | Form | Link | Section
    | Disclosure | Tabs | Menu | TreeView | Board
)  # fmt: skip


class Question(NamedTuple):
    """What the site asks before it goes on: an alert dialog over the page, which ``agree`` or
    ``cancel`` leaves."""

    title: Label
    text: str
    agree: Form
    cancel: Link


class Page(NamedTuple):
    """A page: its title (also its heading), its blocks, the ``trail`` of links that leads to it
    from the home page, and the ``question`` that covers it."""

    title: Label
    blocks: tuple[Block, ...]
    trail: tuple[Link, ...] = ()
    question: Question | None = None


class Overlay(NamedTuple):
    """Something of the site's own in the way: a bar at the foot, or (``modal``) a dialog that
    covers the page. ``action`` is where its one button, ``dismiss``, sends a POST."""

    title: str
    text: str
    dismiss: Label
    action: str
    modal: bool = False
