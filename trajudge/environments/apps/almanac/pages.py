"""The almanac's pages."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from trajudge.environments.apps import details as ui
from trajudge.environments.apps import lists
from trajudge.environments.apps.almanac.schema import (
    COST,
    FORMATS,
    LABELS,
    LEADER,
    MONTHS,
    SHELVES,
    STUDIES,
    YEARS,
)
from trajudge.environments.apps.reading import lists_of
from trajudge.environments.kit.listing import listing
from trajudge.environments.model import page as parts
from trajudge.environments.model.binding import money
from trajudge.environments.model.page import Page, Word
from trajudge.environments.model.spec import PageContext

_SOON = """SELECT e.*, d.name AS place FROM event e JOIN district d ON d.id = e.district
    ORDER BY day LIMIT 4"""
_TABLE = """SELECT d.id, d.name, d.region, f.amount FROM figure f JOIN district d
    ON d.id = f.district WHERE f.indicator = :indicator AND f.year = :year
    AND (:region = '' OR d.region = :region) ORDER BY d."""


def _search(words: str, topic: str) -> parts.Form:
    return lists.search_form("reports", words, lists.narrowed("topic", topic, STUDIES))


def home(view: PageContext) -> Page:
    soon = view.state.rows(_SOON)
    desks = view.state.rows("SELECT * FROM desk ORDER BY name")
    opening = parts.DefinitionList(tuple((row["name"], row["opens"]) for row in desks))
    return Page(
        "Tarn Valley Almanac",
        (
            parts.Paragraph("Figures, studies and dates from every district of the valley."),
            _search("", ""),
            ui.section_of("opening", opening),
            ui.section_of(
                "soon", parts.ItemList(lists.headings(_EVENT_COLUMNS), tuple(map(_event_row, soon)))
            ),
        ),
    )


@ui.detail("district", under="districts")
def district(view: PageContext, record: sqlite3.Row) -> Page:
    key = record["id"]
    visits = view.state.rows("SELECT month, amount FROM visits WHERE district = :key", key=key)
    amounts = dict(tuple(row) for row in visits)
    about = ui.facts_of(record, "region seat area")
    values = tuple(float(amounts[month]) for month in MONTHS)
    return Page(
        record["name"],
        (
            about,
            parts.Chart("Visitors to the reading room, by month", "bars", MONTHS, values),
        ),
    )


def figures(view: PageContext) -> Page:
    criteria = {name: view.args.get(name, "") for name in ("indicator", "year", "region")}
    regions = view.state.rows("SELECT DISTINCT region FROM district ORDER BY region")
    indicators = view.state.rows("SELECT * FROM indicator ORDER BY name")
    form = lists.filter_form(
        "figures",
        ui.pick_row("indicator", indicators, criteria["indicator"]),
        ui.pick("year", YEARS, criteria["year"]),
        lists.narrowed("region", criteria["region"], (row["region"] for row in regions)),
        submit="show",
    )
    chosen = view.state.get("indicator", criteria["indicator"])
    if chosen is None:
        return Page(Word("figures"), (form,))
    order = ("name", "area", "seat DESC")[view.ui.sort]
    rows = [
        lists.opens(row["name"], "district", row["id"], row["region"], f"{row['amount']:,}")
        for row in view.state.rows(_TABLE + order, **criteria)
    ]
    listed = listing(view, "figures", lists.headings("district region amount"), rows)
    return Page(
        Word("figures"), (form, parts.Paragraph(f"{chosen['name']} ({chosen['unit']})"), *listed)
    )


@ui.detail("report", under="reports")
def report(view: PageContext, record: sqlite3.Row) -> Page:
    passages = view.state.rows(
        "SELECT * FROM passage WHERE report = :key ORDER BY place", key=record["id"]
    )
    facts = [(LEADER, record["leader"]), (COST, money(record["cost"]))]
    sections = [
        parts.Section(row["heading"], (parts.Paragraph(_filled(row["body"], facts)),))
        for row in passages
    ]
    fields = (
        ui.pick("shelf", SHELVES),
        ui.control("remark"),
    )
    return Page(
        record["title"],
        (
            ui.facts_of(record, "topic published"),
            *sections,
            parts.Disclosure(
                Word("keep_it"), (ui.action_form("keep", "keep", *fields, report=record["id"]),)
            ),
        ),
    )


def _filled(body: str, facts: Sequence[tuple[str, str]]) -> str:
    """Return a passage with what the report's row says in its places."""
    for place, text in facts:
        body = body.replace(place, text)
    return body


