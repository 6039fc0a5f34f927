"""The request desk's pages: tickets, purchases, leave."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from trajudge.environments.apps import details as ui
from trajudge.environments.apps import lists
from trajudge.environments.apps.helpdesk import directory_pages
from trajudge.environments.apps.helpdesk.operations import ON_THE_BOARD, RESOLUTIONS, VERDICTS
from trajudge.environments.apps.helpdesk.schema import PRIORITIES
from trajudge.environments.apps.reading import lists_of
from trajudge.environments.model.binding import money
from trajudge.environments.model.page import (
    Block,
    Board,
    BoardCard,
    BoardColumn,
    Field,
    Form,
    Link,
    Page,
    Paragraph,
    Word,
)
from trajudge.environments.model.spec import PageContext

_TICKETS = """SELECT t.*, a.name AS assigned, q.name AS asked FROM ticket t
    JOIN person a ON a.id = t.assignee JOIN person q ON q.id = t.requester"""
_PURCHASES = """SELECT u.*, p.name, m.name AS team FROM purchase u
    JOIN person p ON p.id = u.requester JOIN team m ON m.id = p.team"""


def _assignee(view: PageContext, now: str) -> Field:
    everybody = view.state.rows("SELECT id, name FROM person ORDER BY name")
    return ui.pick_row("assignee", everybody, now)


def _priority(now: str) -> Field:
    return ui.pick("priority", PRIORITIES, now)


def home(view: PageContext) -> Page:
    me = view.state.row("person", view.state.row("account", "me")["person"])
    welcome = "Requests of all kinds, from a broken badge to a new bench."
    find = ui.section_of("find_ticket", lists.search_form("tickets", view.args.get("words", "")))
    return ui.front_page("Larkfield Works", welcome, ui.facts(signed_in=me["name"]), find)


def board(view: PageContext) -> Page:
    """Return the tickets that are not closed, by their status."""
    columns = []
    for status in ON_THE_BOARD:
        sql = _TICKETS + " WHERE t.status = :status ORDER BY t.due, t.id"
        records = view.state.rows(sql, status=status)
        cards = (
            _card(row, [other for other in ON_THE_BOARD if other != status]) for row in records
        )
        columns.append(BoardColumn(status, tuple(cards)))
    trail = (Link(Word("home"), "home"), Link(Word("tickets"), "tickets"))
    return Page(Word("board"), (Board(tuple(columns)),), trail)


def _card(ticket: sqlite3.Row, others: Sequence[str]) -> BoardCard:
    moves = {
        status: Form(
            f"{ticket['number']}: {status}",
            operation="move-ticket",
            hidden={"ticket": ticket["id"], "status": status},
        )
        for status in others
    }
    return BoardCard(ui.link_to(ticket, "ticket", "number"), ticket["subject"], moves)


@ui.detail("ticket", sql=_TICKETS + " WHERE t.id = :id", under="tickets")
def ticket(view: PageContext, record: sqlite3.Row) -> Page:
    about = ui.facts_of(
        record,
        "subject priority status due",
        resolution=record["resolution"] or "-",
        note=record["note"] or "-",
        code=view.code("ticket", record["id"]),
    )
    requester = Link(record["asked"], "person", {"id": record["requester"]})
    assigned = Link(record["assigned"], "person", {"id": record["assignee"]})
    blocks: tuple[Block, ...] = (
        about,
        Paragraph(record["body"]),
        ui.section_of("requester", requester),
        ui.section_of("assigned_to", assigned),
    )
    if record["status"] != "closed":
        blocks = (*blocks, *_ticket_forms(view, record))
    return Page(record["number"], blocks)


def _ticket_forms(view: PageContext, ticket: sqlite3.Row) -> tuple[Block, ...]:
    hidden = {"ticket": ticket["id"]}
    update = (_assignee(view, ticket["assignee"]), _priority(ticket["priority"]))
    close = (
        ui.pick("resolution", RESOLUTIONS),
        ui.control("note", "long"),
    )
    return (
        ui.section_of("hand_over", ui.action_form("update", "update-ticket", *update, **hidden)),
        ui.section_of("finish", ui.action_form("close_ticket", "close-ticket", *close, **hidden)),
    )


def new_ticket(view: PageContext) -> Page:
    fields = (
        ui.control("subject", "text", "", required=True),
        _priority("normal"),
        _assignee(view, ""),
        ui.control("due", "date", "", required=True),
        Field("body", Word("details"), "long"),
    )
    return Page(Word("new_ticket"), (ui.action_form("file", "file-ticket", *fields),))


@ui.detail("purchase", sql=_PURCHASES + " WHERE u.id = :id", under="purchases")
def purchase(view: PageContext, record: sqlite3.Row) -> Page:
    about = ui.facts_of(
        record,
        "what category",
        amount=money(record["amount"]),
        team=record["team"],
        filed=record["filed"],
        status=record["status"],
        note=record["note"] or "-",
        code=view.code("purchase", record["id"]),
    )
    link = Link(record["name"], "person", {"id": record["requester"]})
    blocks: tuple[Block, ...] = (
        about,
        Paragraph(record["reason"]),
        ui.section_of("requester", link),
    )
    if record["status"] == "pending":
        blocks = (*blocks, _verdict("send_verdict", "decide-purchase", purchase=record["id"]))
    return Page(record["number"], blocks)


def _verdict(submit: str, operation: str, **hidden: str) -> Form:
    verdict = ui.pick("verdict", VERDICTS)
    return ui.action_form(submit, operation, verdict, ui.control("note", "long"), **hidden)


@ui.detail("leave", under="leaves")
def leave(view: PageContext, record: sqlite3.Row) -> Page:
    person = view.state.row("person", record["person"])
    about = ui.facts_of(
        record,
        "kind start days",
        allowance=str(person["allowance"]),
        status=record["status"],
        note=record["note"] or "-",
        code=view.code("leave", record["id"]),
    )
    link = ui.link_to(person, "person")
    blocks: tuple[Block, ...] = (about, ui.section_of("requester", link))
    if record["status"] == "pending":
        blocks = (*blocks, _verdict("answer_leave", "decide-leave", leave=record["id"]))
    return Page(record["number"], blocks)


PAGES = {
    **lists_of(__package__ or ""),
    **ui.named_pages(home, ticket, board, purchase, leave),
    "new-ticket": new_ticket,
    **directory_pages.PAGES,
}
_ENTRIES = "home tickets purchases leaves people teams policies rooms bookings preferences"
NAVIGATION = ui.menu(_ENTRIES)
