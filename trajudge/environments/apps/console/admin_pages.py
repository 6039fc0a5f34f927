"""The console's pages about alerts, people, keys, invoices and maintenance."""

from __future__ import annotations

import sqlite3

from trajudge.environments.apps import details as ui
from trajudge.environments.apps import lists
from trajudge.environments.apps.console.schema import GROUNDS, PRIORITIES, ROLES, TEAMS
from trajudge.environments.model import page as parts
from trajudge.environments.model.binding import money
from trajudge.environments.model.page import Page, Word
from trajudge.environments.model.spec import PageContext


@ui.detail("alert", under="alerts")
def alert(view: PageContext, record: sqlite3.Row) -> Page:
    shown = ("severity", "raised", "status", "assignee", "priority", "note")
    about = tuple((Word(name), record[name] or "-") for name in shown)
    blocks: tuple[parts.Block, ...] = (
        parts.Paragraph(record["body"]),
        parts.DefinitionList(about),
        ui.row_section(view, record, "service"),
    )
    if record["status"] != "resolved":
        people = view.state.rows("SELECT * FROM member ORDER BY name")
        who, priority = ui.pick_row("assignee", people), ui.pick("priority", PRIORITIES)
        fields = (who, priority, ui.control("note", "long"))
        blocks = (*blocks, ui.action_form("assign", "assign", *fields, alert=record["id"]))
    return Page(record["number"], blocks)


@ui.detail("member", under="members")
def member(view: PageContext, record: sqlite3.Row) -> Page:
    held = view.state.rows("SELECT * FROM accesskey WHERE member = :id ORDER BY label",
                           id=record["id"])  # fmt: skip
    rows = lists.opens_rows(held, "key", "label", "scope status")
    about = ui.facts_of(record, "team role")
    fields = (ui.pick("role", ROLES, record["role"]), ui.pick("team", TEAMS, record["team"]))
    form = ui.action_form("set_role", "set-role", *fields, member=record["id"])
    keys_held = ui.section_of(
        "their_keys", parts.ItemList(lists.headings("key scope status"), rows)
    )
    return Page(record["name"], (parts.Paragraph(record["about"]), about, keys_held, form))


@ui.detail("accesskey", under="keys")
def key(view: PageContext, record: sqlite3.Row) -> Page:
    code = view.code("accesskey", record["id"])
    about = ui.facts_of(record, "scope expires status ground", code=code)
    blocks: tuple[parts.Block, ...] = (about, ui.row_section(view, record, "member"))
    if record["status"] == "active":
        ground = ui.pick("ground", GROUNDS)
        blocks = (*blocks, ui.action_form("revoke", "revoke", ground, key=record["id"]))
    return Page(record["label"], blocks)


@ui.detail("invoice", under="invoices")
def invoice(view: PageContext, record: sqlite3.Row) -> Page:
    about = ui.facts(
        issued=record["issued"], amount=money(record["amount"]), status=record["status"]
    )
    return Page(record["number"], (about, ui.row_section(view, record, "service")))


@ui.detail("window", under="windows")
def window(view: PageContext, record: sqlite3.Row) -> Page:
    about = ui.facts_of(record, "starts hours reason", code=view.code("window", record["id"]))
    return Page(record["number"], (about, ui.row_section(view, record, "service")))


def plan(view: PageContext) -> Page:
    records = view.state.rows("SELECT * FROM service ORDER BY name")
    fields = (
        ui.pick_row("service", records),
        ui.control("starts", "date", required=True),
        ui.control("hours", "number", required=True),
        ui.control("reason", required=True),
    )
    return Page(Word("plan_window"), (ui.action_form("schedule", "schedule", *fields),))


def preferences(view: PageContext) -> Page:
    return ui.settings_page(view, "preferences", "digest")


PAGES = ui.named_pages(alert, member, key, invoice, window, plan, preferences)
