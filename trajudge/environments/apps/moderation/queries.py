"""Parts that several of the desk's pages have."""

from __future__ import annotations

from trajudge.environments.apps import details as ui
from trajudge.environments.apps.lists import headings, opens_rows
from trajudge.environments.model.page import Field, ItemList, Option
from trajudge.environments.model.spec import PageContext

DECISIONS = """SELECT d.*, coalesce(c.number, '-') AS clause_number, m.handle,
    coalesce(p.number, '') AS about FROM decision d JOIN member m ON m.id = d.member
    LEFT JOIN clause c ON c.id = d.clause LEFT JOIN post p ON p.id = d.post"""


def clauses(view: PageContext, *first: Option) -> Field:
    """Return the choice of a clause of the house rules."""
    records = view.state.rows("SELECT * FROM clause ORDER BY number")
    options = (*first, *(Option(row["id"], row["number"]) for row in records))
    return ui.control("clause", "choice", "", options)


def decisions(view: PageContext, key: str) -> ItemList:
    """Return what was decided about a post or a member."""
    records = view.state.rows(
        DECISIONS + " WHERE :key IN (d.post, d.member) ORDER BY d.number", key=key
    )
    rows = opens_rows(records, "decision", "number", "kind clause_number moderator taken")
    return ItemList(headings("decision verdict clause moderator taken"), rows)
