"""The desk's pages about members: decisions, sanctions, house rules, appeals."""

from __future__ import annotations

from datetime import date, timedelta

from environments.apps.lists import asked_for
from environments.apps.moderation.operations import OUTCOMES
from environments.apps.moderation.parts import DECISIONS, clauses, decisions
from environments.apps.search import chosen, find
from environments.kit.listing import listing
from environments.model.page import (
    Block,
    Facts,
    Field,
    Form,
    Items,
    Label,
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

_MEMBERS = """SELECT * FROM member WHERE instr(lower(handle), lower(:words))
    AND :status IN ('', status) ORDER BY """
_MEMBER_SORTS = ("handle", "joined DESC, id", "id")


def members(view: View) -> Page:
    asked = asked_for(view, "status")
    found = view.world.rows(
        _MEMBERS + _MEMBER_SORTS[view.ui.sort],
        **asked,
    )
    rows = [
        Row(
            Link(row["handle"], "member", {"id": row["id"]}),
            (row["joined"], row["status"], row["until"]),
        )
        for row in found
    ]
    status = chosen("status", "status", asked["status"], ("active", "suspended"))
    columns = tuple(map(Word, ("member", "joined", "status", "until")))
    listed = listing(view, "members", columns, rows)
    return Page(Word("members"), (find("members", view, status), *listed))


def member(view: View) -> Page:
    found = view.world.get("member", view.args.get("id", ""))
    if found is None:
        return missing()
    here = {"id": found["id"]}
    written = view.world.rows("SELECT * FROM post WHERE author = :id ORDER BY number", **here)
    rows = tuple(
        Row(Link(row["number"], "post", {"id": row["id"]}), (row["title"], row["status"]))
        for row in written
    )
    about = (
        (Word("joined"), found["joined"]),
        (Word("status"), found["status"]),
        (Word("until"), found["until"] or "-"),
    )
    blocks: tuple[Block, ...] = (Text(found["about"]), Facts(about))
    if found["status"] == "active":
        blocks = (*blocks, Link(Word("suspend_member"), "suspend", here))
    items = Items((Word("post"), Word("title"), Word("status")), rows)
    return Page(
        found["handle"],
        (
            *blocks,
            Link(Word("warn_member"), "warn", here),
            Section(Word("posts_by"), (items,)),
            Section(Word("decisions"), (decisions(view, found["id"]),)),
        ),
    )


def decision(view: View) -> Page:
    found = view.world.one(DECISIONS + " WHERE d.id = :id", id=view.args.get("id", ""))
    if found is None:
        return missing()
    about: tuple[tuple[Label, str], ...] = (
        (Word("verdict"), found["kind"]),
        (Word("clause"), found["clause_number"]),
        (Word("moderator"), found["moderator"]),
        (Word("taken"), found["taken"]),
        (Word("note"), found["note"]),
        (Word("code"), view.code("decision", found["id"])),
    )
    if found["kind"] == "suspend":
        until = date.fromisoformat(found["taken"]) + timedelta(days=found["days"])
        about = (*about, (Word("days"), str(found["days"])), (Word("until"), until.isoformat()))
    links = [Link(found["handle"], "member", {"id": found["member"]})]
    if found["post"]:
        links.append(Link(found["about"], "post", {"id": found["post"]}))
    return Page(found["number"], (Facts(about), Section(Word("concerns"), tuple(links))))


def _sanction(view: View, word: str, operation: str, *fields: Field) -> Page:
    found = view.world.get("member", view.args.get("id", ""))
    if found is None:
        return missing()
    form = Form(
        Word(operation),
        (clauses(view), *fields, Field("note", Word("note"), "long")),
        operation=operation,
        hidden={"member": found["id"]},
    )
    concerns = Section(Word("concerns"), (Link(found["handle"], "member", {"id": found["id"]}),))
    return Page(Word(word), (concerns, form))


def warn(view: View) -> Page:
    return _sanction(view, "warn_member", "warn")


def suspend(view: View) -> Page:
    days = Field("days", Word("days"), "number", "", required=True)
    return _sanction(view, "suspend_member", "suspend", days)


def rules(view: View) -> Page:
    found = view.world.rows("SELECT * FROM rule ORDER BY title")
    rows = tuple(Row(Link(row["title"], "rule", {"id": row["id"]})) for row in found)
    return Page(Word("rules"), (Items((Word("rule"),), rows),))


def rule(view: View) -> Page:
    found = view.world.get("rule", view.args.get("id", ""))
    if found is None:
        return missing()
    parts = view.world.rows("SELECT * FROM clause WHERE rule = :id ORDER BY number", id=found["id"])
    rows = tuple(
        Row(part["number"], (part["body"], str(part["days"]) if part["days"] else "-"))
        for part in parts
    )
    return Page(found["title"], (Items(tuple(map(Word, ("clause", "body", "days"))), rows),))


def appeals(view: View) -> Page:
    asked = asked_for(view, "status")
    found = view.world.rows(
        "SELECT a.*, d.number AS about FROM appeal a JOIN decision d ON d.id = a.decision "
        "WHERE instr(lower(a.number), lower(:words)) AND :status IN ('', a.status) "
        "ORDER BY a.filed DESC, a.id",
        **asked,
    )
    rows = [
        Row(Link(row["number"], "appeal", {"id": row["id"]}), (row["filed"], row["status"]))
        for row in found
    ]
    status = chosen("status", "status", asked["status"], ("pending", *OUTCOMES))
    columns = (Word("appeal"), Word("filed"), Word("status"))
    listed = listing(view, "appeals", columns, rows)
    return Page(Word("appeals"), (find("appeals", view, status), *listed))


def appeal(view: View) -> Page:
    found = view.world.get("appeal", view.args.get("id", ""))
    if found is None:
        return missing()
    against = view.world.row("decision", found["decision"])
    about = (
        (Word("filed"), found["filed"]),
        (Word("status"), found["status"]),
        (Word("reply"), found["reply"] or "-"),
    )
    link = Link(against["number"], "decision", {"id": against["id"]})
    blocks: tuple[Block, ...] = (Text(found["plea"]), Facts(about))
    blocks = (*blocks, Section(Word("against"), (link,)))
    if found["status"] == "pending":
        fields = (
            Field("outcome", Word("outcome"), "choice", "", tuple(Option(o, o) for o in OUTCOMES)),
            Field("reply", Word("your_reply"), "long"),
        )
        hidden = {"appeal": found["id"]}
        blocks = (*blocks, Form(Word("settle"), fields, operation="settle", hidden=hidden))
    return Page(found["number"], blocks)
