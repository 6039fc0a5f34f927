"""The toolbox's pages."""

from __future__ import annotations

from collections.abc import Iterable

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
    Section,
    Text,
    Word,
)
from environments.model.site import missing
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
    result = Field("result_name", Word("result_name"), required=True)
    job = Field("job_name", Word("job_name"), required=True)
    keep = Form(Word("save_result"), (result,), operation="save-result", hidden=hidden)
    again = Form(Word("save_job"), (job,), operation="save-job", hidden=hidden)
    return (form, Section(Word("outcome"), (shown, keep, again)))


def home(view: View) -> Page:
    benches = view.world.rows("SELECT * FROM bench ORDER BY name")
    taken = Facts(tuple((row["name"], row["taken"]) for row in benches))
    return Page(
        "The Reckoner",
        (
            Text("Small tools for people who build, paint, pack and pay."),
            Section(Word("taken"), (taken,)),
        ),
    )


def converter(view: View) -> Page:
    units = view.world.rows("SELECT name FROM unit ORDER BY measures, name")
    names = _options(row["name"] for row in units)
    fields = (
        Field("amount", Word("amount")),
        Field("source", Word("source"), "choice", "", names),
        Field("target", Word("target"), "choice", "", names),
    )
    return Page(Word("converter"), _reckoner(view, "converter", fields))


def _percent(rate: int) -> str:
    return f"{rate // 100}.{rate % 100:02} %"


def loan(view: View) -> Page:
    found = view.world.rows(_LENDERS[view.ui.sort])
    rows = [
        Row(
            Link(row["name"], "lender", {"id": row["id"]}),
            (_percent(row["rate"]), money(row["fee"]), f"{row['longest']} years"),
        )
        for row in found
    ]
    fields = (
        Field("amount", Word("principal")),
        Field("rate", Word("rate")),
        Field("years", Word("years"), "number"),
    )
    columns = (Word("lender"), Word("lends_at"), Word("fee"), Word("longest"))
    listed = Section(Word("lenders"), listing(view, "loan", columns, rows))
    return Page(Word("loan"), (*_reckoner(view, "loan", fields), listed))


def lender(view: View) -> Page:
    found = view.world.get("lender", view.args.get("id", ""))
    if found is None:
        return missing()
    about = (
        (Word("lends_at"), _percent(found["rate"])),
        (Word("fee"), money(found["fee"])),
        (Word("longest"), f"{found['longest']} years"),
    )
    fields = (
        Field("principal", Word("principal"), required=True),
        Field("term", Word("years"), "number", required=True),
    )
    form = Form(Word("enquire"), fields, operation="enquire", hidden={"lender": found["id"]})
    return Page(found["name"], (Facts(about), Text("An enquiry is binding for 30 days."), form))


def enquiry(view: View) -> Page:
    found = view.world.get("enquiry", view.args.get("id", ""))
    if found is None:
        return missing()
    about = (
        (Word("lender"), view.world.row("lender", found["lender"])["name"]),
        (Word("principal"), money(found["principal"])),
        (Word("years"), str(found["years"])),
        (Word("code"), view.code("enquiry", found["id"])),
    )
    return Page(Word("enquiry"), (Facts(about),))


def dates(view: View) -> Page:
    fields = (
        Field("start", Word("start"), "date"),
        Field("days", Word("days"), "number"),
        Field("counting", Word("counting"), "choice", "", _options(COUNTINGS)),
    )
    return Page(Word("dates"), _reckoner(view, "dates", fields))


def estimator(view: View) -> Page:
    found = view.world.rows(_PAINTS[view.ui.sort])
    rows = [
        Row(
            Link(row["name"], "paint", {"id": row["id"]}),
            (f"{row['tin']} l", money(row["price"]), f"{row['drying']} min"),
        )
        for row in found
    ]
    fields = (
        *(Field(name, Word(name), "number") for name in _MEASURES),
        Field("coats", Word("coats"), "number"),
        Field("paint", Word("paint"), "choice", "", _options(row["name"] for row in found)),
    )
    columns = (Word("colour"), Word("tin"), Word("price"), Word("drying"))
    listed = Section(Word("paints"), listing(view, "estimator", columns, rows))
    return Page(Word("estimator"), (*_reckoner(view, "estimator", fields), listed))


