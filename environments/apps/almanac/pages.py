"""The almanac's pages."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from environments.apps.almanac.schema import FORMATS, KINDS, LABELS, MONTHS, SHELVES, STUDIES, YEARS
from environments.kit.listing import listing
from environments.model.binding import money
from environments.model.page import (
    Block,
    Chart,
    Facts,
    Field,
    Form,
    Items,
    Link,
    Option,
    Page,
    Row,
    Section,
    Text,
    Word,
)
from environments.model.site import missing
from environments.model.spec import View

_ALL = "SELECT * FROM district ORDER BY "
_DISTRICTS = ("name", "area DESC", "region, name")
_REPORTS = ("title", "published DESC", "topic, title")
_EVENTS = ("day", "title", "kind, day")
_FOUND = """SELECT * FROM report WHERE instr(lower(title), lower(:words))
    AND (:topic = '' OR topic = :topic) ORDER BY """
_HELD = """SELECT e.*, d.name AS place FROM event e JOIN district d ON d.id = e.district
    WHERE :kind = '' OR kind = :kind ORDER BY """
_TABLE = """SELECT d.id, d.name, d.region, f.amount FROM figure f JOIN district d
    ON d.id = f.district WHERE f.indicator = :indicator AND f.year = :year
    AND (:region = '' OR d.region = :region) ORDER BY d."""


def _options(names: Iterable[str | int]) -> tuple[Option, ...]:
    return tuple(Option(str(name), str(name)) for name in names)


def _of_rows(rows: Iterable[sqlite3.Row]) -> tuple[Option, ...]:
    return tuple(Option(row["id"], row["name"]) for row in rows)


def _search(words: str, topic: str) -> Form:
    topics = (Option("", Word("any")), *_options(STUDIES))
    fields = (
        Field("words", Word("words"), "search", words),
        Field("topic", Word("topic"), "choice", topic, topics),
    )
    return Form(Word("search"), fields, page="reports")


def home(view: View) -> Page:
    soon = view.world.rows(_HELD + "day LIMIT 4", kind="")
    desks = view.world.rows("SELECT * FROM desk ORDER BY name")
    opening = Facts(tuple((row["name"], row["opens"]) for row in desks))
    return Page(
        "Tarn Valley Almanac",
        (
            Text("Figures, studies and dates from every district of the valley."),
            _search("", ""),
            Section(Word("opening"), (opening,)),
            Section(Word("soon"), (Items(_EVENT_COLUMNS, tuple(map(_event_row, soon))),)),
        ),
    )


def districts(view: View) -> Page:
    found = view.world.rows(_ALL + _DISTRICTS[view.ui.sort])
    rows = [
        Row(Link(row["name"], "district", {"id": row["id"]}), (row["region"], row["seat"]))
        for row in found
    ]
    columns = (Word("district"), Word("region"), Word("seat"))
    return Page(Word("districts"), listing(view, "districts", columns, rows))


def district(view: View) -> Page:
    found = view.world.get("district", view.args.get("id", ""))
    if found is None:
        return missing()
    key = found["id"]
    visits = view.world.rows("SELECT month, amount FROM visits WHERE district = :key", key=key)
    amounts = dict(tuple(row) for row in visits)
    about = (
        (Word("region"), found["region"]),
        (Word("seat"), found["seat"]),
        (Word("area"), str(found["area"])),
    )
    values = tuple(float(amounts[month]) for month in MONTHS)
    return Page(
        found["name"],
        (
            Facts(about),
            Chart("Visitors to the reading room, by month", "bars", MONTHS, values),
        ),
    )


def figures(view: View) -> Page:
    asked = {name: view.args.get(name, "") for name in ("indicator", "year", "region")}
    regions = view.world.rows("SELECT DISTINCT region FROM district ORDER BY region")
    indicators = view.world.rows("SELECT * FROM indicator ORDER BY name")
    everywhere = (Option("", Word("any")), *_options(row["region"] for row in regions))
    fields = (
        Field("indicator", Word("indicator"), "choice", asked["indicator"], _of_rows(indicators)),
        Field("year", Word("year"), "choice", asked["year"], _options(YEARS)),
        Field("region", Word("region"), "choice", asked["region"], everywhere),
    )
    form = Form(Word("show"), fields, page="figures")
    chosen = view.world.get("indicator", asked["indicator"])
    if chosen is None:
        return Page(Word("figures"), (form,))
    order = ("name", "area", "seat DESC")[view.ui.sort]
    rows = [
        Row(Link(row["name"], "district", {"id": row["id"]}), (row["region"], f"{row['amount']:,}"))
        for row in view.world.rows(_TABLE + order, **asked)
    ]
    listed = listing(view, "figures", (Word("district"), Word("region"), Word("amount")), rows)
    return Page(Word("figures"), (form, Text(f"{chosen['name']} ({chosen['unit']})"), *listed))


def reports(view: View) -> Page:
    words, topic = view.args.get("words", ""), view.args.get("topic", "")
    found = view.world.rows(_FOUND + _REPORTS[view.ui.sort], words=words, topic=topic)
    rows = [
        Row(Link(row["title"], "report", {"id": row["id"]}), (row["topic"], row["published"]))
        for row in found
    ]
    columns = (Word("report"), Word("topic"), Word("published"))
    listed = listing(view, "reports", columns, rows)
    return Page(Word("reports"), (_search(words, topic), *listed))


def report(view: View) -> Page:
    found = view.world.get("report", view.args.get("id", ""))
    if found is None:
        return missing()
    passages = view.world.rows(
        "SELECT * FROM passage WHERE report = :key ORDER BY place", key=found["id"]
    )
    fields = (
        Field("shelf", Word("shelf"), "choice", "", _options(SHELVES)),
        Field("remark", Word("remark")),
    )
    return Page(
        found["title"],
        (
            Facts(((Word("topic"), found["topic"]), (Word("published"), found["published"]))),
            *(Section(row["heading"], (Text(row["body"]),)) for row in passages),
            Form(Word("keep"), fields, operation="keep", hidden={"report": found["id"]}),
        ),
    )


def glossary(view: View) -> Page:
    found = view.world.rows("SELECT * FROM term ORDER BY name")
    rows = [Row(row["name"], (row["meaning"],)) for row in found]
    listed = listing(view, "glossary", (Word("term"), Word("meaning")), rows)
    return Page(Word("glossary"), listed)


_EVENT_COLUMNS = (Word("event"), Word("kind"), Word("day"), Word("district"))


def _event_row(row: sqlite3.Row) -> Row:
    link = Link(row["title"], "event", {"id": row["id"]})
    return Row(link, (row["kind"], row["day"], row["place"]))


def events(view: View) -> Page:
    kind = view.args.get("kind", "")
    rows = [_event_row(row) for row in view.world.rows(_HELD + _EVENTS[view.ui.sort], kind=kind)]
    kinds = (Option("", Word("any")), *_options(KINDS))
    form = Form(
        Word("search"), (Field("kind", Word("kind"), "choice", kind, kinds),), page="events"
    )
    return Page(Word("events"), (form, *listing(view, "events", _EVENT_COLUMNS, rows)))


def event(view: View) -> Page:
    found = view.world.get("event", view.args.get("id", ""))
    if found is None:
        return missing()
    about = (
        (Word("kind"), found["kind"]),
        (Word("district"), view.world.row("district", found["district"])["name"]),
        (Word("day"), found["day"]),
        (Word("starts"), found["starts"]),
        (Word("ends"), found["ends"]),
        (Word("fee"), money(found["fee"])),
        (Word("seats"), str(found["seats"])),
    )
    wanted = Field("seats", Word("wanted"), "number", "1", required=True)
    book = Form(Word("book"), (wanted,), operation="book", hidden={"event": found["id"]})
    return Page(found["title"], (Facts(about), Text("Bookings are binding."), book))


def booking(view: View) -> Page:
    found = view.world.get("booking", view.args.get("id", ""))
    if found is None:
        return missing()
    about = (
        (Word("event"), view.world.row("event", found["event"])["title"]),
        (Word("seats"), str(found["seats"])),
        (Word("total"), money(found["total"])),
        (Word("code"), view.code("booking", found["id"])),
    )
    return Page(Word("booking"), (Facts(about),))


def _button(word: str, name: str, operation: str, **hidden: str) -> tuple[Form, ...]:
    return (Form(Word(word, name), operation=operation, hidden=hidden),)


def research(view: View) -> Page:
    kept = view.world.rows(
        "SELECT b.*, r.title FROM bookmark b JOIN report r ON r.id = b.report ORDER BY r.title"
    )
    marked = tuple(
        Row(
            Link(row["title"], "report", {"id": row["report"]}),
            (row["shelf"], row["remark"]),
            _button("drop", row["title"], "drop", bookmark=row["id"]),
        )
        for row in kept
    )
    notes = tuple(
        Row(
            row["heading"],
            (row["label"], row["body"]),
            _button("delete_note", row["heading"], "delete-note", note=row["id"]),
        )
        for row in view.world.rows("SELECT * FROM note ORDER BY heading, id")
    )
    fields = (
        Field("heading", Word("heading"), required=True),
        Field("label", Word("label"), "choice", "", _options(LABELS)),
        Field("body", Word("body"), "long"),
    )
    bookmarks = Items((Word("report"), Word("shelf"), Word("remark")), marked)
    written = Items((Word("heading"), Word("label"), Word("body")), notes)
    write = Form(Word("write_note"), fields, operation="write-note")
    return Page(
        Word("research"),
        (Section(Word("bookmarks"), (bookmarks,)), Section(Word("notes"), (written, write))),
    )


def exports(view: View) -> Page:
    found = view.world.rows("SELECT * FROM export ORDER BY asked DESC, id")
    rows = [
        Row(
            Link(row["number"], "export", {"id": row["id"]}),
            (row["format"], row["asked"], row["status"]),
        )
        for row in found
    ]
    indicators = _of_rows(view.world.rows("SELECT * FROM indicator ORDER BY name"))
    places = _of_rows(view.world.rows("SELECT * FROM district ORDER BY name"))
    fields = (
        Field("indicator", Word("indicator"), "choice", "", indicators),
        Field("district", Word("district"), "choice", "", places),
        Field("first", Word("first"), "choice", "", _options(YEARS)),
        Field("last", Word("last"), "choice", "", _options(YEARS)),
        Field("format", Word("format"), "choice", "", _options(FORMATS)),
    )
    columns = (Word("export"), Word("format"), Word("asked"), Word("status"))
    form = Form(Word("request"), fields, operation="request-export")
    return Page(Word("exports"), (*listing(view, "exports", columns, rows), form))


def export(view: View) -> Page:
    found = view.world.get("export", view.args.get("id", ""))
    if found is None:
        return missing()
    about = (
        (Word("indicator"), view.world.row("indicator", found["indicator"])["name"]),
        (Word("district"), view.world.row("district", found["district"])["name"]),
        (Word("first"), str(found["first"])),
        (Word("last"), str(found["last"])),
        (Word("format"), found["format"]),
        (Word("asked"), found["asked"]),
        (Word("ready"), found["ready"]),
        (Word("status"), found["status"]),
        (Word("code"), view.code("export", found["id"])),
    )
    blocks: tuple[Block, ...] = (Facts(about),)
    if found["status"] == "requested":
        blocks = (*blocks, *_button("withdraw", "", "withdraw-export", export=found["id"]))
    return Page(found["number"], blocks)


def account(view: View) -> Page:
    mine = view.world.row("account", "me")
    digest = Field("digest", Word("digest"), "tick", "on" if mine["digest"] else "")
    form = Form(Word("save"), (digest,), operation="digest")
    return Page(Word("account"), (Facts(((Word("name"), mine["name"]),)), form))


PAGES = {
    page.__name__: page
    for page in (
        home, districts, district, figures, reports, report, glossary, events, event, booking,
        research, exports, export, account,
    )
}  # fmt: skip
NAVIGATION = tuple(
    Link(Word(name), name)
    for name in (
        "home", "districts", "figures", "reports", "glossary", "events", "research", "exports",
        "account",
    )
)  # fmt: skip
