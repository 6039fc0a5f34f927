"""The request desk's pages: tickets, purchases, leave."""

from __future__ import annotations

import sqlite3

from environments.apps.helpdesk import house
from environments.apps.helpdesk.operations import RESOLUTIONS, VERDICTS
from environments.apps.helpdesk.schema import CATEGORIES, PRIORITIES
from environments.apps.lists import asked_for
from environments.apps.search import chosen, find
from environments.kit.listing import listing
from environments.model.binding import money
from environments.model.page import (
    Block,
    Facts,
    Field,
    Form,
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

_TICKETS = """SELECT t.*, a.name AS assigned, q.name AS asked FROM ticket t
    JOIN person a ON a.id = t.assignee JOIN person q ON q.id = t.requester"""
_TICKETS_LISTED = """ WHERE instr(lower(t.number || ' ' || t.subject), lower(:words))
    AND :priority IN ('', t.priority) AND :status IN ('', t.status) ORDER BY """
_TICKET_SORTS = ("t.number", "t.due, t.id", "a.name, t.id")
_PURCHASES = """SELECT u.*, p.name, m.name AS team FROM purchase u
    JOIN person p ON p.id = u.requester JOIN team m ON m.id = p.team"""
_PURCHASES_LISTED = """ WHERE instr(lower(u.number || ' ' || u.what), lower(:words))
    AND :team IN ('', m.name) AND :category IN ('', u.category) AND :status IN ('', u.status)
    ORDER BY """
_PURCHASE_SORTS = ("u.filed DESC, u.id", "u.what, u.id", "u.number DESC")
_LEAVES = "SELECT l.*, p.name FROM leave l JOIN person p ON p.id = l.person"
_LEAVES_LISTED = """ WHERE instr(lower(l.number || ' ' || p.name), lower(:words))
    AND :status IN ('', l.status) ORDER BY """
_LEAVE_SORTS = ("l.start, l.id", "p.name, l.id", "l.number")


def _options(values: tuple[str, ...]) -> tuple[Option, ...]:
    return tuple(Option(value, value) for value in values)


def _assignee(view: View, now: str) -> Field:
    everybody = view.world.rows("SELECT id, name FROM person ORDER BY name")
    options = tuple(Option(row["id"], row["name"]) for row in everybody)
    return Field("assignee", Word("assignee"), "choice", now, options)


def _priority(now: str) -> Field:
    return Field("priority", Word("priority"), "choice", now, _options(PRIORITIES))


def home(view: View) -> Page:
    me = view.world.row("person", view.world.row("account", "me")["person"])
    return Page(
        "Larkfield Works",
        (
            Text("Requests of all kinds, from a broken badge to a new bench."),
            Facts(((Word("signed_in"), me["name"]),)),
            Section(Word("find_ticket"), (find("tickets", view),)),
        ),
    )


def tickets(view: View) -> Page:
    asked = asked_for(view, "priority", "status")
    found = view.world.rows(_TICKETS + _TICKETS_LISTED + _TICKET_SORTS[view.ui.sort], **asked)
    rows = [
        Row(
            Link(row["number"], "ticket", {"id": row["id"]}),
            (row["subject"], row["priority"], row["status"], row["assigned"], row["due"]),
        )
        for row in found
    ]
    form = find(
        "tickets",
        view,
        chosen("priority", "priority", asked["priority"], PRIORITIES),
        chosen("status", "status", asked["status"], ("open", "waiting", "closed")),
    )
    columns = tuple(map(Word, ("ticket", "subject", "priority", "status", "assignee", "due")))
    new = Link(Word("new_ticket"), "new-ticket")
    return Page(Word("tickets"), (new, form, *listing(view, "tickets", columns, rows)))


def ticket(view: View) -> Page:
    found = view.world.one(_TICKETS + " WHERE t.id = :id", id=view.args.get("id", ""))
    if found is None:
        return missing()
    about = (
        (Word("subject"), found["subject"]),
        (Word("priority"), found["priority"]),
        (Word("status"), found["status"]),
        (Word("due"), found["due"]),
        (Word("resolution"), found["resolution"] or "-"),
        (Word("note"), found["note"] or "-"),
        (Word("code"), view.code("ticket", found["id"])),
    )
    asked = Link(found["asked"], "person", {"id": found["requester"]})
    assigned = Link(found["assigned"], "person", {"id": found["assignee"]})
    blocks: tuple[Block, ...] = (
        Facts(about),
        Text(found["body"]),
        Section(Word("requester"), (asked,)),
        Section(Word("assigned_to"), (assigned,)),
    )
    if found["status"] != "closed":
        blocks = (*blocks, *_ticket_forms(view, found))
    return Page(found["number"], blocks)


def _ticket_forms(view: View, ticket: sqlite3.Row) -> tuple[Block, ...]:
    hidden = {"ticket": ticket["id"]}
    update = (_assignee(view, ticket["assignee"]), _priority(ticket["priority"]))
    close = (
        Field("resolution", Word("resolution"), "choice", "", _options(RESOLUTIONS)),
        Field("note", Word("note"), "long"),
    )
    return (
        Section(
            Word("hand_over"),
            (Form(Word("update"), update, operation="update-ticket", hidden=hidden),),
        ),
        Section(
            Word("finish"),
            (Form(Word("close_ticket"), close, operation="close-ticket", hidden=hidden),),
        ),
    )


def new_ticket(view: View) -> Page:
    fields = (
        Field("subject", Word("subject"), "text", "", required=True),
        _priority("normal"),
        _assignee(view, ""),
        Field("due", Word("due"), "date", "", required=True),
        Field("body", Word("details"), "long"),
    )
    return Page(Word("new_ticket"), (Form(Word("file"), fields, operation="file-ticket"),))


def purchases(view: View) -> Page:
    asked = asked_for(view, "team", "category", "status")
    found = view.world.rows(_PURCHASES + _PURCHASES_LISTED + _PURCHASE_SORTS[view.ui.sort], **asked)
    rows = [
        Row(
            Link(row["number"], "purchase", {"id": row["id"]}),
            (row["what"], row["category"], row["team"], row["status"], money(row["amount"])),
        )
        for row in found
    ]
    teams = (row["name"] for row in view.world.rows("SELECT name FROM team ORDER BY name"))
    form = find(
        "purchases",
        view,
        chosen("team", "team", asked["team"], teams),
        chosen("category", "category", asked["category"], CATEGORIES),
        chosen("status", "status", asked["status"], ("pending", *VERDICTS.values())),
    )
    columns = tuple(map(Word, ("purchase", "what", "category", "team", "status", "amount")))
    return Page(Word("purchases"), (form, *listing(view, "purchases", columns, rows)))


def purchase(view: View) -> Page:
    found = view.world.one(_PURCHASES + " WHERE u.id = :id", id=view.args.get("id", ""))
    if found is None:
        return missing()
    about = (
        (Word("what"), found["what"]),
        (Word("category"), found["category"]),
        (Word("amount"), money(found["amount"])),
        (Word("team"), found["team"]),
        (Word("filed"), found["filed"]),
        (Word("status"), found["status"]),
        (Word("note"), found["note"] or "-"),
        (Word("code"), view.code("purchase", found["id"])),
    )
    link = Link(found["name"], "person", {"id": found["requester"]})
    blocks = (Facts(about), Text(found["reason"]), Section(Word("requester"), (link,)))
    if found["status"] != "pending":
        return Page(found["number"], blocks)
    hidden = {"purchase": found["id"]}
    form = Form(Word("send_verdict"), _verdict(), operation="decide-purchase", hidden=hidden)
    return Page(found["number"], (*blocks, form))


def _verdict() -> tuple[Field, ...]:
    verdict = Field("verdict", Word("verdict"), "choice", "", _options(tuple(VERDICTS)))
    return (verdict, Field("note", Word("note"), "long"))


def leaves(view: View) -> Page:
    asked = asked_for(view, "status")
    found = view.world.rows(_LEAVES + _LEAVES_LISTED + _LEAVE_SORTS[view.ui.sort], **asked)
    rows = [
        Row(
            Link(row["number"], "leave", {"id": row["id"]}),
            (row["name"], row["kind"], row["start"], str(row["days"]), row["status"]),
        )
        for row in found
    ]
    status = chosen("status", "status", asked["status"], ("pending", *VERDICTS.values()))
    columns = tuple(map(Word, ("leave", "person", "kind", "start", "days", "status")))
    listed = listing(view, "leaves", columns, rows)
    return Page(Word("leaves"), (find("leaves", view, status), *listed))


def leave(view: View) -> Page:
    found = view.world.get("leave", view.args.get("id", ""))
    if found is None:
        return missing()
    person = view.world.row("person", found["person"])
    about = (
        (Word("kind"), found["kind"]),
        (Word("start"), found["start"]),
        (Word("days"), str(found["days"])),
        (Word("allowance"), str(person["allowance"])),
        (Word("status"), found["status"]),
        (Word("note"), found["note"] or "-"),
        (Word("code"), view.code("leave", found["id"])),
    )
    link = Link(person["name"], "person", {"id": person["id"]})
    blocks = (Facts(about), Section(Word("requester"), (link,)))
    if found["status"] != "pending":
        return Page(found["number"], blocks)
    hidden = {"leave": found["id"]}
    form = Form(Word("answer_leave"), _verdict(), operation="decide-leave", hidden=hidden)
    return Page(found["number"], (*blocks, form))


PAGES = {
    "home": home,
    "tickets": tickets,
    "ticket": ticket,
    "new-ticket": new_ticket,
    "purchases": purchases,
    "purchase": purchase,
    "leaves": leaves,
    "leave": leave,
    "people": house.people,
    "person": house.person,
    "teams": house.teams,
    "team": house.team,
    "spending": house.spending,
    "policies": house.policies,
    "policy": house.policy,
    "rooms": house.rooms,
    "room": house.room,
    "bookings": house.bookings,
    "preferences": house.preferences,
}
_ENTRIES = "home tickets purchases leaves people teams policies rooms bookings preferences"
NAVIGATION = tuple(Link(Word(name), name) for name in _ENTRIES.split())
