"""The console's pages about services and what they run on; ``admin_pages`` has the others."""

from __future__ import annotations

import sqlite3

from trajudge.environments.apps import details as ui
from trajudge.environments.apps import lists
from trajudge.environments.apps.console import admin_pages
from trajudge.environments.apps.console.schema import BILLINGS, DAYS, STRATEGIES
from trajudge.environments.apps.reading import lists_of
from trajudge.environments.model import page as parts
from trajudge.environments.model.binding import money
from trajudge.environments.model.page import Page, Word
from trajudge.environments.model.spec import PageContext


def home(view: PageContext) -> Page:
    return ui.front_page(
        "Basalt Cloud",
        "Everything that runs, and who may touch it.",
        ui.facts(member=view.state.row("account", "me")["name"]),
        lists.search_form("services", ""),
    )


@ui.detail("service", under="services")
def service(view: PageContext, record: sqlite3.Row) -> Page:
    here = {"id": record["id"]}
    machines = view.state.rows("SELECT * FROM machine WHERE service = :id ORDER BY name", **here)
    rows = lists.opens_rows(machines, "machine", "name", "size cost state", cost=money)
    about = ui.facts_of(
        record, "region version quota billing ticket", code=view.code("service", record["id"])
    )
    silence = Word("unsilence" if record["silenced"] else "silence")
    blocks: tuple[parts.Block, ...] = (
        about,
        ui.row_section(view, record, "member", "owner"),
        parts.Link(Word("deploy_service"), "deploy", here),
        parts.Link(Word("change_quota"), "quota", here),
        _chart(view, record, "load", "load by day of the week (%)"),
        _chart(view, record, "requests", "requests by day of the week (thousands)"),
        ui.section_of(
            "its_machines", parts.ItemList(lists.headings("machine size cost state"), rows)
        ),
        ui.action_form(silence, "silence", service=record["id"]),
    )
    return Page(record["name"], blocks)


def _chart(view: PageContext, record: sqlite3.Row, kind: str, title: str) -> parts.Chart:
    drawn = view.state.rows(
        "SELECT day, amount FROM load WHERE service = :id AND kind = :kind",
        id=record["id"],
        kind=kind,
    )
    amounts = {row["day"]: row["amount"] for row in drawn}
    return parts.Chart(
        f"{record['name']}: {title}", "bars", DAYS, tuple(amounts[day] for day in DAYS)
    )


@ui.form_page("service", "deploy_service", "deploy")
def deploy(_: PageContext) -> tuple[parts.Field, ...]:
    return (
        ui.control("version", required=True),
        ui.pick("strategy", STRATEGIES),
        ui.control("note", "long"),
    )


@ui.form_page("service", "change_quota", "set_quota")
def quota(_: PageContext) -> tuple[parts.Field, ...]:
    return (
        ui.control("quota", "number", required=True),
        ui.pick("billing", BILLINGS),
        ui.control("ticket", required=True),
    )


@ui.detail("machine", under="machines")
def machine(view: PageContext, record: sqlite3.Row) -> Page:
    code = view.code("machine", record["id"])
    cost, state = money(record["cost"]), record["state"]
    about = ui.facts(size=record["size"], cost=cost, state=state, code=code)
    blocks: tuple[parts.Block, ...] = (about, ui.row_section(view, record, "service"))
    if record["state"] in ("stopped", "draining"):
        hidden = {"machine": record["id"]}
        blocks = (*blocks, ui.action_form("retire", "retire", **hidden))
    return Page(record["name"], blocks)


@ui.detail("deployment", under="deployments")
def deployment(view: PageContext, record: sqlite3.Row) -> Page:
    code = view.code("deployment", record["id"])
    about = ui.facts_of(record, "version deployed author strategy result note", code=code)
    return Page(record["number"], (about, ui.row_section(view, record, "service")))


PAGES = {
    **lists_of(__package__ or ""),
    **ui.named_pages(home, service, deploy, quota, machine, deployment),
    **admin_pages.PAGES,
}
_ENTRIES = "home services machines deployments alerts members keys invoices windows preferences"
NAVIGATION = ui.menu(_ENTRIES)
