"""The pages of a mail box."""

from __future__ import annotations

import sqlite3

from trajudge.environments.apps import details as ui
from trajudge.environments.apps import lists
from trajudge.environments.model.page import Link, Page, Paragraph, Word
from trajudge.environments.model.spec import PageContext


def home(view: PageContext) -> Page:
    rows = view.state.rows(
        "SELECT * FROM message WHERE folder = 'inbox' ORDER BY received DESC, id"
    )
    listed = lists.opens_rows(rows, "message", "topic", "sender received")
    return lists.list_page(view, "inbox", "topic sender received", listed)


def inbox(view: PageContext) -> Page:
    return home(view)


def sent(view: PageContext) -> Page:
    rows = view.state.rows(
        "SELECT r.*, m.topic FROM reply r JOIN message m ON m.id = r.message ORDER BY r.id"
    )
    listed = [lists.opens(row["topic"], "message", row["message"], row["body"]) for row in rows]
    return lists.table_page("sent_mail", "topic reply_text", listed)


@ui.detail("message", under="inbox")
def message(view: PageContext, row: sqlite3.Row) -> Page:
    write = ui.action_form(
        "answer_mail", "answer-mail", ui.control("reply_text", "long"), message=row["id"]
    )
    away = ui.action_form("archive_mail", "archive-mail", message=row["id"])
    about = ui.facts(sender=row["sender"], received=row["received"])
    return Page(row["topic"], (about, Paragraph(row["body"]), write, away))


PAGES = ui.named_pages(home, inbox, sent, message)
NAVIGATION = (Link(Word("inbox"), "inbox"), Link(Word("sent_mail"), "sent"))
