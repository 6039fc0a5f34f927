"""Lists with a search above them: their pages, and the moves of those who use them.

An application that builds on this words ``words`` and ``any``, and every list and filter by name.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from trajudge.environments.kit.listing import listing
from trajudge.environments.model.page import (
    Block,
    Field,
    Form,
    ItemList,
    Link,
    LinkList,
    ListRow,
    Option,
    Page,
    Section,
    Word,
)
from trajudge.environments.model.plan import PlanStep, choose, enter, follow, press, scan, tick
from trajudge.environments.model.spec import PageContext

MOST_FACETS = 12  # options of a choice that are links too
CONFIRM = press(Word("confirm"), "confirm it")


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
    view: PageContext, page: str, columns: str, rows: Sequence[ListRow], *before: Block
) -> Page:
    """Make a page of a long list below what stands ``before`` it; a form that narrows the list is
    followed by links that do so, and its options are links in the list, too."""
    narrow = [
        links
        for form in before
        if isinstance(form, Form) and form.page == page
        for links in _facets(form)
    ]
    side = (Section(Word("narrow"), tuple(narrow)),) if narrow else ()
    known = {link.label: link for links in narrow for link in links.links}
    names = headings(columns)
    linked = [
        row._replace(
            cells=tuple(
                known.get(Word(name.key, cell), cell) if isinstance(cell, str) else cell
                for name, cell in zip(names[1:], row.cells, strict=True)
            )
        )
        for row in rows
    ]
    return Page(Word(page), (*before, *side, *listing(view, page, names, linked)))


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
    return Page(Word(page), (ItemList(headings(columns), tuple(rows)),))


def headings(columns: str) -> tuple[Word, ...]:
    return tuple(map(Word, columns.split()))


def opens(text: str, page: str, key: str, *cells: str) -> ListRow:
    """Make a row whose link opens the thing."""
    return ListRow(Link(text, page, {"id": key}), cells)


def opens_rows(
    rows: Iterable[sqlite3.Row], page: str, title: str, columns: str, **shown: Callable[[Any], str]
) -> tuple[ListRow, ...]:
    """Make list rows whose links open rows of the state: their text, then the cells by their
    columns, blanks between. ``shown`` formats columns that are not shown as they are."""
    names = columns.split()
    return tuple(
        opens(row[title], page, row["id"], *(shown.get(name, str)(row[name]) for name in names))
        for row in rows
    )


def index_page(page: str, heading: str, rows: Iterable[sqlite3.Row], to: str, title: str) -> Page:
    """Make a page of links to rows, each shown by a column and opened on the page ``to``."""
    return table_page(page, heading, opens_rows(rows, to, title, ""))


# --- moves ---------------------------------------------------------------------------------------


def search_and_open(page: str, text: str, why: str = "", aim: str = "") -> list[PlanStep]:
    """Find one thing by its number or name and open it; ``why`` words the first step and ``aim``
    the last."""
    return [
        follow(Word(page), why or f"open the list of {page}"),
        enter(Word("words"), text, f"look for {text}"),
        press(Word("search"), "start the search"),
        follow(text, aim or f"open {text}"),
    ]


def open_listed(page: str, text: str, why: str, aim: str) -> list[PlanStep]:
    """Open one thing of a list that needs no search; ``why`` and ``aim`` word the steps."""
    return [follow(Word(page), why), follow(text, aim)]


def list_all(page: str, why: str = "", **filters: str) -> list[PlanStep]:
    """See everything in a list that the filters leave; ``why`` words the first step."""
    return [
        follow(Word(page), why or f"open the list of {page}"),
        *(choose(Word(name), text, f"narrow it down to {text}") for name, text in filters.items()),
        press(Word("search"), "apply the filter"),
        scan("see the whole list"),
    ]


def fill(button: str, *, texts: dict[str, str | int], choices: dict[str, str]) -> list[PlanStep]:
    """Complete the form and send it."""
    return [
        *(choose(Word(name), text, f"choose {text}") for name, text in choices.items()),
        *(enter(Word(name), text, f"fill in {text}") for name, text in texts.items()),
        press(Word(button), "send the form"),
    ]


def switch(page: str, setting: str, why: str = "") -> list[PlanStep]:
    """Switch a setting that nobody asked about: a distractor; ``why`` words the first step."""
    return [
        follow(Word(page), why or f"check the {page}"),
        tick(Word(setting), "complete the form"),
        press(Word("save"), "save the form"),
    ]