def paint(view: View) -> Page:
    found = view.world.get("paint", view.args.get("id", ""))
    if found is None:
        return missing()
    about = (
        (Word("covers"), f"{found['covers']} m²"),
        (Word("tin"), f"{found['tin']} l"),
        (Word("price"), money(found["price"])),
        (Word("drying"), f"{found['drying']} min"),
    )
    tins = Field("tins", Word("wanted"), "number", required=True)
    form = Form(Word("order"), (tins,), operation="order", hidden={"paint": found["id"]})
    return Page(found["name"], (Facts(about), form))


def purchase(view: View) -> Page:
    found = view.world.get("purchase", view.args.get("id", ""))
    if found is None:
        return missing()
    about = (
        (Word("paint"), view.world.row("paint", found["paint"])["name"]),
        (Word("tins"), str(found["tins"])),
        (Word("cost"), money(found["total"])),
        (Word("code"), view.code("purchase", found["id"])),
    )
    return Page(Word("purchase"), (Facts(about),))


def rooms(view: View) -> Page:
    found = view.world.rows("SELECT * FROM room ORDER BY name")
    rows = [Row(Link(row["name"], "room", {"id": row["id"]})) for row in found]
    fields = (
        Field("name", Word("room_name"), required=True),
        *(Field(name, Word(name), "number", required=True) for name in _MEASURES),
    )
    form = Form(Word("record"), fields, operation="record-room")
    return Page(Word("rooms"), (*listing(view, "rooms", (Word("room"),), rows), form))


def room(view: View) -> Page:
    found = view.world.get("room", view.args.get("id", ""))
    if found is None:
        return missing()
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
    rows = [Row(Link(row["name"], "list", {"id": row["id"]}), (row["leaves"],)) for row in found]
    return Page(Word("packing"), listing(view, "packing", (Word("trip"), Word("leaves")), rows))


def packed(view: View) -> Page:
    found = view.world.get("list", view.args.get("id", ""))
    if found is None:
        return missing()
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
    field = Field("bag", Word("bag"), "choice", bag, bags)
    form = Form(Word("search"), (field,), page="list", hidden={"id": found["id"]})
    columns = (Word("thing"), Word("bag"), Word("grams"), Word("count"), Word("remark"))
    return Page(found["name"], (form, *listing(view, "list", columns, rows)))


def _saved(view: View, table: str, page: str, sql: str) -> Page:
    rows = [
        Row(Link(row["name"], table, {"id": row["id"]}), (row["tool"], row["made"]))
        for row in view.world.rows(sql)
    ]
    return Page(Word(page), listing(view, page, (Word(table), Word("tool"), Word("made")), rows))


def jobs(view: View) -> Page:
    return _saved(view, "job", "jobs", _JOBS[view.ui.sort])


def job(view: View) -> Page:
    found = view.world.get("job", view.args.get("id", ""))
    if found is None:
        return missing()
    about = (
        (Word("tool"), found["tool"]),
        (Word("inputs"), found["inputs"]),
        (Word("made"), found["made"]),
        (Word("remark"), found["remark"]),
        (Word("code"), view.code("job", found["id"])),
    )
    hidden = {"job": found["id"]}
    name = Field("new_name", Word("new_name"), "text", found["name"], required=True)
    return Page(
        found["name"],
        (
            Facts(about),
            Form(Word("run"), operation="run-job", hidden=hidden),
            Form(Word("rename"), (name,), operation="rename-job", hidden=hidden),
            Form(Word("delete_job"), operation="delete-job", hidden=hidden),
        ),
    )


def history(view: View) -> Page:
    return _saved(view, "result", "history", "SELECT * FROM result ORDER BY made DESC, id")


def result(view: View) -> Page:
    found = view.world.get("result", view.args.get("id", ""))
    if found is None:
        return missing()
    about = (
        (Word("tool"), found["tool"]),
        (Word("inputs"), found["inputs"]),
        (Word("outcome"), found["outcome"]),
        (Word("made"), found["made"]),
        (Word("code"), view.code("result", found["id"])),
    )
    hidden = {"result": found["id"]}
    delete = Form(Word("delete_result"), operation="delete-result", hidden=hidden)
    return Page(found["name"], (Facts(about), delete))


def account(view: View) -> Page:
    mine = view.world.row("account", "me")
    survey = Field("survey", Word("survey"), "tick", "on" if mine["survey"] else "")
    form = Form(Word("save"), (survey,), operation="survey")
    return Page(Word("account"), (Facts(((Word("member"), mine["name"]),)), form))


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
