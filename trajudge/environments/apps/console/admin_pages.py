"""The console's pages about alerts, people, keys, invoices and maintenance."""

from __future__ import annotations

import sqlite3

from trajudge.environments.apps import details as ui
from trajudge.environments.apps import lists
from trajudge.environments.apps.console.schema import (
    ALERTED,
    GROUNDS,
    PAID,
    PRIORITIES,
    ROLES,
    SCOPES,
    SEVERITIES,
    TEAMS,
)
from trajudge.environments.model import page as parts
from trajudge.environments.model.binding import money
from trajudge.environments.model.page import Page, Word
from trajudge.environments.model.spec import PageContext

_ALERTS = """SELECT a.*, s.name AS of FROM alert a JOIN service s ON s.id = a.service
    WHERE instr(lower(a.number || ' ' || s.name), lower(:words))
    AND :severity IN ('', a.severity) AND :status IN ('', a.status) ORDER BY """
_ALERT_SORTS = ("a.raised DESC, a.id", "a.number", "s.name, a.id")
_MEMBERS = """SELECT * FROM member WHERE instr(lower(name), lower(:words))
    AND :team IN ('', team) ORDER BY name"""
_KEYS = """SELECT k.*, m.name AS holder FROM accesskey k JOIN member m ON m.id = k.member
    WHERE instr(lower(k.label || ' ' || m.name), lower(:words)) AND :scope IN ('', k.scope)
    AND :status IN ('', k.status) ORDER BY k.label"""
_INVOICES = """SELECT i.*, s.name AS of FROM invoice i JOIN service s ON s.id = i.service
    WHERE instr(lower(i.number || ' ' || s.name), lower(:words)) AND :status IN ('', i.status)
    ORDER BY """
_INVOICE_SORTS = ("i.issued DESC, i.id", "i.number", "s.name, i.id")
_WINDOWS = """SELECT w.*, s.name AS of FROM window w JOIN service s ON s.id = w.service
    WHERE instr(lower(w.number || ' ' || s.name), lower(:words)) ORDER BY w.starts, w.id"""


def _service(view: PageContext, key: str) -> parts.Section:
    name = view.state.row("service", key)["name"]
    return ui.section_of("service", parts.Link(name, "service", {"id": key}))


def alerts(view: PageContext) -> Page:
    criteria = lists.asked_for(view, "severity", "status")
    records = view.state.rows(_ALERTS + _ALERT_SORTS[view.ui.sort], **criteria)
    rows = lists.opens_rows(records, "alert", "number", "of severity raised status")
    filters = (lists.chosen(view, "severity", SEVERITIES), lists.chosen(view, "status", ALERTED))
    return lists.searched(view, "alerts", "alert service severity raised status", rows, filters)


@ui.detail("alert", under="alerts")
def alert(view: PageContext, record: sqlite3.Row) -> Page:
    shown = ("severity", "raised", "status", "assignee", "priority", "note")
    about = tuple((Word(name), record[name] or "-") for name in shown)
    blocks: tuple[parts.Block, ...] = (
        parts.Paragraph(record["body"]),
        parts.DefinitionList(about),
        _service(view, record["service"]),
    )
    if record["status"] != "resolved":
        people = view.state.rows("SELECT * FROM member ORDER BY name")
        fields = (
            ui.pick_row("assignee", people),
            ui.pick("priority", PRIORITIES),
            ui.control("note", "long"),
        )
        hidden = {"alert": record["id"]}
        blocks = (*blocks, ui.action_form("assign", "assign", *fields, **hidden))
    return Page(record["number"], blocks)


def members(view: PageContext) -> Page:
    records = view.state.rows(_MEMBERS, **lists.asked_for(view, "team"))
    rows = lists.opens_rows(records, "member", "name", "team role")
    return lists.searched(
        view, "members", "member team role", rows, (lists.chosen(view, "team", TEAMS),)
    )


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


def keys(view: PageContext) -> Page:
    records = view.state.rows(_KEYS, **lists.asked_for(view, "scope", "status"))
    rows = lists.opens_rows(records, "key", "label", "holder scope expires status")
    filters = (
        lists.chosen(view, "scope", SCOPES),
        lists.chosen(view, "status", ("active", "revoked")),
    )
    return lists.searched(view, "keys", "key member scope expires status", rows, filters)


@ui.detail("accesskey", under="keys")
def key(view: PageContext, record: sqlite3.Row) -> Page:
    about = tuple((Word(name), record[name]) for name in ("scope", "expires", "status", "ground"))
    sealed = (Word("code"), view.code("accesskey", record["id"]))
    holder = view.state.row("member", record["member"])
    link = ui.link_to(holder, "member")
    blocks: tuple[parts.Block, ...] = (
        parts.DefinitionList((*about, sealed)),
        ui.section_of("member", link),
    )
    if record["status"] == "active":
        hidden = {"key": record["id"]}
        form = ui.action_form("revoke", "revoke", ui.pick("ground", GROUNDS), **hidden)
        blocks = (*blocks, form)
    return Page(record["label"], blocks)


def invoices(view: PageContext) -> Page:
    criteria = lists.asked_for(view, "status")
    records = view.state.rows(_INVOICES + _INVOICE_SORTS[view.ui.sort], **criteria)
    rows = lists.opens_rows(records, "invoice", "number", "of issued amount status", amount=money)
    filters = (lists.chosen(view, "status", PAID),)
    return lists.searched(view, "invoices", "invoice service issued amount status", rows, filters)


@ui.detail("invoice", under="invoices")
def invoice(view: PageContext, record: sqlite3.Row) -> Page:
    about = ui.facts(
        issued=record["issued"], amount=money(record["amount"]), status=record["status"]
    )
    return Page(record["number"], (about, _service(view, record["service"])))


def windows(view: PageContext) -> Page:
    records = view.state.rows(_WINDOWS, **lists.asked_for(view))
    rows = lists.opens_rows(records, "window", "number", "of starts hours")
    page = lists.searched(view, "windows", "window service starts hours", rows)
    return page._replace(blocks=(parts.Link(Word("plan_window"), "plan"), *page.blocks))


@ui.detail("window", under="windows")
def window(view: PageContext, record: sqlite3.Row) -> Page:
    about = tuple((Word(name), str(record[name])) for name in ("starts", "hours", "reason"))
    sealed = (Word("code"), view.code("window", record["id"]))
    return Page(
        record["number"],
        (parts.DefinitionList((*about, sealed)), _service(view, record["service"])),
    )


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


PAGES = ui.named_pages(
    alerts, alert, members, member, keys, key, invoices, invoice, windows, window, plan, preferences
)
