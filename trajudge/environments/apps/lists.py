"""Lists with a search above them.

An application that builds on this words ``words`` and ``any``, and every list and filter by name.
Most lists are data: a table ``[lists.NAME]`` of ``app.toml`` (``ListDescription``).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, overload

from pydantic import Field as Default

from trajudge.environments.kit.listing import listing
from trajudge.environments.model.binding import money
from trajudge.environments.model.page import (
    Block,
    Field,
    Form,
    ItemList,
    Label,
    Link,
    LinkList,
    ListRow,
    Option,
    Page,
    Section,
    Word,
)
from trajudge.environments.model.spec import PageContext, PageMaker
from trajudge.trajectories.model import Record

MOST_FACETS = 12  # options of a choice that are links too
_FORMATS: dict[str, Callable[[Any], str]] = {
    "": str, "money": money, "yes": lambda flag: "yes" if flag else "no",
}  # fmt: skip


class ListDescription(Record):
    """A list page as ``app.toml`` describes it.

    ``rows`` asks for what is listed, by ``:words`` where there is a ``search``, and by the name of
    each filter; one of ``sorts`` is added, where there are several orders. ``opens`` is the page
    that the first cell leads to ("": none). ``cells`` are columns of the rows, the first one that
    of the link, each with a format (``cost:money``) where it is not shown as it stands. A filter is
    the name of a tuple in the module ``schema``, a query, or values. ``before`` are links above: a
    word and a page each. A ``complete`` list is short, a ``feed`` grows.
    """

    rows: str
    columns: str
    cells: str
    opens: str = ""
    sorts: tuple[str, ...] = ("",)
    search: bool = False
    filters: dict[str, str | tuple[str, ...]] = Default(default_factory=dict)
    before: dict[str, str] = Default(default_factory=dict)
    complete: bool = False
    feed: bool = False

    def page(self, name: str, constants: Any) -> PageMaker:
        """Return the maker of the page; ``constants`` holds the tuples that filters name."""
        title, *cells = (cell.partition(":") for cell in self.cells.split())

        def row(record: sqlite3.Row) -> ListRow:
            shown = tuple(_FORMATS[form](record[column]) for column, _, form in cells)
            text = record[title[0]]
            link = Link(text, self.opens, {"id": record["id"]}) if self.opens else text
            return ListRow(link, shown)

        def values(view: PageContext, source: str | tuple[str, ...]) -> Iterable[str]:
            if not isinstance(source, str):
                return source
            if source.startswith("SELECT "):
                return [row[0] for row in view.state.rows(source)]
            known: Iterable[str] = getattr(constants, source)
            return known

        def make(view: PageContext) -> Page:
            order = self.sorts[view.ui.sort] if len(self.sorts) > 1 else self.sorts[0]
            records = view.state.rows(f"{self.rows} {order}", **asked_for(view, *self.filters))
            rows = OpeningRows(records, row)
            if self.complete:
                return table_page(name, self.columns, rows)
            filters = [chosen(view, key, values(view, s)) for key, s in self.filters.items()]
            forms: tuple[Form, ...] = ()
            if self.search:
                forms = (search_form(name, view.args.get("words", ""), *filters),)
            elif filters:
                forms = (filter_form(name, *filters),)
            above = tuple(Link(Word(word), page) for word, page in self.before.items())
            page = list_page(view, name, self.columns, rows, *forms, feed=self.feed)
            return page._replace(blocks=(*above, *page.blocks))

        return make


def asked_for(view: PageContext, *names: str) -> dict[str, str]:
    """Return what a search asks for, as values of its SQL."""
    return {name: view.args.get(name, "") for name in ("words", *names)}


def narrowed(name: str, value: str, values: Iterable[str]) -> Field:
    """Make a filter that may be left open."""
    options = (Option("", Word("any")), *(Option(entry, entry) for entry in values))
    return Field(name, Word(name), "choice", value, options)


def chosen(view: PageContext, name: str, values: Iterable[str]) -> Field:
    """Make a filter as the page's address has it."""
    return narrowed(name, view.args.get(name, ""), values)


def filter_form(page: str, *filters: Field, submit: str = "search", **hidden: str) -> Form:
    """Make a form that asks for a list."""
    return Form(Word(submit), filters, page=page, hidden=hidden)


