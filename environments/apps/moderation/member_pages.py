"""The desk's pages about members: decisions, sanctions, house rules, appeals."""

from __future__ import annotations

import sqlite3
from datetime import date, timedelta

from trajudge.environments.apps import details as ui
from trajudge.environments.apps import lists
from trajudge.environments.apps.moderation.operations import OUTCOMES
from trajudge.environments.apps.moderation.queries import DECISIONS, clauses, decisions
from trajudge.environments.model import page as parts
from trajudge.environments.model.page import Page, Word
from trajudge.environments.model.site import missing
from trajudge.environments.model.spec import PageContext

_MEMBERS = """SELECT * FROM member WHERE instr(lower(handle), lower(:words))
    AND :status IN ('', status) ORDER BY """
_MEMBER_SORTS = ("handle", "joined DESC, id", "id")


def members(view: PageContext) -> Page:
    asked = lists.asked_for(view, "status")
    found = view.state.rows(_MEMBERS + _MEMBER_SORTS[view.ui.sort], **asked)
    rows = [lists.opens_row(row, "member", "handle", "joined status until") for row in found]
    status = lists.chosen(view, "status", ("active", "suspended"))
    return lists.searched(view, "members", "member joined status until", rows, (status,))


@ui.detail("member")
def member(view: PageContext, found: sqlite3.Row) -> Page:
    here = {"id": found["id"]}
    written = view.state.rows("SELECT * FROM post WHERE author = :id ORDER BY number", **here)
    rows = tuple(lists.opens_row(row, "post", "number", "title status") for row in written)
    about = ui.facts_of(found, "joined status", until=found["until"] or "-")
    blocks: tuple[parts.Block, ...] = (parts.Paragraph(found["about"]), about)
    if found["status"] == "active":
        blocks = (*blocks, parts.Link(Word("suspend_member"), "suspend", here))
    items = parts.ItemList(lists.headings("post title status"), rows)
    return Page(
        found["handle"],
        (
            *blocks,
            parts.Link(Word("warn_member"), "warn", here),
            ui.section_of("posts_by", items),
            ui.section_of("decisions", decisions(view, found["id"])),
        ),
    )


def decision(view: PageContext) -> Page:
    found = view.state.one(DECISIONS + " WHERE d.id = :id", id=view.args.get("id", ""))
    if found is None:
        return missing()
    about: tuple[tuple[parts.Label, str], ...] = (
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
    links = [parts.Link(found["handle"], "member", {"id": found["member"]})]
    if found["post"]:
        links.append(parts.Link(found["about"], "post", {"id": found["post"]}))
    return Page(
        found["number"], (parts.DefinitionList(about), ui.section_of("concerns", *tuple(links)))
    )


def _sanction(view: PageContext, word: str, operation: str, *fields: parts.Field) -> Page:
    asked = (clauses(view), *fields, ui.control("note", "long"))
    shown = {"column": "handle", "section": "concerns"}
    return ui.form_about(view, "member", word, operation, *asked, **shown)


def warn(view: PageContext) -> Page:
    return _sanction(view, "warn_member", "warn")


def suspend(view: PageContext) -> Page:
    days = ui.control("days", "number", "", required=True)
    return _sanction(view, "suspend_member", "suspend", days)


def rules(view: PageContext) -> Page:
    found = view.state.rows("SELECT * FROM rule ORDER BY title")
    return lists.index_page("rules", "rule", found, "rule", "title")


@ui.detail("rule")
def rule(view: PageContext, found: sqlite3.Row) -> Page:
    clauses = view.state.rows(
        "SELECT * FROM clause WHERE rule = :id ORDER BY number", id=found["id"]
    )
    rows = tuple(
        parts.ListRow(part["number"], (part["body"], str(part["days"]) if part["days"] else "-"))
        for part in clauses
    )
    return Page(found["title"], (parts.ItemList(lists.headings("clause body days"), rows),))


def appeals(view: PageContext) -> Page:
    asked = lists.asked_for(view, "status")
    found = view.state.rows(
        "SELECT a.*, d.number AS about FROM appeal a JOIN decision d ON d.id = a.decision "
        "WHERE instr(lower(a.number), lower(:words)) AND :status IN ('', a.status) "
        "ORDER BY a.filed DESC, a.id",
        **asked,
    )
    rows = [lists.opens_row(row, "appeal", "number", "filed status") for row in found]
    status = lists.chosen(view, "status", ("pending", *OUTCOMES))
    return lists.searched(view, "appeals", "appeal filed status", rows, (status,))


@ui.detail("appeal")
def appeal(view: PageContext, found: sqlite3.Row) -> Page:
    against = view.state.row("decision", found["decision"])
    about = ui.facts_of(found, "filed status", reply=found["reply"] or "-")
    link = ui.link_to(against, "decision", "number")
    blocks: tuple[parts.Block, ...] = (parts.Paragraph(found["plea"]), about)
    blocks = (*blocks, ui.section_of("against", link))
    if found["status"] == "pending":
        fields = (
            ui.pick("outcome", OUTCOMES),
            parts.Field("reply", Word("your_reply"), "long"),
        )
        hidden = {"appeal": found["id"]}
        blocks = (*blocks, ui.action_form("settle", "settle", *fields, **hidden))
    return Page(found["number"], blocks)
