"""The request desk's pages about the house: people, teams, policies, rooms."""

from __future__ import annotations

from environments.apps.helpdesk.schema import CATEGORIES, DAYS, HOURS, MONTHS
from environments.apps.lists import asked_for
from environments.apps.search import chosen, find
from environments.kit.listing import listing
from environments.model.binding import money
from environments.model.page import (
    Block,
    Chart,
    Facts,
    Field,
    Form,
    Items,
    Link,
    Option,
    Page,
    Row,
    Section,
    Text,
    Word,
)
from environments.model.site import missing
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
        Row(
            Link(row["name"], "person", {"id": row["id"]}),
            (row["title"], row["team_name"], row["site"]),
        )
        for row in found
    ]
    names = (row["name"] for row in view.world.rows("SELECT name FROM team ORDER BY name"))
    form = find("people", view, chosen("team", "team", asked["team"], names))
    columns = tuple(map(Word, ("person", "title", "team", "site")))
    return Page(Word("people"), (form, *listing(view, "people", columns, rows)))


def person(view: View) -> Page:
    found = view.world.get("person", view.args.get("id", ""))
    if found is None:
        return missing()
    about = (
        (Word("title"), found["title"]),
        (Word("site"), found["site"]),
        (Word("phone"), found["phone"]),
        (Word("allowance"), str(found["allowance"])),
    )
    team = view.world.row("team", found["team"])
    blocks: tuple[Block, ...] = (
        Facts(about),
        Section(Word("team"), (Link(team["name"], "team", {"id": team["id"]}),)),
    )
    if found["manager"]:
        manager = view.world.row("person", found["manager"])
        link = Link(manager["name"], "person", {"id": manager["id"]})
        blocks = (*blocks, Section(Word("manager"), (link,)))
    return Page(found["name"], blocks)


def teams(view: View) -> Page:
    found = view.world.rows("SELECT * FROM team ORDER BY name")
    rows = tuple(Row(Link(row["name"], "team", {"id": row["id"]})) for row in found)
    return Page(Word("teams"), (Items((Word("team"),), rows),))


def team(view: View) -> Page:
    found = view.world.get("team", view.args.get("id", ""))
    if found is None:
        return missing()
    lead = view.world.row("person", found["lead"])
    word = Word("resume" if found["paused"] else "pause")
    return Page(
        found["name"],
        (
            Facts(((Word("budget"), money(found["budget"])),)),
            Section(Word("lead"), (Link(lead["name"], "person", {"id": lead["id"]}),)),
            _bars(view, found["id"], "received", "Tickets received a month"),
            _bars(view, found["id"], "solved", "Tickets solved a month"),
            Link(Word("spending"), "spending", {"id": found["id"]}),
            Form(word, operation="pause", hidden={"team": found["id"]}),
        ),
    )


def _bars(view: View, key: str, kind: str, title: str) -> Chart:
    labels = CATEGORIES if kind == "spending" else MONTHS
    loads = "SELECT label, amount FROM load WHERE team = :key AND kind = :kind"
    found = {row["label"]: row["amount"] for row in view.world.rows(loads, key=key, kind=kind)}
    return Chart(title, "bars", labels, tuple(found[label] for label in labels))


def spending(view: View) -> Page:
    found = view.world.get("team", view.args.get("id", ""))
    if found is None:
        return missing()
    of = Section(Word("team"), (Link(found["name"], "team", {"id": found["id"]}),))
    chart = _bars(view, found["id"], "spending", "Spent in 2025 by category, in dollars")
    return Page(Word("spending"), (of, chart))


def policies(view: View) -> Page:
    found = view.world.rows("SELECT * FROM policy ORDER BY category")
    rows = tuple(Row(Link(row["category"], "policy", {"id": row["id"]})) for row in found)
    return Page(Word("policies"), (Items((Word("category"),), rows),))


def policy(view: View) -> Page:
    found = view.world.get("policy", view.args.get("id", ""))
    if found is None:
        return missing()
    about = (
        (Word("ceiling"), money(found["ceiling"])),
        (Word("notice"), f"{found['notice']} days"),
    )
    return Page(found["category"], (Text(found["body"]), Facts(about)))


def rooms(view: View) -> Page:
    found = view.world.rows("SELECT * FROM room ORDER BY name")
    rows = [
        Row(
            Link(row["name"], "room", {"id": row["id"]}),
            (row["floor"], str(row["seats"]), "yes" if row["screen"] else "no"),
        )
        for row in found
    ]
    columns = tuple(map(Word, ("room", "floor", "seats", "screen")))
    return Page(Word("rooms"), listing(view, "rooms", columns, rows))


def room(view: View) -> Page:
    found = view.world.get("room", view.args.get("id", ""))
    if found is None:
        return missing()
    about = (
        (Word("floor"), found["floor"]),
        (Word("seats"), str(found["seats"])),
        (Word("screen"), "yes" if found["screen"] else "no"),
    )
    held = view.world.rows(_BOOKINGS, day="", hour="", room=found["id"])
    rows = tuple(Row(row["day"], (row["hour"], row["purpose"], row["host"])) for row in held)
    fields = (
        Field("day", Word("day"), "choice", "", tuple(Option(day, day) for day in DAYS)),
        Field("hour", Word("hour"), "choice", "", tuple(Option(hour, hour) for hour in HOURS)),
        Field("purpose", Word("purpose"), "text", "", required=True),
    )
    taken = Items(tuple(map(Word, ("day", "hour", "purpose", "booked_by"))), rows)
    form = Form(Word("book"), fields, operation="book", hidden={"room": found["id"]})
    return Page(found["name"], (Facts(about), form, Section(Word("taken"), (taken,))))


def bookings(view: View) -> Page:
    day, hour = view.args.get("day", ""), view.args.get("hour", "")
    found = view.world.rows(_BOOKINGS, day=day, hour=hour, room="")
    rows = [
        Row(
            Link(row["name"], "room", {"id": row["room"]}),
            (row["day"], row["hour"], row["purpose"]),
        )
        for row in found
    ]
    fields = (chosen("day", "day", day, DAYS), chosen("hour", "hour", hour, HOURS))
    form = Form(Word("search"), fields, page="bookings")
    columns = tuple(map(Word, ("room", "day", "hour", "purpose")))
    return Page(Word("bookings"), (form, *listing(view, "bookings", columns, rows)))


def preferences(view: View) -> Page:
    me = view.world.row("account", "me")
    digest = Field("digest", Word("digest"), "tick", "on" if me["digest"] else "")
    return Page(Word("preferences"), (Form(Word("save"), (digest,), operation="digest"),))
