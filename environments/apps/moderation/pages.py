"""The moderation desk's pages."""

from __future__ import annotations

import sqlite3

from environments.apps.details import action_form, control, detail, facts, section_of
from environments.apps.lists import asked_for, headings, opens
from environments.apps.moderation import people
from environments.apps.moderation.parts import clauses, decisions
from environments.apps.moderation.schema import ACTIONS, CATEGORIES, SETTLED
from environments.apps.search import chosen, find
from environments.kit.listing import listing
from environments.model.binding import money
from environments.model.page import (
    Block,
    Chart,
    Field,
    Form,
    Items,
    Link,
    Option,
    Page,
    Row,
    Text,
    Word,
)
from environments.model.spec import View

_REPORTS = """SELECT r.*, p.number AS about, m.id AS author, m.handle, f.name AS forum FROM report r
    JOIN post p ON p.id = r.post JOIN member m ON m.id = p.author JOIN forum f ON f.id = p.forum"""
_ASKED = """ WHERE instr(lower(r.number), lower(:words)) AND :category IN ('', r.category)
    AND :status IN ('', r.status) ORDER BY """
_REPORT_SORTS = ("r.filed DESC, r.id", "r.number", "m.handle, r.id")
_POSTS = """SELECT p.*, m.handle, f.name FROM post p JOIN member m ON m.id = p.author
    JOIN forum f ON f.id = p.forum WHERE instr(lower(p.number || ' ' || p.title), lower(:words))
    AND :forum IN ('', f.name) AND :status IN ('', p.status) ORDER BY """
_POST_SORTS = ("p.number DESC", "m.handle, p.id", "p.fee DESC, p.id")


def home(view: View) -> Page:
    me = view.world.row("account", "me")
    return Page(
        "Quayside Commons",
        (
            Text("The moderators' desk. Every decision is logged under your name."),
            facts(moderator=me["name"]),
            section_of("find_post", find("posts", view)),
        ),
    )


def posts(view: View) -> Page:
    asked = asked_for(view, "forum", "status")
    names = (row["name"] for row in view.world.rows("SELECT name FROM forum ORDER BY name"))
    found = view.world.rows(
        _POSTS + _POST_SORTS[view.ui.sort],
        **asked,
    )
    rows = [
        opens(
            row["number"],
            "post",
            row["id"],
            row["title"],
            row["handle"],
            row["name"],
            row["status"],
            money(row["fee"]),
        )
        for row in found
    ]
    form = find(
        "posts",
        view,
        chosen("forum", "forum", asked["forum"], names),
        chosen("status", "status", asked["status"], ("visible", "removed")),
    )
    columns = headings("post title author forum status fee")
    return Page(Word("posts"), (form, *listing(view, "posts", columns, rows)))


@detail("post")
def post(view: View, found: sqlite3.Row) -> Page:
    author = view.world.row("member", found["author"])
    about = facts(
        title=found["title"],
        forum=view.world.row("forum", found["forum"])["name"],
        status=found["status"],
        fee=money(found["fee"]),
    )
    reported = view.world.rows(_REPORTS + " WHERE r.post = :id ORDER BY r.filed", id=found["id"])
    blocks: tuple[Block, ...] = (
        about,
        Text(found["body"]),
        section_of("author", Link(author["handle"], "member", {"id": author["id"]})),
        section_of("reports_on", Items(_REPORT_COLUMNS, tuple(map(_report_row, reported)))),
        section_of("decisions", decisions(view, found["id"])),
    )
    if found["status"] == "visible":
        kinds = tuple(Option(kind, kind) for kind in ("approve", "remove"))
        fields = (
            Field("kind", Word("verdict"), "choice", "", kinds),
            clauses(view, Option("", Word("no_clause"))),
            control("note", "long"),
        )
        hidden = {"post": found["id"]}
        form = action_form("record", "decide", *fields, **hidden)
        blocks = (*blocks, section_of("your_decision", form))
    return Page(found["number"], blocks)


