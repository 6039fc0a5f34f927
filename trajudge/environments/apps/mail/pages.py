"""The pages of a mail box."""

from __future__ import annotations

import sqlite3

from trajudge.environments.apps import details as ui
from trajudge.environments.apps import lists
from trajudge.environments.apps.mail.operations import STATES
from trajudge.environments.apps.mail.schema import FOLDERS, MONTHS
from trajudge.environments.apps.reading import lists_of
from trajudge.environments.apps.submissions import whole
from trajudge.environments.model import page as parts
from trajudge.environments.model.binding import money
from trajudge.environments.model.page import Page, Word
from trajudge.environments.model.spec import PageContext, PageMaker

_SORTS = ("received DESC, id", "topic, id", "sender, topic, id")
_FOUND = """SELECT * FROM message WHERE folder = :folder AND (instr(lower(topic), lower(:words))
    OR instr(lower(sender), lower(:words))) ORDER BY """
_ASKED = """SELECT *, state AS bill_state FROM bill WHERE (number = :words OR
    instr(lower(payee), lower(:words))) AND (:bill_state = '' OR state = :bill_state)
    AND owed <= :most * 100 ORDER BY """
_COLUMNS = "topic sender received size"
_PLACES = {month: place for place, month in enumerate(MONTHS)}
DEAREST = 500  # dollars, that no bill goes beyond
_MOVES = {"archive": "archive_mail", "bin": "bin_mail", "inbox": "restore_mail"}


def home(view: PageContext) -> Page:
    rows = view.state.rows(
        "SELECT * FROM message WHERE folder = 'inbox' ORDER BY received DESC, id LIMIT 12"
    )
    mails = parts.ItemList(lists.headings(_COLUMNS), _rows(rows))
    return Page("Larkfield Mail", (lists.search_form("inbox", ""), ui.section_of("latest", mails)))


def _rows(rows: list[sqlite3.Row]) -> lists.OpeningRows:
    return lists.opens_rows(rows, "message", "topic", "sender received size", size="{} kB".format)


def _folder(name: str) -> PageMaker:
    """Make the page of a folder."""

    def page(view: PageContext) -> Page:
        order = _SORTS[view.ui.sort]
        records = view.state.rows(_FOUND + order, folder=name, **lists.asked_for(view))
        return lists.searched(view, name, _COLUMNS, _rows(records))

    return page


@ui.detail("message", under="inbox")
def message(view: PageContext, row: sqlite3.Row) -> Page:
    here = {"message": row["id"]}
    moves = tuple(
        ui.action_form(word, word.replace("_", "-"), **here)
        for folder, word in _MOVES.items()
        if folder != row["folder"]
    )
    write = ui.action_form("answer_mail", "answer-mail", ui.control("reply_text", "long"), **here)
    blocks: tuple[parts.Block, ...] = (
        ui.facts_of(row, "sender received", size=f"{row['size']} kB"),
        parts.Paragraph(row["body"]),
        parts.Disclosure(Word("write_reply"), (write,), drawn="dialog"),
        parts.Menu(Word("move_mail"), moves),
    )
    if row["folder"] == "bin":
        blocks = (*blocks, ui.action_form("delete_mail", "delete-mail", **here))
    return Page(row["topic"], blocks)


@ui.detail("letter", under="own_mails")
def letter(view: PageContext, row: sqlite3.Row) -> Page:
    contact = view.state.row("contact", row["contact"])["name"]
    about = {"topic": row["topic"], "contact": contact, "sent_on": row["sent"]}
    return ui.receipt(view, "letter", row, **about, letter_text=row["body"], attachment=row["file"])


@ui.detail("contact", under="contacts")
def contact(view: PageContext, row: sqlite3.Row) -> Page:
    mails = view.state.rows(
        "SELECT * FROM message WHERE sender = :name ORDER BY received DESC, id", name=row["name"]
    )
    about = ui.facts_of(row, "firm", direct_line=row["line"], known_since=row["since"])
    write = parts.Link(Word("write_letter"), "compose", {"id": row["id"]})
    listed = parts.ItemList(lists.headings(_COLUMNS), _rows(mails), complete=True)
    return Page(row["name"], (about, write, ui.section_of("inbox", listed)))


