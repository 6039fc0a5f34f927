"""The desk's pages about members: decisions, sanctions, house rules, appeals."""

from __future__ import annotations

import sqlite3
from datetime import date, timedelta

from trajudge.environments.apps import details as ui
from trajudge.environments.apps import lists
from trajudge.environments.apps.moderation.operations import OUTCOMES
from trajudge.environments.model import page as parts
from trajudge.environments.model.page import Page, Word
from trajudge.environments.model.site import missing
from trajudge.environments.model.spec import PageContext

DECISIONS = """SELECT d.*, coalesce(c.number, '-') AS clause_number, m.handle,
    coalesce(p.number, '') AS about FROM decision d JOIN member m ON m.id = d.member
    LEFT JOIN clause c ON c.id = d.clause LEFT JOIN post p ON p.id = d.post"""


def clauses(view: PageContext, *first: parts.Option) -> parts.Field:
    """Return the choice of a clause of the house rules."""
    records = view.state.rows("SELECT * FROM clause ORDER BY number")
    options = (*first, *(parts.Option(row["id"], row["number"]) for row in records))
    return ui.control("clause", "choice", "", options)


def decisions(view: PageContext, key: str) -> parts.ItemList:
    """Return what was decided about a post or a member."""
    records = view.state.rows(
        DECISIONS + " WHERE :key IN (d.post, d.member) ORDER BY d.number", key=key
    )
    rows = lists.opens_rows(records, "decision", "number", "kind clause_number moderator taken")
    return parts.ItemList(lists.headings("decision verdict clause moderator taken"), rows)


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
    about = {"verdict": record["kind"], "clause": record["clause_number"]}
    about |= {name: record[name] for name in ("moderator", "taken", "note")}
    about["code"] = view.code("decision", record["id"])
    if record["kind"] == "suspend":
        until = date.fromisoformat(record["taken"]) + timedelta(days=record["days"])
        about |= {"days": str(record["days"]), "until": until.isoformat()}
    links = [parts.Link(record["handle"], "member", {"id": record["member"]})]
    if record["post"]:
        links.append(parts.Link(record["about"], "post", {"id": record["post"]}))
    return Page(record["number"], (ui.facts(**about), ui.section_of("concerns", *links)))


def _sanction(view: PageContext, word: str, operation: str, *fields: parts.Field) -> Page:
    controls = (clauses(view), *fields, ui.control("note", "long"))
    shown = {"column": "handle", "section": "concerns"}
    return ui.form_about(view, "member", word, operation, *controls, **shown)


def warn(view: PageContext) -> Page:
    return _sanction(view, "warn_member", "warn")


def suspend(view: PageContext) -> Page:
    days = ui.control("days", "number", "", required=True)
    return _sanction(view, "suspend_member", "suspend", days)


def _clauses_of(view: PageContext, rule: sqlite3.Row) -> list[sqlite3.Row]:
    sql = "SELECT * FROM clause WHERE rule = :id ORDER BY number"
    return view.state.rows(sql, id=rule["id"])


def rules(view: PageContext) -> Page:
    nodes = []
    for row in view.state.rows("SELECT * FROM rule ORDER BY title"):
        below = tuple(parts.TreeViewItem(part["number"]) for part in _clauses_of(view, row))
        nodes.append(parts.TreeViewItem(ui.link_to(row, "rule", "title"), below))
    return Page(Word("rules"), (parts.TreeView(Word("rule"), tuple(nodes)),))


@ui.detail("rule", under="rules")
def rule(view: PageContext, record: sqlite3.Row) -> Page:
    rows = tuple(
        parts.ListRow(part["number"], (part["body"], str(part["days"] or "-")))
        for part in _clauses_of(view, record)
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
        fields = (ui.pick("outcome", OUTCOMES), parts.Field("reply", Word("your_reply"), "long"))
        blocks = (*blocks, ui.action_form("settle", "settle", *fields, appeal=record["id"]))
    return Page(record["number"], blocks)


PAGES = ui.named_pages(member, decision, warn, suspend, rules, rule, appeal)
