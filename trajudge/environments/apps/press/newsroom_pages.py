"""The publishing desk's pages about images, newsletters, comments, authors and style."""

from __future__ import annotations

import sqlite3

from trajudge.environments.apps import details as ui
from trajudge.environments.apps import lists
from trajudge.environments.apps.press.schema import (
    AUDIENCES,
    COMMENT_STATES,
    LICENCES,
    MAIL_STATES,
    SENDERS,
)
from trajudge.environments.model import page as parts
from trajudge.environments.model.binding import money
from trajudge.environments.model.page import Page, Word
from trajudge.environments.model.spec import PageContext

_IMAGES = """SELECT * FROM image WHERE instr(lower(caption || ' ' || credit), lower(:words))
    AND :licence IN ('', licence) ORDER BY """
_IMAGE_SORTS = ("caption", "credit, id", "id")
_NEWSLETTERS = """SELECT * FROM newsletter
    WHERE instr(lower(number || ' ' || subject), lower(:words)) AND :audience IN ('', audience)
    AND :status IN ('', status) ORDER BY """
_NEWSLETTER_SORTS = ("number", "subject, id", "id")
_COMMENTS = """SELECT c.*, a.title FROM comment c JOIN article a ON a.id = c.article
    WHERE instr(lower(c.number || ' ' || c.reader || ' ' || a.title), lower(:words))
    AND :status IN ('', c.status) ORDER BY c.posted DESC, c.id"""


def _article(view: PageContext, word: str, key: str) -> parts.Section:
    title = view.state.row("article", key)["title"]
    return parts.Section(Word(word), (parts.Link(title, "article", {"id": key}),))


def images(view: PageContext) -> Page:
    records = view.state.rows(
        _IMAGES + _IMAGE_SORTS[view.ui.sort], **lists.asked_for(view, "licence")
    )
    rows = lists.opens_rows(records, "image", "caption", "credit licence fee", fee=money)
    licence = lists.chosen(view, "licence", LICENCES)
    return lists.searched(view, "images", "image credit licence fee", rows, (licence,))


@ui.detail("image", under="images")
def image(view: PageContext, record: sqlite3.Row) -> Page:
    about = ui.facts_of(record, "credit licence", fee=money(record["fee"]))
    return Page(record["caption"], (about,))


def newsletters(view: PageContext) -> Page:
    criteria = lists.asked_for(view, "audience", "status")
    records = view.state.rows(_NEWSLETTERS + _NEWSLETTER_SORTS[view.ui.sort], **criteria)
    rows = lists.opens_rows(records, "newsletter", "number", "subject audience sends status")
    filters = (lists.chosen(view, "audience", AUDIENCES), lists.chosen(view, "status", MAIL_STATES))
    columns = "newsletter subject audience sends status"
    page = lists.searched(view, "newsletters", columns, rows, filters)
    return page._replace(blocks=(parts.Link(Word("compose_one"), "compose"), *page.blocks))


@ui.detail("newsletter", under="newsletters")
def newsletter(view: PageContext, record: sqlite3.Row) -> Page:
    shown = ("subject", "audience", "sends", "status", "recipients", "sender")
    about = tuple((Word(name), str(record[name])) for name in shown)
    sealed = (Word("code"), view.code("newsletter", record["id"]))
    blocks: tuple[parts.Block, ...] = (
        parts.DefinitionList((*about, sealed)),
        _article(view, "lead", record["article"]),
    )
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


def comments(view: PageContext) -> Page:
    records = view.state.rows(_COMMENTS, **lists.asked_for(view, "status"))
    rows = lists.opens_rows(records, "comment", "number", "reader title posted status")
    filters = (lists.chosen(view, "status", COMMENT_STATES),)
    return lists.searched(view, "comments", "comment reader article posted status", rows, filters)


@ui.detail("comment", under="comments")
def comment(view: PageContext, record: sqlite3.Row) -> Page:
    about = tuple((Word(name), record[name]) for name in ("reader", "posted", "status"))
    hidden = {"comment": record["id"]}
    blocks: tuple[parts.Block, ...] = (
        parts.Paragraph(record["body"]),
        parts.DefinitionList(about),
        _article(view, "article", record["article"]),
        ui.action_form("delete", "delete", **hidden),
    )
    if record["status"] == "held":
        blocks = (*blocks, ui.action_form("show", "show", **hidden))
    return Page(record["number"], blocks)


def authors(view: PageContext) -> Page:
    records = view.state.rows(
        "SELECT * FROM author WHERE instr(lower(name), lower(:words)) ORDER BY name",
        **lists.asked_for(view),
    )
    rows = lists.opens_rows(records, "author", "name", "desk")
    return lists.searched(view, "authors", "author desk", rows)


@ui.detail("author", under="authors")
def author(view: PageContext, record: sqlite3.Row) -> Page:
    written = view.state.rows("SELECT * FROM article WHERE author = :id ORDER BY title",
                              id=record["id"])  # fmt: skip
    rows = lists.opens_rows(written, "article", "title", "state fee", fee=money)
    items = parts.ItemList(lists.headings("article state fee"), rows)
    about = ui.facts(desk=record["desk"])
    their = ui.section_of("their_articles", items)
    return Page(record["name"], (parts.Paragraph(record["about"]), about, their))


def rules(view: PageContext) -> Page:
    records = view.state.rows(
        "SELECT * FROM rule WHERE instr(lower(subject), lower(:words)) ORDER BY subject",
        **lists.asked_for(view),
    )
    rows = [parts.ListRow(row["subject"], (str(row["most"]), row["advice"])) for row in records]
    return lists.searched(view, "rules", "subject_of_rule most advice", rows)


def preferences(view: PageContext) -> Page:
    return ui.settings_page(view, "preferences", "hints")


PAGES = ui.named_pages(
    images,
    image,
    newsletters,
    newsletter,
    compose,
    comments,
    comment,
    authors,
    author,
    rules,
    preferences,
)