_EVENT_COLUMNS = "event kind day district"


def _event_row(row: sqlite3.Row) -> parts.ListRow:
    link = ui.link_to(row, "event", "title")
    return parts.ListRow(link, (row["kind"], row["day"], row["place"]))


@ui.detail("event", under="events")
def event(view: PageContext, record: sqlite3.Row) -> Page:
    about = ui.facts(
        kind=record["kind"],
        district=view.state.row("district", record["district"])["name"],
        day=record["day"],
        starts=record["starts"],
        ends=record["ends"],
        fee=money(record["fee"]),
        seats=str(record["seats"]),
    )
    wanted = parts.Field(
        "seats", Word("wanted"), "number", "1", required=True, hint="As many as are free."
    )
    book = ui.action_form("book", "book", wanted, event=record["id"])
    return Page(record["title"], (about, parts.Paragraph("Bookings are binding."), book))


@ui.detail("booking", under="events")
def booking(view: PageContext, record: sqlite3.Row) -> Page:
    event = view.state.row("event", record["event"])["title"]
    seats, total = str(record["seats"]), money(record["total"])
    return ui.receipt(view, "booking", record, event=event, seats=seats, total=total)


def _button(word: str, name: str, operation: str, **hidden: str) -> tuple[parts.Form, ...]:
    return (ui.action_form(Word(word, name), operation, **hidden),)


def research(view: PageContext) -> Page:
    kept = view.state.rows(
        "SELECT b.*, r.title FROM bookmark b JOIN report r ON r.id = b.report ORDER BY r.title"
    )
    marked = tuple(
        parts.ListRow(
            parts.Link(row["title"], "report", {"id": row["report"]}),
            (row["shelf"], row["remark"]),
            _button("drop", row["title"], "drop", bookmark=row["id"]),
        )
        for row in kept
    )
    notes = tuple(
        parts.ListRow(
            row["heading"],
            (row["label"], row["body"]),
            _button("delete_note", row["heading"], "delete-note", note=row["id"]),
        )
        for row in view.state.rows("SELECT * FROM note ORDER BY heading, id")
    )
    fields = (
        ui.control("heading", required=True),
        ui.pick("label", LABELS),
        ui.control("body", "long"),
    )
    bookmarks = parts.ItemList(lists.headings("report shelf remark"), marked)
    written = parts.ItemList(lists.headings("heading label body"), notes)
    write = ui.action_form("write_note", "write-note", *fields)
    return Page(
        Word("research"),
        (ui.section_of("bookmarks", bookmarks), ui.section_of("notes", written, write)),
    )


def exports(view: PageContext) -> Page:
    records = view.state.rows("SELECT * FROM export ORDER BY asked DESC, id")
    rows = lists.opens_rows(records, "export", "number", "format asked status")
    indicators = view.state.rows("SELECT * FROM indicator ORDER BY name")
    places = view.state.rows("SELECT * FROM district ORDER BY name")
    fields = (
        ui.pick_row("indicator", indicators),
        ui.pick_row("district", places),
        ui.pick("first", YEARS),
        ui.pick("last", YEARS),
        ui.pick("format", FORMATS),
    )
    columns = lists.headings("export format asked status")
    form = ui.action_form("request", "request-export", *fields)
    return Page(Word("exports"), (*listing(view, "exports", columns, rows), form))


@ui.detail("export", under="exports")
def export(view: PageContext, record: sqlite3.Row) -> Page:
    about = ui.facts(
        indicator=view.state.row("indicator", record["indicator"])["name"],
        district=view.state.row("district", record["district"])["name"],
        first=str(record["first"]),
        last=str(record["last"]),
        format=record["format"],
        asked=record["asked"],
        ready=record["ready"],
        status=record["status"],
        code=view.code("export", record["id"]),
    )
    blocks: tuple[parts.Block, ...] = (about,)
    if record["status"] == "requested":
        blocks = (*blocks, *_button("withdraw", "", "withdraw-export", export=record["id"]))
    return Page(record["number"], blocks)


def account(view: PageContext) -> Page:
    mine = view.state.row("account", "me")
    return ui.settings_page(view, "account", "digest", ui.facts(name=mine["name"]))


PAGES = lists_of(__package__ or "") | ui.named_pages(
    home, district, figures, report, event, booking, research, exports, export, account
)
_ENTRIES = "home districts figures reports glossary events research exports account"
NAVIGATION = ui.menu(_ENTRIES)