@ui.form_page("contact", "write_letter", "send_letter")
def compose(view: PageContext) -> tuple[parts.Field, ...]:
    return (
        ui.control("topic", required=True),
        ui.control("letter_text", "long", drawn="rich"),
        ui.control("attachment", "file"),
    )


def bills(view: PageContext) -> Page:
    limit = whole(view.args.get("most", ""), 0, DEAREST)
    most = DEAREST if limit is None else limit
    order = ("pay_by, id", "payee, pay_by, id", "owed DESC, id")[view.ui.sort]
    criteria = {**lists.asked_for(view, "bill_state"), "most": most}
    rows = view.state.rows(_ASKED + order, **criteria)
    listed = lists.opens_rows(rows, "bill", "number", "payee owed pay_by bill_state", owed=money)
    filters = (
        lists.chosen(view, "bill_state", STATES),
        ui.control("most", "number", str(most), drawn="slider", limits=(0, DEAREST)),
    )
    return lists.searched(view, "bills", "bill payee owed pay_by bill_state", listed, filters)


@ui.detail("bill", under="bills")
def bill(view: PageContext, row: sqlite3.Row) -> Page:
    code = view.code("bill", row["id"])
    about = ui.facts_of(
        row, "payee pay_by", owed=money(row["owed"]), bill_state=row["state"], code=code
    )
    pay = ui.action_form("pay", "pay-bill", bill=row["id"])
    return Page(row["number"], (about, pay))


def filters(view: PageContext) -> Page:
    rows = view.state.rows(
        "SELECT f.*, c.name FROM filter f JOIN contact c ON c.id = f.contact ORDER BY c.name"
    )
    listed = [
        lists.opens(row["name"], "contact", row["contact"], row["folder"], row["start"])._replace(
            forms=(
                ui.action_form(
                    Word("remove_filter", row["name"]), "remove-filter", filter=row["id"]
                ),
            )
        )
        for row in rows
    ]
    people = view.state.rows("SELECT * FROM contact ORDER BY name")
    form = ui.action_form(
        "add_filter",
        "add-filter",
        ui.pick_row("contact", people),
        ui.pick("to_folder", FOLDERS[1:]),
        ui.control("from_day", "date"),
    )
    page = lists.table_page("filters", "contact to_folder from_day", listed)
    return page._replace(blocks=(*page.blocks, ui.section_of("mail_filter", form)))


def traffic(view: PageContext) -> Page:
    return Page(
        Word("traffic"),
        (
            _chart(view, "Mail received by month", "received"),
            _chart(view, "Mail sent by month", "sent"),
        ),
    )


def storage(view: PageContext) -> Page:
    return Page(Word("storage"), (_chart(view, "Space in megabytes", "space"),))


def _chart(view: PageContext, title: str, kind: str) -> parts.Chart:
    rows = view.state.rows("SELECT * FROM traffic WHERE kind = :kind", kind=kind)
    order = sorted(rows, key=lambda row: (_PLACES.get(row["label"], 0), row["label"]))
    labels, values = zip(*((row["label"], row["amount"]) for row in order), strict=True)
    return parts.Chart(title, "bars", labels, values)


def mailbox_settings(view: PageContext) -> Page:
    form = ui.action_form(
        "keep_settings", "holiday-reply", ui.tick("holiday_reply", view.state.row("account", "me"))
    )
    return Page(Word("mailbox_settings"), (form,))


PAGES = {
    **lists_of(__package__ or ""),
    **{name: _folder(name) for name in FOLDERS},
    **ui.named_pages(home, message, letter, contact, compose, bills, bill),
    **ui.named_pages(filters, traffic, storage, mailbox_settings),
}
_ENTRIES = "home inbox archive bin own_mails sent_mail contacts bills filters"
NAVIGATION = ui.menu(f"{_ENTRIES} traffic storage mailbox_settings")
