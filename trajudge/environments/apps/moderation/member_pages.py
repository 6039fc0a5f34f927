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


@ui.detail("member", under="members")
def member(view: PageContext, record: sqlite3.Row) -> Page:
    here = {"id": record["id"]}
    written = view.state.rows("SELECT * FROM post WHERE author = :id ORDER BY number", **here)
    rows = lists.opens_rows(written, "post", "number", "title status")
    about = ui.facts_of(record, "joined status", until=record["until"] or "-")
    blocks: tuple[parts.Block, ...] = (parts.Paragraph(record["about"]), about)
    if record["status"] == "active":
        blocks = (*blocks, parts.Link(Word("suspend_member"), "suspend", here))
    items = parts.ItemList(lists.headings("post title status"), rows)
    return Page(
        record["handle"],
        (
            *blocks,
            parts.Link(Word("warn_member"), "warn", here),
            ui.section_of("posts_by", items),
            ui.section_of("decisions", decisions(view, record["id"])),
        ),
    )


def decision(view: PageContext) -> Page:
    record = view.state.one(DECISIONS + " WHERE d.id = :id", id=view.args.get("id", ""))
    if record is None:
        return missing()
    about: tuple[tuple[parts.Label, str], ...] = (
        (Word("verdict"), record["kind"]),
        (Word("clause"), record["clause_number"]),
        (Word("moderator"), record["moderator"]),
        (Word("taken"), record["taken"]),
        (Word("note"), record["note"]),
        (Word("code"), view.code("decision", record["id"])),
    )
    if record["kind"] == "suspend":
        until = date.fromisoformat(record["taken"]) + timedelta(days=record["days"])
        about = (*about, (Word("days"), str(record["days"])), (Word("until"), until.isoformat()))
    links = [parts.Link(record["handle"], "member", {"id": record["member"]})]
    if record["post"]:
        links.append(parts.Link(record["about"], "post", {"id": record["post"]}))
    return Page(
        record["number"], (parts.DefinitionList(about), ui.section_of("concerns", *tuple(links)))
    )


def _sanction(view: PageContext, word: str, operation: str, *fields: parts.Field) -> Page:
    controls = (clauses(view), *fields, ui.control("note", "long"))
    shown = {"column": "handle", "section": "concerns"}
    return ui.form_about(view, "member", word, operation, *controls, **shown)


def warn(view: PageContext) -> Page:
    return _sanction(view, "warn_member", "warn")


def suspend(view: PageContext) -> Page:
    days = ui.control("days", "number", "", required=True)
    return _sanction(view, "suspend_member", "suspend", days)


def rules(view: PageContext) -> Page:
    nodes = []
    for row in view.state.rows("SELECT * FROM rule ORDER BY title"):
        numbers = view.state.rows(
            "SELECT number FROM clause WHERE rule = :id ORDER BY number", id=row["id"]
        )
        below = tuple(parts.TreeViewItem(part["number"]) for part in numbers)
        nodes.append(parts.TreeViewItem(ui.link_to(row, "rule", "title"), below))
    return Page(Word("rules"), (parts.TreeView(Word("rule"), tuple(nodes)),))


@ui.detail("rule", under="rules")
def rule(view: PageContext, record: sqlite3.Row) -> Page:
    clauses = view.state.rows(
        "SELECT * FROM clause WHERE rule = :id ORDER BY number", id=record["id"]
    )
    rows = tuple(
        parts.ListRow(part["number"], (part["body"], str(part["days"]) if part["days"] else "-"))
        for part in clauses
    )
    return Page(record["title"], (parts.ItemList(lists.headings("clause body days"), rows),))


@ui.detail("appeal", under="appeals")
def appeal(view: PageContext, record: sqlite3.Row) -> Page:
    against = view.state.row("decision", record["decision"])
    about = ui.facts_of(record, "filed status", reply=record["reply"] or "-")
    link = ui.link_to(against, "decision", "number")
    blocks: tuple[parts.Block, ...] = (parts.Paragraph(record["plea"]), about)
    blocks = (*blocks, ui.section_of("against", link))
    if record["status"] == "pending":
        fields = (
            ui.pick("outcome", OUTCOMES),
            parts.Field("reply", Word("your_reply"), "long"),
        )
        hidden = {"appeal": record["id"]}
        blocks = (*blocks, ui.action_form("settle", "settle", *fields, **hidden))
    return Page(record["number"], blocks)


PAGES = ui.named_pages(member, decision, warn, suspend, rules, rule, appeal)
