"""The request desk's pages about the house: people, teams, policies, rooms."""

from __future__ import annotations

import sqlite3

from trajudge.environments.apps import details as ui
from trajudge.environments.apps import lists
from trajudge.environments.apps.helpdesk.schema import CATEGORIES, DAYS, HOURS, MONTHS
from trajudge.environments.model import page as parts
from trajudge.environments.model.binding import money
from trajudge.environments.model.page import Page, Word
from trajudge.environments.model.spec import PageContext

_BOOKINGS = """SELECT b.*, r.name, p.name AS host FROM booking b JOIN room r ON r.id = b.room
    JOIN person p ON p.id = b.person WHERE r.id = :room ORDER BY b.day, b.hour"""


@ui.detail("person", under="people")
def person(view: PageContext, record: sqlite3.Row) -> Page:
    about = ui.facts_of(record, "title site phone allowance")
    blocks: tuple[parts.Block, ...] = (about, ui.row_section(view, record, "team"))
    if record["manager"]:
        blocks = (*blocks, ui.row_section(view, record, "person", "manager"))
    return Page(record["name"], blocks)


@ui.detail("team", under="teams")
def team(view: PageContext, record: sqlite3.Row) -> Page:
    word = Word("resume" if record["paused"] else "pause")
    return Page(
        record["name"],
        (
            ui.facts(budget=money(record["budget"])),
            ui.row_section(view, record, "person", "lead"),
            _bars(view, record["id"], "received", "Tickets received a month"),
            _bars(view, record["id"], "solved", "Tickets solved a month"),
            parts.Link(Word("spending"), "spending", {"id": record["id"]}),
            ui.action_form(word, "pause", team=record["id"]),
        ),
    )


def _bars(view: PageContext, key: str, kind: str, title: str) -> parts.Chart:
    labels = CATEGORIES if kind == "spending" else MONTHS
    loads = "SELECT label, amount FROM load WHERE team = :key AND kind = :kind"
    amounts = {row["label"]: row["amount"] for row in view.state.rows(loads, key=key, kind=kind)}
    return parts.Chart(title, "bars", labels, tuple(amounts[label] for label in labels))


@ui.detail("team", under="teams")
def spending(view: PageContext, record: sqlite3.Row) -> Page:
    of = ui.section_of("team", ui.link_to(record, "team"))
    chart = _bars(view, record["id"], "spending", "Spent in 2025 by category, in dollars")
    return Page(Word("spending"), (of, chart))


@ui.detail("policy", under="policies")
def policy(view: PageContext, record: sqlite3.Row) -> Page:
    about = ui.facts(ceiling=money(record["ceiling"]), notice=f"{record['notice']} days")
    return Page(record["category"], (parts.Paragraph(record["body"]), about))


def _yes_or_no(flag: int) -> str:
    return "yes" if flag else "no"


@ui.detail("room", under="rooms")
def room(view: PageContext, record: sqlite3.Row) -> Page:
    about = ui.facts_of(record, "floor seats", screen=_yes_or_no(record["screen"]))
    held = view.state.rows(_BOOKINGS, room=record["id"])
    rows = tuple(
        parts.ListRow(row["day"], (row["hour"], row["purpose"], row["host"])) for row in held
    )
    fields = (
        ui.pick("day", DAYS),
        ui.pick("hour", HOURS),
        ui.control("purpose", "text", "", required=True),
    )
    taken = parts.ItemList(lists.headings("day hour purpose booked_by"), rows)
    form = ui.action_form("book", "book", *fields, room=record["id"])
    return Page(record["name"], (about, form, ui.section_of("taken", taken)))


def preferences(view: PageContext) -> Page:
    return ui.settings_page(view, "preferences", "digest")


PAGES = ui.named_pages(person, team, spending, policy, room, preferences)
