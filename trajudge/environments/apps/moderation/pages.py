"""The moderation desk's pages."""

from __future__ import annotations

import sqlite3

from trajudge.environments.apps import details as ui
from trajudge.environments.apps import lists
from trajudge.environments.apps.moderation import member_pages
from trajudge.environments.apps.moderation.member_pages import clauses, decisions
from trajudge.environments.apps.reading import lists_of
from trajudge.environments.model import page as parts
from trajudge.environments.model.binding import money
from trajudge.environments.model.page import Page, Word
from trajudge.environments.model.spec import PageContext

_REPORTS = """SELECT r.*, p.number AS about, m.id AS author, m.handle, f.name AS forum FROM report r
    JOIN post p ON p.id = r.post JOIN member m ON m.id = p.author JOIN forum f ON f.id = p.forum"""


def home(view: PageContext) -> Page:
    return ui.front_page(
        "Quayside Commons",
        "The moderators' desk. Every decision is logged under your name.",
        ui.facts(moderator=view.state.row("account", "me")["name"]),
        ui.section_of("find_post", lists.search_form("posts", view.args.get("words", ""))),
    )


@ui.detail("post", under="posts")
def post(view: PageContext, record: sqlite3.Row) -> Page:
    about = ui.facts(
        title=record["title"],
        forum=view.state.row("forum", record["forum"])["name"],
        status=record["status"],
        fee=money(record["fee"]),
    )
    reported = view.state.rows(_REPORTS + " WHERE r.post = :id ORDER BY r.filed", id=record["id"])
    blocks: tuple[parts.Block, ...] = (
        about,
        parts.Paragraph(record["body"]),
        ui.row_section(view, record, "member", "author", "handle"),
        ui.section_of(
            "reports_on",
            parts.ItemList(lists.headings(_REPORT_COLUMNS), tuple(map(_report_row, reported))),
        ),
        ui.section_of("decisions", decisions(view, record["id"])),
    )
    if record["status"] == "visible":
        kinds = tuple(parts.Option(kind, kind) for kind in ("approve", "remove"))
        fields = (
            parts.Field("kind", Word("verdict"), "choice", "", kinds),
            clauses(view, parts.Option("", Word("no_clause"))),
            ui.control("note", "long"),
        )
        form = ui.action_form("record", "decide", *fields, post=record["id"])
        blocks = (*blocks, ui.section_of("your_decision", form))
    return Page(record["number"], blocks)


_REPORT_COLUMNS = "report category author filed status"


def _report_row(report: sqlite3.Row) -> parts.ListRow:
    link = ui.link_to(report, "report", "number")
    return parts.ListRow(
        link, (report["category"], report["handle"], report["filed"], report["status"])
    )


@ui.detail("report", sql=_REPORTS + " WHERE r.id = :id", under="reports")
def report(view: PageContext, record: sqlite3.Row) -> Page:
    about = ui.facts_of(record, "category forum filed status note")
    of = ui.section_of("reported", parts.Link(record["about"], "post", {"id": record["post"]}))
    return Page(record["number"], (about, of))


@ui.detail("forum", under="forums")
def forum(view: PageContext, record: sqlite3.Row) -> Page:
    charts = (
        _chart(view, record, "week", "Reports per week, late 2025"),
        _chart(view, record, "category", "Reports by category in 2025"),
    )
    word = Word("unlock" if record["locked"] else "lock")
    form = ui.action_form(word, "lock", forum=record["id"])
    return Page(record["name"], (ui.facts(steward=record["steward"]), *charts, form))


def _chart(view: PageContext, record: sqlite3.Row, kind: str, title: str) -> parts.Chart:
    counted = view.state.rows(
        "SELECT * FROM tally WHERE forum = :id AND kind = :kind ORDER BY label",
        id=record["id"],
        kind=kind,
    )
    labels = tuple(row["label"] for row in counted)
    return parts.Chart(
        f"{record['name']}: {title}", "bars", labels, tuple(row["amount"] for row in counted)
    )


def preferences(view: PageContext) -> Page:
    return ui.settings_page(view, "preferences", "alerts")


PAGES = {
    **lists_of(__package__ or ""),
    **ui.named_pages(home, post, report, forum, preferences),
    **member_pages.PAGES,
}
_ENTRIES = "home reports posts members appeals rules log forums preferences"
NAVIGATION = ui.menu(_ENTRIES)
