"""Pages about one thing: its facts, its sections, the forms that change it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Literal

from trajudge.environments.model.page import (
    Block,
    DefinitionList,
    Drawn,
    Field,
    Form,
    Input,
    Label,
    Link,
    LinkList,
    Option,
    Page,
    Paragraph,
    Section,
    Word,
)
from trajudge.environments.model.site import missing
from trajudge.environments.model.spec import PageContext, PageMaker

OTHERS = 10  # that a page about one thing links to
MANY = 8  # rows, beyond which nobody looks through all


def detail(
    table: str, *, sql: str = "", under: str = "", also: Literal["", "links", "carousel"] = "links"
) -> Callable[[Callable[..., Page]], PageMaker]:
    """Decorate a page about one row of ``table``, which the address names by ``id``; the row is
    what ``sql`` gives for ``:id``, where that is given. An unknown one is a page that is missing.
    The page is ``under`` another one, which its trail of links leads to. Below are links to a few
    others (``also``), as links or in a carousel, where a column is the title of the page."""
    trail = tuple(Link(Word(name), name) for name in ("home", under) if under)

    def decorate(make: Callable[[PageContext, sqlite3.Row], Page]) -> PageMaker:
        @wraps(make)
        def page(view: PageContext) -> Page:
            key = view.args.get("id", "")
            record = view.state.one(sql, id=key) if sql else view.state.get(table, key)
            if record is None:
                return missing()
            made = make(view, record)
            others = _others(view, table, record, made.title, make.__name__) if also else ()
            if also == "carousel":
                others = tuple(other._replace(carousel=True) for other in others)
            return made._replace(blocks=(*made.blocks, *others), trail=trail)

        return page

    return decorate


def _others(
    view: PageContext, table: str, record: sqlite3.Row, title: Label, page: str
) -> tuple[LinkList, ...]:
    """Return links to a few other rows of the table, by the column that is the page's title."""
    row = view.state.row(table, record["id"])
    column = next((name for name in row.keys() if row[name] == title), None)  # noqa: SIM118
    if column is None:
        return ()
    sql = f"SELECT id, {column} FROM {table} WHERE id <> :id ORDER BY id < :id, id LIMIT {OTHERS}"  # noqa: S608
    rows = view.state.rows(sql, id=record["id"])
    links = tuple(Link(row[column], page, {"id": row["id"]}) for row in rows)
    return (LinkList(Word("see_also"), links),) if links else ()


def named_pages(*makers: PageMaker) -> dict[str, PageMaker]:
    """Return pages by their names, which are those of the functions that make them."""
    return {make.__name__: make for make in makers}


def menu(entries: str) -> tuple[Link, ...]:
    """Return the links to pages (blanks between; each is a word) of an application's menu."""
    return tuple(Link(Word(name), name) for name in entries.split())


def front_page(title: str, welcome: str, *blocks: Block) -> Page:
    """Make the page that an application begins with."""
    return Page(title, (Paragraph(welcome), *blocks))


def receipt(view: PageContext, table: str, record: sqlite3.Row, **values: str) -> Page:
    """Make the page about something that was ordered: its facts and its operation code."""
    return Page(Word(table), (facts(**values, code=view.code(table, record["id"])),))


def facts(**values: str) -> DefinitionList:
    """Names and values; the names are words."""
    return DefinitionList(tuple((Word(name), value) for name, value in values.items()))


def facts_of(row: sqlite3.Row, columns: str, **more: str) -> DefinitionList:
    """List columns of a row (blanks between; each is a word) and what else there is to say."""
    return facts(**{name: str(row[name]) for name in columns.split()}, **more)


def section_of(title: str, *blocks: Block) -> Section:
    """Blocks under a heading, which is a word."""
    return Section(Word(title), blocks)


def control(
    name: str,
    kind: Input = "text",
    value: str = "",
    options: tuple[Option, ...] = (),
    *,
    required: bool = False,
    drawn: Drawn = "",
    hint: Label = "",
    limits: tuple[int, int] | None = None,
) -> Field:
    """Make a control whose label is the word of its name."""
    return Field(name, Word(name), kind, value, options, required, drawn, hint, limits)


def pick(name: str, values: Iterable[str | int], value: str = "", drawn: Drawn = "") -> Field:
    """Make a choice among values that are shown as they are sent."""
    options = tuple(Option(str(v), str(v)) for v in values)
    return control(name, "choice", value, options, drawn=drawn)


def tick(name: str, row: sqlite3.Row) -> Field:
    """Make a switch for a flag of a row."""
    return control(name, "tick", "on" if row[name] else "", drawn="switch")


def settings_page(view: PageContext, page: str, setting: str, *first: Block) -> Page:
    """Make a page with one setting of the account, saved by an operation of its name."""
    form = action_form("save", setting, tick(setting, view.state.row("account", "me")))
    return Page(Word(page), (*first, form))


def form_about(
    view: PageContext,
    table: str,
    title: str,
    submit: str,
    *fields: Field,
    column: str = "name",
    section: str = "",
) -> Page:
    """Make the page of a form about the row of ``table`` that the address names: a link to the row,
    shown by a column of it, then the form. An unknown row is a page that is missing."""
    record = view.state.get(table, view.args.get("id", ""))
    if record is None:
        return missing()
    form = action_form(submit, submit.replace("_", "-"), *fields, **{table: record["id"]})
    link = link_to(record, table, column)
    return Page(Word(title), (section_of(section or table, link), form))


def form_page(
    table: str, title: str, submit: str, column: str = "name"
) -> Callable[[Callable[[PageContext], tuple[Field, ...]]], PageMaker]:
    """Decorate the fields of a form about a row: the page of ``form_about``."""

    def decorate(fields: Callable[[PageContext], tuple[Field, ...]]) -> PageMaker:
        @wraps(fields)
        def page(view: PageContext) -> Page:
            return form_about(view, table, title, submit, *fields(view), column=column)

        return page

    return decorate


def link_to(row: sqlite3.Row, page: str, column: str = "name") -> Link:
    """Return the link that opens a row, shown by a column of it."""
    return Link(row[column], page, {"id": row["id"]})


def row_section(
    view: PageContext, record: sqlite3.Row, table: str, title: str = "", column: str = "name"
) -> Section:
    """Make the section with the link to the row of ``table`` whose key the record holds in the
    column ``title`` (by default named like the table), which is its word, too."""
    title = title or table
    return section_of(title, link_to(view.state.row(table, record[title]), table, column))


def pick_row(name: str, rows: Iterable[sqlite3.Row], value: str = "") -> Field:
    """Make a choice among rows, shown by their names and sent by their keys; of many, one that
    suggests what fits."""
    options = tuple(Option(row["id"], row["name"]) for row in rows)
    drawn: Drawn = "combobox" if len(options) > MANY else ""
    return control(name, "choice", value, options, drawn=drawn)


def action_form(submit: str | Word, operation: str, /, *fields: Field, **hidden: str) -> Form:
    """Make a form that carries out an operation; ``hidden`` is sent along."""
    label = Word(submit) if isinstance(submit, str) else submit
    return Form(label, fields, operation=operation, hidden=hidden)
