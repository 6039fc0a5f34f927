"""The toolbox's pages."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from environments.apps.details import action_form, control, detail, facts, pick, section_of
from environments.apps.lists import headings, opens
from environments.apps.toolbox.schema import BAGS, COUNTINGS, DAYS
from environments.apps.toolbox.tools import TOOLS
from environments.kit.listing import listing
from environments.model.binding import money
from environments.model.page import (
    Block,
    Chart,
    Facts,
    Field,
    Form,
    Link,
    Notice,
    Option,
    Page,
    Row,
    Text,
    Word,
)
from environments.model.spec import View

_LENDERS = ("SELECT * FROM lender ORDER BY name", "SELECT * FROM lender ORDER BY longest, name")
_PAINTS = ("SELECT * FROM paint ORDER BY name", "SELECT * FROM paint ORDER BY price, name")
_JOBS = ("SELECT * FROM job ORDER BY made DESC", "SELECT * FROM job ORDER BY name, id")
_MEASURES = ("length", "width", "height", "openings")


def _options(names: Iterable[str]) -> tuple[Option, ...]:
    return tuple(Option(name, name) for name in names)


def _reckoner(view: View, tool: str, fields: tuple[Field, ...]) -> tuple[Block, ...]:
    """A tool: its form as it was filled in, and what came out with the ways to keep it."""
    asked = tuple(field._replace(value=view.args.get(field.name, "")) for field in fields)
    form = Form(Word("reckon"), asked, page=tool)
    if not any(field.value for field in asked):
        return (form,)
    outcome = TOOLS[tool](view.world, view.args)
    if outcome is None:
        return (Notice("The tool cannot reckon with these inputs.", error=True), form)
    hidden = {**outcome.inputs, "tool": tool}
    shown = Facts(tuple((Word(key), value) for key, value in outcome.rows))
    result = control("result_name", required=True)
    job = control("job_name", required=True)
    keep = action_form("save_result", "save-result", result, **hidden)
    again = action_form("save_job", "save-job", job, **hidden)
    return (form, section_of("outcome", shown, keep, again))


def home(view: View) -> Page:
    benches = view.world.rows("SELECT * FROM bench ORDER BY name")
    taken = Facts(tuple((row["name"], row["taken"]) for row in benches))
    return Page(
        "The Reckoner",
        (
            Text("Small tools for people who build, paint, pack and pay."),
            section_of("taken", taken),
        ),
    )


def converter(view: View) -> Page:
    units = view.world.rows("SELECT name FROM unit ORDER BY measures, name")
    names = _options(row["name"] for row in units)
    fields = (
        control("amount"),
        control("source", "choice", "", names),
        control("target", "choice", "", names),
    )
    return Page(Word("converter"), _reckoner(view, "converter", fields))


def _percent(rate: int) -> str:
    return f"{rate // 100}.{rate % 100:02} %"


def loan(view: View) -> Page:
    found = view.world.rows(_LENDERS[view.ui.sort])
    rows = [
        opens(
            row["name"],
            "lender",
            row["id"],
            _percent(row["rate"]),
            money(row["fee"]),
            f"{row['longest']} years",
        )
        for row in found
    ]
    fields = (
        Field("amount", Word("principal")),
        control("rate"),
        control("years", "number"),
    )
    columns = headings("lender lends_at fee longest")
    listed = section_of("lenders", *listing(view, "loan", columns, rows))
    return Page(Word("loan"), (*_reckoner(view, "loan", fields), listed))


@detail("lender")
def lender(view: View, found: sqlite3.Row) -> Page:
    about = facts(
        lends_at=_percent(found["rate"]),
        fee=money(found["fee"]),
        longest=f"{found['longest']} years",
    )
    fields = (
        control("principal", required=True),
        Field("term", Word("years"), "number", required=True),
    )
    form = action_form("enquire", "enquire", *fields, lender=found["id"])
    return Page(found["name"], (about, Text("An enquiry is binding for 30 days."), form))


@detail("enquiry")
def enquiry(view: View, found: sqlite3.Row) -> Page:
    about = facts(
        lender=view.world.row("lender", found["lender"])["name"],
        principal=money(found["principal"]),
        years=str(found["years"]),
        code=view.code("enquiry", found["id"]),
    )
    return Page(Word("enquiry"), (about,))


def dates(view: View) -> Page:
    fields = (
        control("start", "date"),
        control("days", "number"),
        pick("counting", COUNTINGS),
    )
    return Page(Word("dates"), _reckoner(view, "dates", fields))


def estimator(view: View) -> Page:
    found = view.world.rows(_PAINTS[view.ui.sort])
    rows = [
        opens(
            row["name"],
            "paint",
            row["id"],
            f"{row['tin']} l",
            money(row["price"]),
            f"{row['drying']} min",
        )
        for row in found
    ]
    fields = (
        *(Field(name, Word(name), "number") for name in _MEASURES),
        control("coats", "number"),
        pick("paint", (row["name"] for row in found)),
    )
    columns = headings("colour tin price drying")
    listed = section_of("paints", *listing(view, "estimator", columns, rows))
    return Page(Word("estimator"), (*_reckoner(view, "estimator", fields), listed))


@detail("paint")
def paint(view: View, found: sqlite3.Row) -> Page:
    about = facts(
        covers=f"{found['covers']} m²",
        tin=f"{found['tin']} l",
        price=money(found["price"]),
        drying=f"{found['drying']} min",
    )
    tins = Field("tins", Word("wanted"), "number", required=True)
    form = action_form("order", "order", tins, paint=found["id"])
    return Page(found["name"], (about, form))


@detail("purchase")
def purchase(view: View, found: sqlite3.Row) -> Page:
    about = facts(
        paint=view.world.row("paint", found["paint"])["name"],
        tins=str(found["tins"]),
        cost=money(found["total"]),
        code=view.code("purchase", found["id"]),
    )
    return Page(Word("purchase"), (about,))


def rooms(view: View) -> Page:
    found = view.world.rows("SELECT * FROM room ORDER BY name")
    rows = [opens(row["name"], "room", row["id"]) for row in found]
    fields = (
        Field("name", Word("room_name"), required=True),
        *(Field(name, Word(name), "number", required=True) for name in _MEASURES),
    )
    form = action_form("record", "record-room", *fields)
    return Page(Word("rooms"), (*listing(view, "rooms", (Word("room"),), rows), form))


@detail("room")
def room(view: View, found: sqlite3.Row) -> Page:
    about = Facts(tuple((Word(name), str(found[name])) for name in _MEASURES))
    logged = view.world.rows("SELECT * FROM humidity WHERE room = :key", key=found["id"])
    if not logged:
        return Page(found["name"], (about,))
    amounts = {row["day"]: float(row["amount"]) for row in logged}
    values = tuple(amounts[day] for day in DAYS)
    chart = Chart("Humidity last week, in per cent", "line", DAYS, values)
    return Page(found["name"], (about, chart))


def packing(view: View) -> Page:
    found = view.world.rows("SELECT * FROM list ORDER BY leaves")
    rows = [opens(row["name"], "list", row["id"], row["leaves"]) for row in found]
    return Page(Word("packing"), listing(view, "packing", headings("trip leaves"), rows))


@detail("list")
def packed(view: View, found: sqlite3.Row) -> Page:
    bag = view.args.get("bag", "")
    things = view.world.rows(
        "SELECT * FROM thing WHERE list = :key AND (:bag = '' OR bag = :bag) ORDER BY name",
        key=found["id"],
        bag=bag,
    )
    rows = [
        Row(row["name"], (row["bag"], str(row["grams"]), str(row["count"]), row["remark"]))
        for row in things
    ]
    bags = (Option("", Word("any")), *_options(BAGS))
    field = control("bag", "choice", bag, bags)
    form = Form(Word("search"), (field,), page="list", hidden={"id": found["id"]})
    columns = headings("thing bag grams count remark")
    return Page(found["name"], (form, *listing(view, "list", columns, rows)))


def _saved(view: View, table: str, page: str, sql: str) -> Page:
    rows = [
        opens(row["name"], table, row["id"], row["tool"], row["made"])
        for row in view.world.rows(sql)
    ]
    return Page(Word(page), listing(view, page, (Word(table), Word("tool"), Word("made")), rows))


def jobs(view: View) -> Page:
    return _saved(view, "job", "jobs", _JOBS[view.ui.sort])


@detail("job")
def job(view: View, found: sqlite3.Row) -> Page:
    about = facts(
        tool=found["tool"],
        inputs=found["inputs"],
        made=found["made"],
        remark=found["remark"],
        code=view.code("job", found["id"]),
    )
    hidden = {"job": found["id"]}
    name = control("new_name", "text", found["name"], required=True)
    return Page(
        found["name"],
        (
            about,
            action_form("run", "run-job", **hidden),
            action_form("rename", "rename-job", name, **hidden),
            action_form("delete_job", "delete-job", **hidden),
        ),
    )


def history(view: View) -> Page:
    return _saved(view, "result", "history", "SELECT * FROM result ORDER BY made DESC, id")


@detail("result")
def result(view: View, found: sqlite3.Row) -> Page:
    about = facts(
        tool=found["tool"],
        inputs=found["inputs"],
        outcome=found["outcome"],
        made=found["made"],
        code=view.code("result", found["id"]),
    )
    hidden = {"result": found["id"]}
    delete = action_form("delete_result", "delete-result", **hidden)
    return Page(found["name"], (about, delete))


def account(view: View) -> Page:
    mine = view.world.row("account", "me")
    survey = control("survey", "tick", "on" if mine["survey"] else "")
    form = action_form("save", "survey", survey)
    return Page(Word("account"), (facts(member=mine["name"]), form))


PAGES = {"list": packed} | {
    page.__name__: page
    for page in (
        home, converter, loan, lender, enquiry, dates, estimator, paint, purchase, rooms, room,
        packing, jobs, job, history, result, account,
    )
}  # fmt: skip
NAVIGATION = tuple(
    Link(Word(name), name)
    for name in (
        "home", "converter", "loan", "dates", "estimator", "rooms", "packing", "jobs", "history",
        "account",
    )
)  # fmt: skip
