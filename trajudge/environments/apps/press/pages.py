"""The publishing desk's pages about articles; ``newsroom_pages`` has the others."""

from __future__ import annotations

import sqlite3

from trajudge.environments.apps import details as ui
from trajudge.environments.apps import lists
from trajudge.environments.apps.press import newsroom_pages
from trajudge.environments.apps.press.schema import (
    DAYS,
    MONTHS,
    PLACEMENTS,
    TAGS,
    VERDICTS,
)
from trajudge.environments.apps.reading import lists_of
from trajudge.environments.model import page as parts
from trajudge.environments.model.binding import money
from trajudge.environments.model.page import Page, Word
from trajudge.environments.model.spec import PageContext


def home(view: PageContext) -> Page:
    me = view.state.row("account", "me")["name"]
    welcome = "The publishing desk. What you publish is read at once."
    find = lists.search_form("articles", "")
    return ui.front_page("The Lantern Review", welcome, ui.facts(author=me), find)


@ui.detail("article", under="articles")
def article(view: PageContext, record: sqlite3.Row) -> Page:
    here = {"id": record["id"]}
    about = ui.facts_of(
        record,
        "state tag due weekday",
        fee=money(record["fee"]),
        placement=record["placement"],
        teaser=record["teaser"] or "-",
        code=view.code("article", record["id"]),
    )
    blocks: tuple[parts.Block, ...] = (
        parts.Paragraph(record["body"]),
        about,
        ui.row_section(view, record, "author"),
        ui.row_section(view, record, "section"),
    )
    if image := view.state.get("image", record["image"]):
        link = ui.link_to(image, "image", "caption")
        blocks = (*blocks, ui.section_of("image", link))
    if record["state"] != "published":
        blocks = (*blocks, parts.Link(Word("edit_it"), "edit", here))
        blocks = (*blocks, parts.Link(Word("review_it"), "review", here))
    if record["state"] == "in review":
        blocks = (*blocks, parts.Link(Word("publish_it"), "publish", here))
    pin = ui.action_form("unpin" if record["pinned"] else "pin", "pin", article=record["id"])
    return Page(record["title"], (*blocks, ui.section_of("reviews", _reviews(view, record)), pin))


def _reviews(view: PageContext, record: sqlite3.Row) -> parts.ItemList:
    written = view.state.rows("SELECT * FROM review WHERE article = :id ORDER BY id",
                              id=record["id"])  # fmt: skip
    rows = tuple(
        parts.ListRow(row["reviewer"], (row["verdict"], str(row["grade"]), row["remark"]))
        for row in written
    )
    return parts.ItemList(lists.headings("reviewer verdict grade remark"), rows)


@ui.form_page("article", "edit_it", "edit", column="title")
def edit(_: PageContext) -> tuple[parts.Field, ...]:
    return (
        ui.pick("weekday", DAYS),
        ui.pick("tag", TAGS),
        ui.control("due", "date", required=True),
    )


@ui.form_page("article", "review_it", "review", column="title")
def review(_: PageContext) -> tuple[parts.Field, ...]:
    return (
        ui.pick("verdict", VERDICTS),
        ui.control("grade", "number", required=True),
        ui.control("remark", "long", drawn="rich"),
    )


@ui.form_page("article", "publish_it", "publish", column="title")
def publish(view: PageContext) -> tuple[parts.Field, ...]:
    records = view.state.rows("SELECT * FROM image ORDER BY caption")
    options = tuple(parts.Option(row["id"], row["caption"]) for row in records)
    return (
        ui.control("image", "choice", "", options, drawn="combobox"),
        ui.pick("placement", PLACEMENTS),
        ui.control("teaser", required=True),
    )


@ui.detail("section", under="sections")
def section(view: PageContext, record: sqlite3.Row) -> Page:
    drawn = view.state.rows(
        "SELECT label, amount FROM reach WHERE section = :id AND kind = 'day'", id=record["id"]
    )
    amounts = {row["label"]: row["amount"] for row in drawn}
    title = f"{record['name']}: readers by day of last week"
    editor = ui.row_section(view, record, "author", "editor")
    chart = parts.Chart(title, "bars", DAYS, tuple(amounts[day] for day in DAYS))
    return Page(record["name"], (editor, chart))


def readers(view: PageContext) -> Page:
    """Return the readers of all sections, month by month."""
    charts = []
    for month in MONTHS:
        drawn = view.state.rows(
            "SELECT s.name, r.amount FROM reach r JOIN section s ON s.id = r.section "
            "WHERE r.kind = 'month' AND r.label = :month ORDER BY s.name",
            month=month,
        )
        labels, amounts = tuple(r["name"] for r in drawn), tuple(r["amount"] for r in drawn)
        charts.append(parts.Chart(f"Readers by section in {month}", "bars", labels, amounts))
    return Page(Word("readers"), tuple(charts))


PAGES = {
    **lists_of(__package__ or ""),
    **ui.named_pages(home, article, edit, review, publish, section, readers),
    **newsroom_pages.PAGES,
}
_ENTRIES = "home articles sections readers images newsletters comments authors rules preferences"
NAVIGATION = ui.menu(_ENTRIES)
