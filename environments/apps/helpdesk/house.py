"""The request desk's pages about the house: people, teams, policies, rooms."""

from __future__ import annotations

import sqlite3

from environments.apps.details import action_form, control, detail, facts, pick, section_of
from environments.apps.helpdesk.schema import CATEGORIES, DAYS, HOURS, MONTHS
from environments.apps.lists import asked_for, headings, opens
from environments.apps.search import chosen, find
from environments.kit.listing import listing
from environments.model.binding import money
from environments.model.page import (
    Block,
    Chart,
    Form,
    Items,
    Link,
    Page,
    Row,
    Text,
    Word,
)
from environments.model.spec import View

_PEOPLE = """SELECT p.*, t.name AS team_name FROM person p JOIN team t ON t.id = p.team
    WHERE instr(lower(p.name), lower(:words)) AND :team IN ('', t.name) ORDER BY """
_PEOPLE_SORTS = ("p.name", "p.title, p.id", "p.id")
_BOOKINGS = """SELECT b.*, r.name, p.name AS host FROM booking b JOIN room r ON r.id = b.room
    JOIN person p ON p.id = b.person WHERE :day IN ('', b.day) AND :hour IN ('', b.hour)
    AND :room IN ('', r.id) ORDER BY b.day, b.hour, r.name"""


def people(view: View) -> Page:
    asked = asked_for(view, "team")
    found = view.world.rows(_PEOPLE + _PEOPLE_SORTS[view.ui.sort], **asked)
    rows = [
        opens(row["name"], "person", row["id"], row["title"], row["team_name"], row["site"])
        for row in found
    ]
    names = (row["name"] for row in view.world.rows("SELECT name FROM team ORDER BY name"))
    form = find("people", view, chosen("team", "team", asked["team"], names))
    columns = headings("person title team site")
    return Page(Word("people"), (form, *listing(view, "people", columns, rows)))


@detail("person")
def person(view: View, found: sqlite3.Row) -> Page:
    about = facts(
        title=found["title"],
        site=found["site"],
        phone=found["phone"],
        allowance=str(found["allowance"]),
    )
    team = view.world.row("team", found["team"])
    blocks: tuple[Block, ...] = (
        about,
        section_of("team", Link(team["name"], "team", {"id": team["id"]})),
    )
    if found["manager"]:
        manager = view.world.row("person", found["manager"])
        link = Link(manager["name"], "person", {"id": manager["id"]})
        blocks = (*blocks, section_of("manager", link))
    return Page(found["name"], blocks)


def teams(view: View) -> Page:
    found = view.world.rows("SELECT * FROM team ORDER BY name")
    rows = tuple(opens(row["name"], "team", row["id"]) for row in found)
    return Page(Word("teams"), (Items((Word("team"),), rows),))


@detail("team")
def team(view: View, found: sqlite3.Row) -> Page:
    lead = view.world.row("person", found["lead"])
    word = Word("resume" if found["paused"] else "pause")
    return Page(
        found["name"],
        (
            facts(budget=money(found["budget"])),
            section_of("lead", Link(lead["name"], "person", {"id": lead["id"]})),
            _bars(view, found["id"], "received", "Tickets received a month"),
            _bars(view, found["id"], "solved", "Tickets solved a month"),
            Link(Word("spending"), "spending", {"id": found["id"]}),
            action_form(word, "pause", team=found["id"]),
        ),
    )


def _bars(view: View, key: str, kind: str, title: str) -> Chart:
    labels = CATEGORIES if kind == "spending" else MONTHS
    loads = "SELECT label, amount FROM load WHERE team = :key AND kind = :kind"
    found = {row["label"]: row["amount"] for row in view.world.rows(loads, key=key, kind=kind)}
    return Chart(title, "bars", labels, tuple(found[label] for label in labels))


@detail("team")
def spending(view: View, found: sqlite3.Row) -> Page:
    of = section_of("team", Link(found["name"], "team", {"id": found["id"]}))
    chart = _bars(view, found["id"], "spending", "Spent in 2025 by category, in dollars")
    return Page(Word("spending"), (of, chart))


def policies(view: View) -> Page:
    found = view.world.rows("SELECT * FROM policy ORDER BY category")
    rows = tuple(opens(row["category"], "policy", row["id"]) for row in found)
    return Page(Word("policies"), (Items((Word("category"),), rows),))


@detail("policy")
def policy(view: View, found: sqlite3.Row) -> Page:
    about = facts(ceiling=money(found["ceiling"]), notice=f"{found['notice']} days")
    return Page(found["category"], (Text(found["body"]), about))


def rooms(view: View) -> Page:
    found = view.world.rows("SELECT * FROM room ORDER BY name")
    rows = [
        opens(
            row["name"],
            "room",
            row["id"],
            row["floor"],
            str(row["seats"]),
            "yes" if row["screen"] else "no",
        )
        for row in found
    ]
    columns = headings("room floor seats screen")
    return Page(Word("rooms"), listing(view, "rooms", columns, rows))


@detail("room")
def room(view: View, found: sqlite3.Row) -> Page:
    about = facts(
        floor=found["floor"], seats=str(found["seats"]), screen="yes" if found["screen"] else "no"
    )
    held = view.world.rows(_BOOKINGS, day="", hour="", room=found["id"])
    rows = tuple(Row(row["day"], (row["hour"], row["purpose"], row["host"])) for row in held)
    fields = (
        pick("day", DAYS),
        pick("hour", HOURS),
        control("purpose", "text", "", required=True),
    )
    taken = Items(headings("day hour purpose booked_by"), rows)
    form = action_form("book", "book", *fields, room=found["id"])
    return Page(found["name"], (about, form, section_of("taken", taken)))


def bookings(view: View) -> Page:
    day, hour = view.args.get("day", ""), view.args.get("hour", "")
    found = view.world.rows(_BOOKINGS, day=day, hour=hour, room="")
    rows = [
        opens(row["name"], "room", row["room"], row["day"], row["hour"], row["purpose"])
        for row in found
    ]
    fields = (chosen("day", "day", day, DAYS), chosen("hour", "hour", hour, HOURS))
    form = Form(Word("search"), fields, page="bookings")
    columns = headings("room day hour purpose")
    return Page(Word("bookings"), (form, *listing(view, "bookings", columns, rows)))


def preferences(view: View) -> Page:
    me = view.world.row("account", "me")
    digest = control("digest", "tick", "on" if me["digest"] else "")
    return Page(Word("preferences"), (action_form("save", "digest", digest),))
