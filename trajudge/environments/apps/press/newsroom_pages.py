"""The publishing desk's pages about images, newsletters, comments, authors and style."""

from __future__ import annotations

import sqlite3

from trajudge.environments.apps import details as ui
from trajudge.environments.apps import lists
from trajudge.environments.apps.press.schema import (
    AUDIENCES,
    SENDERS,
)
from trajudge.environments.model import page as parts
from trajudge.environments.model.binding import money
from trajudge.environments.model.page import Page, Word
from trajudge.environments.model.spec import PageContext


def _article(view: PageContext, word: str, key: str) -> parts.Section:
    title = view.state.row("article", key)["title"]
    return parts.Section(Word(word), (parts.Link(title, "article", {"id": key}),))


@ui.detail("image", under="images")
def image(view: PageContext, record: sqlite3.Row) -> Page:
    about = ui.facts_of(record, "credit licence", fee=money(record["fee"]))
    return Page(record["caption"], (about,))


@ui.detail("newsletter", under="newsletters")
def newsletter(view: PageContext, record: sqlite3.Row) -> Page:
    shown, code = (
        "subject audience sends status recipients sender",
        view.code("newsletter", record["id"]),
    )
    about = ui.facts_of(record, shown, code=code)
    blocks: tuple[parts.Block, ...] = (about, _article(view, "lead", record["article"]))
    if record["status"] == "planned":
        fields, hidden = (ui.pick("sender", SENDERS),), {"newsletter": record["id"]}
        blocks = (*blocks, ui.action_form("send", "send", *fields, **hidden))
    return Page(record["number"], blocks)


def compose(view: PageContext) -> Page:
    records = view.state.rows("SELECT * FROM article ORDER BY title")
    options = tuple(parts.Option(row["id"], row["title"]) for row in records)
    fields = (
        ui.control("subject", required=True),
        ui.pick("audience", AUDIENCES),
        ui.control("sends", "date", required=True),
        ui.control("lead", "choice", "", options),
    )
    return Page(Word("compose_one"), (ui.action_form("compose", "compose", *fields),))


@ui.detail("comment", under="comments")
def comment(view: PageContext, record: sqlite3.Row) -> Page:
    hidden = {"comment": record["id"]}
    blocks: tuple[parts.Block, ...] = (
        parts.Paragraph(record["body"]),
        ui.facts_of(record, "reader posted status"),
        _article(view, "article", record["article"]),
        ui.action_form("delete", "delete", **hidden),
    )
    if record["status"] == "held":
        blocks = (*blocks, ui.action_form("show", "show", **hidden))
    return Page(record["number"], blocks)


@ui.detail("author", under="authors")
def author(view: PageContext, record: sqlite3.Row) -> Page:
    written = view.state.rows("SELECT * FROM article WHERE author = :id ORDER BY title",
                              id=record["id"])  # fmt: skip
    rows = lists.opens_rows(written, "article", "title", "state fee", fee=money)
    items = parts.ItemList(lists.headings("article state fee"), rows)
    about = ui.facts(desk=record["desk"])
    their = ui.section_of("their_articles", items)
    return Page(record["name"], (parts.Paragraph(record["about"]), about, their))


def preferences(view: PageContext) -> Page:
    return ui.settings_page(view, "preferences", "hints")


PAGES = ui.named_pages(image, newsletter, compose, comment, author, preferences)