def search_form(page: str, words: str, *filters: Field) -> Form:
    """Make a form that asks for a list by words and filters."""
    return filter_form(page, Field("words", Word("words"), "search", words), *filters)


def searched(
    view: PageContext,
    page: str,
    columns: str,
    rows: Sequence[ListRow],
    filters: Sequence[Field] = (),
) -> Page:
    """Make a list page: the search, then what was found. ``columns`` are words, blanks between."""
    form = search_form(page, view.args.get("words", ""), *filters)
    return list_page(view, page, columns, rows, form)


def list_page(
    view: PageContext,
    page: str,
    columns: str,
    rows: Sequence[ListRow],
    *before: Block,
    feed: bool = False,
) -> Page:
    """Make a page of a long list below what stands ``before`` it; a form that narrows the list is
    followed by links that do so, and its options are links in the list, too. A ``feed`` grows."""
    narrow = [
        links
        for form in before
        if isinstance(form, Form) and form.page == page
        for links in _facets(form)
    ]
    side = (Section(Word("narrow"), tuple(narrow)),) if narrow else ()
    known = {link.label: link for links in narrow for link in links.links}
    names = headings(columns)
    listed = (
        _linked(block, names, known) if isinstance(block, ItemList) else block
        for block in listing(view, page, names, rows, feed=feed)
    )
    return Page(Word(page), (*before, *side, *listed))


def _linked(items: ItemList, names: tuple[Word, ...], known: Mapping[Label, Link]) -> ItemList:
    """Return a list whose cells are links where these are known by their column and text."""
    kinds = {label.key for label in known if isinstance(label, Word)}
    places = [place for place, name in enumerate(names[1:]) if name.key in kinds]

    def linked(row: ListRow) -> ListRow:
        cells = list(row.cells)
        for place in places:
            if isinstance(cell := cells[place], str):
                cells[place] = known.get(Word(names[place + 1].key, cell), cell)
        return row._replace(cells=tuple(cells))

    return items._replace(rows=tuple(map(linked, items.rows))) if places else items


def _facets(form: Form) -> Iterator[LinkList]:
    """Yield links for each choice of a form: to what it asks for with another option."""
    stands = {**form.hidden, **{field.name: field.value for field in form.fields if field.value}}
    for field in form.fields:
        if not 1 < len(field.options) <= MOST_FACETS or not isinstance(field.label, Word):
            continue
        rest = {name: value for name, value in stands.items() if name != field.name}
        links = tuple(
            Link(Word(field.label.key, option.label), form.page, {**rest, field.name: option.value})
            for option in field.options
            if option.value != field.value and isinstance(option.label, str)
        )
        if links:
            yield LinkList(field.label, links)


def table_page(page: str, columns: str, rows: Iterable[ListRow]) -> Page:
    """Make a page of a list that is short."""
    return Page(Word(page), (ItemList(headings(columns), tuple(rows), complete=True),))


def headings(columns: str) -> tuple[Word, ...]:
    return tuple(map(Word, columns.split()))


def opens(text: str, page: str, key: str, *cells: str) -> ListRow:
    """Make a row whose link opens the thing."""
    return ListRow(Link(text, page, {"id": key}), cells)


class OpeningRows(Sequence[ListRow]):
    """List rows whose links open rows of the state. A row is made when it is asked for: a page
    shows a part of a long list."""

    def __init__(self, rows: Sequence[sqlite3.Row], made: Callable[[sqlite3.Row], ListRow]) -> None:
        self._rows, self._made = rows, made

    def __len__(self) -> int:
        return len(self._rows)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    @overload
    def __getitem__(self, at: int) -> ListRow: ...
    @overload
    def __getitem__(self, at: slice) -> OpeningRows: ...
    def __getitem__(self, at: int | slice) -> ListRow | OpeningRows:
        if isinstance(at, slice):
            return OpeningRows(self._rows[at], self._made)
        return self._made(self._rows[at])


def opens_rows(
    rows: Iterable[sqlite3.Row], page: str, title: str, columns: str, **shown: Callable[[Any], str]
) -> OpeningRows:
    """Make list rows whose links open rows of the state: their text, then the cells by their
    columns, blanks between. ``shown`` formats columns that are not shown as they are."""
    names = columns.split()
    return OpeningRows(
        list(rows),
        lambda row: opens(
            row[title], page, row["id"], *(shown.get(name, str)(row[name]) for name in names)
        ),
    )