_REPORT_COLUMNS = headings("report category author filed status")


def _report_row(report: sqlite3.Row) -> Row:
    link = Link(report["number"], "report", {"id": report["id"]})
    return Row(link, (report["category"], report["handle"], report["filed"], report["status"]))


def reports(view: View) -> Page:
    asked = asked_for(view, "category", "status")
    found = view.world.rows(_REPORTS + _ASKED + _REPORT_SORTS[view.ui.sort], **asked)
    form = find(
        "reports",
        view,
        chosen("category", "category", asked["category"], CATEGORIES),
        chosen("status", "status", asked["status"], ("open", "closed")),
    )
    rows = [_report_row(row) for row in found]
    return Page(Word("reports"), (form, *listing(view, "reports", _REPORT_COLUMNS, rows)))


@detail(sql=_REPORTS + " WHERE r.id = :id")
def report(view: View, found: sqlite3.Row) -> Page:
    about = facts(
        category=found["category"],
        forum=found["forum"],
        filed=found["filed"],
        status=found["status"],
        note=found["note"],
    )
    of = section_of("reported", Link(found["about"], "post", {"id": found["post"]}))
    return Page(found["number"], (about, of))


def log(view: View) -> Page:
    asked = view.args.get("action", "")
    found = view.world.rows(
        "SELECT * FROM entry WHERE :action IN ('', action) ORDER BY noted DESC, id", action=asked
    )
    rows = [Row(row["noted"], (row["moderator"], row["action"], row["about"])) for row in found]
    action = chosen("action", "action", asked, (*ACTIONS.values(), SETTLED))
    form = Form(Word("search"), (action,), page="log")
    columns = headings("noted moderator action concerns")
    return Page(Word("log"), (form, *listing(view, "log", columns, rows)))


def forums(view: View) -> Page:
    found = view.world.rows("SELECT * FROM forum ORDER BY name")
    rows = tuple(opens(row["name"], "forum", row["id"], row["steward"]) for row in found)
    return Page(Word("forums"), (Items(headings("forum steward"), rows),))


@detail("forum")
def forum(view: View, found: sqlite3.Row) -> Page:
    charts = tuple(
        _chart(view, found, kind, title)
        for kind, title in (
            ("week", "Reports per week, late 2025"),
            ("category", "Reports by category in 2025"),
        )
    )
    word = Word("unlock" if found["locked"] else "lock")
    form = action_form(word, "lock", forum=found["id"])
    about = facts(steward=found["steward"])
    return Page(found["name"], (about, *charts, form))


def _chart(view: View, found: sqlite3.Row, kind: str, title: str) -> Chart:
    counted = view.world.rows(
        "SELECT * FROM tally WHERE forum = :id AND kind = :kind ORDER BY label",
        id=found["id"],
        kind=kind,
    )
    labels = tuple(row["label"] for row in counted)
    return Chart(
        f"{found['name']}: {title}", "bars", labels, tuple(row["amount"] for row in counted)
    )


def preferences(view: View) -> Page:
    me = view.world.row("account", "me")
    alerts = control("alerts", "tick", "on" if me["alerts"] else "")
    form = action_form("save", "alerts", alerts)
    return Page(Word("preferences"), (form,))


PAGES = {
    "home": home,
    "posts": posts,
    "post": post,
    "reports": reports,
    "report": report,
    "members": people.members,
    "member": people.member,
    "decision": people.decision,
    "warn": people.warn,
    "suspend": people.suspend,
    "rules": people.rules,
    "rule": people.rule,
    "appeals": people.appeals,
    "appeal": people.appeal,
    "log": log,
    "forums": forums,
    "forum": forum,
    "preferences": preferences,
}
_ENTRIES = "home reports posts members appeals rules log forums preferences"
NAVIGATION = tuple(Link(Word(name), name) for name in _ENTRIES.split())
