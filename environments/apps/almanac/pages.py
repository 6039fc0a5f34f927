"""The almanac's pages."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from environments.apps.almanac.schema import FORMATS, KINDS, LABELS, MONTHS, SHELVES, STUDIES, YEARS
from environments.apps.details import action_form, control, detail, facts, pick, section_of
from environments.apps.lists import headings, opens
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
        control("words", "search", words),
        control("topic", "choice", topic, topics),
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
            section_of("opening", opening),
            section_of("soon", Items(_EVENT_COLUMNS, tuple(map(_event_row, soon)))),
        ),
    )


def districts(view: View) -> Page:
    found = view.world.rows(_ALL + _DISTRICTS[view.ui.sort])
    rows = [opens(row["name"], "district", row["id"], row["region"], row["seat"]) for row in found]
    columns = headings("district region seat")
    return Page(Word("districts"), listing(view, "districts", columns, rows))


@detail("district")
def district(view: View, found: sqlite3.Row) -> Page:
    key = found["id"]
    visits = view.world.rows("SELECT month, amount FROM visits WHERE district = :key", key=key)
    amounts = dict(tuple(row) for row in visits)
    about = facts(region=found["region"], seat=found["seat"], area=str(found["area"]))
    values = tuple(float(amounts[month]) for month in MONTHS)
    return Page(
        found["name"],
        (
            about,
            Chart("Visitors to the reading room, by month", "bars", MONTHS, values),
        ),
    )


def figures(view: View) -> Page:
    asked = {name: view.args.get(name, "") for name in ("indicator", "year", "region")}
    regions = view.world.rows("SELECT DISTINCT region FROM district ORDER BY region")
    indicators = view.world.rows("SELECT * FROM indicator ORDER BY name")
    everywhere = (Option("", Word("any")), *_options(row["region"] for row in regions))
    fields = (
        control("indicator", "choice", asked["indicator"], _of_rows(indicators)),
        pick("year", YEARS, asked["year"]),
        control("region", "choice", asked["region"], everywhere),
    )
    form = Form(Word("show"), fields, page="figures")
    chosen = view.world.get("indicator", asked["indicator"])
    if chosen is None:
        return Page(Word("figures"), (form,))
    order = ("name", "area", "seat DESC")[view.ui.sort]
    rows = [
        opens(row["name"], "district", row["id"], row["region"], f"{row['amount']:,}")
        for row in view.world.rows(_TABLE + order, **asked)
    ]
    listed = listing(view, "figures", headings("district region amount"), rows)
    return Page(Word("figures"), (form, Text(f"{chosen['name']} ({chosen['unit']})"), *listed))


def reports(view: View) -> Page:
    words, topic = view.args.get("words", ""), view.args.get("topic", "")
    found = view.world.rows(_FOUND + _REPORTS[view.ui.sort], words=words, topic=topic)
    rows = [
        opens(row["title"], "report", row["id"], row["topic"], row["published"]) for row in found
    ]
    columns = headings("report topic published")
    listed = listing(view, "reports", columns, rows)
    return Page(Word("reports"), (_search(words, topic), *listed))


@detail("report")
def report(view: View, found: sqlite3.Row) -> Page:
    passages = view.world.rows(
        "SELECT * FROM passage WHERE report = :key ORDER BY place", key=found["id"]
    )
    fields = (
        pick("shelf", SHELVES),
        control("remark"),
    )
    return Page(
        found["title"],
        (
            facts(topic=found["topic"], published=found["published"]),
            *(Section(row["heading"], (Text(row["body"]),)) for row in passages),
            action_form("keep", "keep", *fields, report=found["id"]),
        ),
    )


def glossary(view: View) -> Page:
    found = view.world.rows("SELECT * FROM term ORDER BY name")
    rows = [Row(row["name"], (row["meaning"],)) for row in found]
    listed = listing(view, "glossary", headings("term meaning"), rows)
    return Page(Word("glossary"), listed)


_EVENT_COLUMNS = headings("event kind day district")


def _event_row(row: sqlite3.Row) -> Row:
    link = Link(row["title"], "event", {"id": row["id"]})
    return Row(link, (row["kind"], row["day"], row["place"]))


def events(view: View) -> Page:
    kind = view.args.get("kind", "")
    rows = [_event_row(row) for row in view.world.rows(_HELD + _EVENTS[view.ui.sort], kind=kind)]
    kinds = (Option("", Word("any")), *_options(KINDS))
    form = Form(Word("search"), (control("kind", "choice", kind, kinds),), page="events")
    return Page(Word("events"), (form, *listing(view, "events", _EVENT_COLUMNS, rows)))


@detail("event")
def event(view: View, found: sqlite3.Row) -> Page:
    about = facts(
        kind=found["kind"],
        district=view.world.row("district", found["district"])["name"],
        day=found["day"],
        starts=found["starts"],
        ends=found["ends"],
        fee=money(found["fee"]),
        seats=str(found["seats"]),
    )
    wanted = Field("seats", Word("wanted"), "number", "1", required=True)
    book = action_form("book", "book", wanted, event=found["id"])
    return Page(found["title"], (about, Text("Bookings are binding."), book))


@detail("booking")
def booking(view: View, found: sqlite3.Row) -> Page:
    about = facts(
        event=view.world.row("event", found["event"])["title"],
        seats=str(found["seats"]),
        total=money(found["total"]),
        code=view.code("booking", found["id"]),
    )
    return Page(Word("booking"), (about,))


def _button(word: str, name: str, operation: str, **hidden: str) -> tuple[Form, ...]:
    return (action_form(Word(word, name), operation, **hidden),)


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
        control("heading", required=True),
        pick("label", LABELS),
        control("body", "long"),
    )
    bookmarks = Items(headings("report shelf remark"), marked)
    written = Items(headings("heading label body"), notes)
    write = action_form("write_note", "write-note", *fields)
    return Page(
        Word("research"),
        (section_of("bookmarks", bookmarks), section_of("notes", written, write)),
    )


def exports(view: View) -> Page:
    found = view.world.rows("SELECT * FROM export ORDER BY asked DESC, id")
    rows = [
        opens(row["number"], "export", row["id"], row["format"], row["asked"], row["status"])
        for row in found
    ]
    indicators = _of_rows(view.world.rows("SELECT * FROM indicator ORDER BY name"))
    places = _of_rows(view.world.rows("SELECT * FROM district ORDER BY name"))
    fields = (
        control("indicator", "choice", "", indicators),
        control("district", "choice", "", places),
        pick("first", YEARS),
        pick("last", YEARS),
        pick("format", FORMATS),
    )
    columns = headings("export format asked status")
    form = action_form("request", "request-export", *fields)
    return Page(Word("exports"), (*listing(view, "exports", columns, rows), form))


@detail("export")
def export(view: View, found: sqlite3.Row) -> Page:
    about = facts(
        indicator=view.world.row("indicator", found["indicator"])["name"],
        district=view.world.row("district", found["district"])["name"],
        first=str(found["first"]),
        last=str(found["last"]),
        format=found["format"],
        asked=found["asked"],
        ready=found["ready"],
        status=found["status"],
        code=view.code("export", found["id"]),
    )
    blocks: tuple[Block, ...] = (about,)
    if found["status"] == "requested":
        blocks = (*blocks, *_button("withdraw", "", "withdraw-export", export=found["id"]))
    return Page(found["number"], blocks)


def account(view: View) -> Page:
    mine = view.world.row("account", "me")
    digest = control("digest", "tick", "on" if mine["digest"] else "")
    form = action_form("save", "digest", digest)
    return Page(Word("account"), (facts(name=mine["name"]), form))


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
