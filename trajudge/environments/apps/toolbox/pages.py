"""The toolbox's pages."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from trajudge.environments.apps import details as ui
from trajudge.environments.apps import lists
from trajudge.environments.apps.toolbox.schema import BAGS, COUNTINGS, DAYS
from trajudge.environments.apps.toolbox.tools import TOOLS
from trajudge.environments.kit.listing import listing
from trajudge.environments.model import page as parts
from trajudge.environments.model.binding import money
from trajudge.environments.model.page import Page, Word
from trajudge.environments.model.spec import PageContext

_LENDERS = ("SELECT * FROM lender ORDER BY name", "SELECT * FROM lender ORDER BY longest, name")
_PAINTS = ("SELECT * FROM paint ORDER BY name", "SELECT * FROM paint ORDER BY price, name")
_JOBS = ("SELECT * FROM job ORDER BY made DESC", "SELECT * FROM job ORDER BY name, id")
_MEASURES = ("length", "width", "height", "openings")


def _reckoner(
    view: PageContext, tool: str, fields: tuple[parts.Field, ...]
) -> tuple[parts.Block, ...]:
    """Return a tool: its form as it was filled in, and what came out with the ways to keep it."""
    inputs = tuple(field._replace(value=view.args.get(field.name, "")) for field in fields)
    form = parts.Form(Word("reckon"), inputs, page=tool)
    if not any(field.value for field in inputs):
        return (form,)
    outcome = TOOLS[tool](view.state, view.args)
    if outcome is None:
        return (parts.Notice("The tool cannot reckon with these inputs.", error=True), form)
    hidden = {**outcome.inputs, "tool": tool}
    shown = parts.DefinitionList(tuple((Word(key), value) for key, value in outcome.rows))
    name = ui.control("result_name", required=True)
    job = ui.control("job_name", required=True)
    keep = ui.action_form("save_result", "save-result", name, **hidden)
    again = ui.action_form("save_job", "save-job", job, **hidden)
    return (form, ui.section_of("outcome", shown, keep, again))


def home(view: PageContext) -> Page:
    benches = view.state.rows("SELECT * FROM bench ORDER BY name")
    taken = parts.DefinitionList(tuple((row["name"], row["taken"]) for row in benches))
    welcome = "Small tools for people who build, paint, pack and pay."
    return ui.front_page("The Reckoner", welcome, ui.section_of("taken", taken))


def converter(view: PageContext) -> Page:
    units = view.state.rows("SELECT name FROM unit ORDER BY measures, name")
    names = [row["name"] for row in units]
    fields = (ui.control("amount"), ui.pick("source", names), ui.pick("target", names))
    return Page(Word("converter"), _reckoner(view, "converter", fields))


def _percent(rate: int) -> str:
    return f"{rate // 100}.{rate % 100:02} %"


_LENDER_SHOWN = {"rate": _percent, "fee": money, "longest": "{} years".format}
_PAINT_SHOWN = {"tin": "{} l".format, "price": money, "drying": "{} min".format}


def _tool_page(
    view: PageContext,
    tool: str,
    fields: tuple[parts.Field, ...],
    *,
    title: str,
    columns: str,
    rows: Sequence[parts.ListRow],
) -> Page:
    """Make the page of a tool, with the list that it reckons from below it."""
    listed = ui.section_of(title, *listing(view, tool, lists.headings(columns), rows))
    return Page(Word(tool), (*_reckoner(view, tool, fields), listed))


def loan(view: PageContext) -> Page:
    records = view.state.rows(_LENDERS[view.ui.sort])
    rows = lists.opens_rows(records, "lender", "name", "rate fee longest", **_LENDER_SHOWN)
    fields = (
        parts.Field("amount", Word("principal")),
        ui.control("rate"),
        ui.control("years", "number"),
    )
    columns = "lender lends_at fee longest"
    return _tool_page(view, "loan", fields, title="lenders", columns=columns, rows=rows)


@ui.detail("lender", under="loan")
def lender(view: PageContext, record: sqlite3.Row) -> Page:
    about = ui.facts(
        lends_at=_percent(record["rate"]),
        fee=money(record["fee"]),
        longest=f"{record['longest']} years",
    )
    fields = (
        ui.control("principal", required=True),
        parts.Field("term", Word("years"), "number", required=True),
    )
    form = ui.action_form("enquire", "enquire", *fields, lender=record["id"])
    return Page(
        record["name"], (about, parts.Paragraph("An enquiry is binding for 30 days."), form)
    )


@ui.detail("enquiry", under="loan")
def enquiry(view: PageContext, record: sqlite3.Row) -> Page:
    lender = view.state.row("lender", record["lender"])["name"]
    principal, years = money(record["principal"]), str(record["years"])
    return ui.receipt(view, "enquiry", record, lender=lender, principal=principal, years=years)


def dates(view: PageContext) -> Page:
    fields = (
        ui.control("start", "date"),
        ui.control("days", "number"),
        ui.pick("counting", COUNTINGS),
    )
    return Page(Word("dates"), _reckoner(view, "dates", fields))


def estimator(view: PageContext) -> Page:
    records = view.state.rows(_PAINTS[view.ui.sort])
    rows = lists.opens_rows(records, "paint", "name", "tin price drying", **_PAINT_SHOWN)
    fields = (
        *(parts.Field(name, Word(name), "number") for name in _MEASURES),
        ui.control("coats", "number"),
        ui.pick("paint", (row["name"] for row in records)),
    )
    columns = "colour tin price drying"
    return _tool_page(view, "estimator", fields, title="paints", columns=columns, rows=rows)


@ui.detail("paint", under="estimator")
def paint(view: PageContext, record: sqlite3.Row) -> Page:
    about = ui.facts(
        covers=f"{record['covers']} m²",
        tin=f"{record['tin']} l",
        price=money(record["price"]),
        drying=f"{record['drying']} min",
    )
    tins = parts.Field("tins", Word("wanted"), "number", required=True)
    form = ui.action_form("order", "order", tins, paint=record["id"])
    return Page(record["name"], (about, form))


@ui.detail("purchase", under="estimator")
def purchase(view: PageContext, record: sqlite3.Row) -> Page:
    paint = view.state.row("paint", record["paint"])["name"]
    tins, cost = str(record["tins"]), money(record["total"])
    return ui.receipt(view, "purchase", record, paint=paint, tins=tins, cost=cost)


def rooms(view: PageContext) -> Page:
    records = view.state.rows("SELECT * FROM room ORDER BY name")
    rows = [lists.opens(row["name"], "room", row["id"]) for row in records]
    fields = (
        parts.Field("name", Word("room_name"), required=True),
        *(parts.Field(name, Word(name), "number", required=True) for name in _MEASURES),
    )
    form = ui.action_form("record", "record-room", *fields)
    return Page(Word("rooms"), (*listing(view, "rooms", (Word("room"),), rows), form))


@ui.detail("room", under="rooms")
def room(view: PageContext, record: sqlite3.Row) -> Page:
    about = parts.DefinitionList(tuple((Word(name), str(record[name])) for name in _MEASURES))
    logged = view.state.rows("SELECT * FROM humidity WHERE room = :key", key=record["id"])
    if not logged:
        return Page(record["name"], (about,))
    amounts = {row["day"]: float(row["amount"]) for row in logged}
    values = tuple(amounts[day] for day in DAYS)
    chart = parts.Chart("Humidity last week, in per cent", "line", DAYS, values)
    return Page(record["name"], (about, chart))


def packing(view: PageContext) -> Page:
    records = view.state.rows("SELECT * FROM list ORDER BY leaves")
    rows = lists.opens_rows(records, "list", "name", "leaves")
    return lists.list_page(view, "packing", "trip leaves", rows)


@ui.detail("list", under="packing", also="")
def packed(view: PageContext, record: sqlite3.Row) -> Page:
    bag = view.args.get("bag", "")
    listed = view.state.rows(
        "SELECT * FROM thing WHERE list = :key AND (:bag = '' OR bag = :bag) ORDER BY name",
        key=record["id"],
        bag=bag,
    )
    rows = [
        parts.ListRow(
            row["name"], (row["bag"], str(row["grams"]), str(row["count"]), row["remark"])
        )
        for row in listed
    ]
    form = lists.filter_form("list", lists.narrowed("bag", bag, BAGS), id=record["id"])
    columns = lists.headings("thing bag grams count remark")
    return Page(record["name"], (form, *listing(view, "list", columns, rows)))


def _saved(view: PageContext, table: str, page: str, sql: str) -> Page:
    rows = lists.opens_rows(view.state.rows(sql), table, "name", "tool made")
    return Page(Word(page), listing(view, page, (Word(table), Word("tool"), Word("made")), rows))


def jobs(view: PageContext) -> Page:
    return _saved(view, "job", "jobs", _JOBS[view.ui.sort])


@ui.detail("job", under="jobs")
def job(view: PageContext, record: sqlite3.Row) -> Page:
    about = ui.facts_of(record, "tool inputs made remark", code=view.code("job", record["id"]))
    hidden = {"job": record["id"]}
    name = ui.control("new_name", "text", record["name"], required=True)
    return Page(
        record["name"],
        (
            about,
            ui.action_form("run", "run-job", **hidden),
            parts.Disclosure(
                Word("rename_it"),
                (ui.action_form("rename", "rename-job", name, **hidden),),
                drawn="edit",
            ),
            ui.action_form("delete_job", "delete-job", **hidden),
        ),
    )


def history(view: PageContext) -> Page:
    return _saved(view, "result", "history", "SELECT * FROM result ORDER BY made DESC, id")


@ui.detail("result", under="history")
def result(view: PageContext, record: sqlite3.Row) -> Page:
    about = ui.facts_of(record, "tool inputs outcome made", code=view.code("result", record["id"]))
    hidden = {"result": record["id"]}
    delete = ui.action_form("delete_result", "delete-result", **hidden)
    return Page(record["name"], (about, delete))


def account(view: PageContext) -> Page:
    mine = view.state.row("account", "me")
    return ui.settings_page(view, "account", "survey", ui.facts(member=mine["name"]))


PAGES = {"list": packed} | ui.named_pages(
    home,
    converter,
    loan,
    lender,
    enquiry,
    dates,
    estimator,
    paint,
    purchase,
    rooms,
    room,
    packing,
    jobs,
    job,
    history,
    result,
    account,
)
_ENTRIES = "home converter loan dates estimator rooms packing jobs history account"
NAVIGATION = ui.menu(_ENTRIES)
