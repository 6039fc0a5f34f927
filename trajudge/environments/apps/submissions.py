"""Operations of the recurring shapes, and what is read from a submitted form."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection
from datetime import date

from trajudge.environments.model.spec import FormSubmission, Operation, Rejected, Success
from trajudge.environments.model.state import Value


def confirmed(
    run: Callable[[FormSubmission], Success | Rejected],
    table: str,
    column: str,
    question: str,
    *,
    unknown: str = "?",
    field: str = "",
) -> Operation:
    """Make an operation that is irreversible and asked about first: in ``question``, ``{}`` stands
    for the column of the row that ``field`` (by default named like the table) holds, or for
    ``unknown`` where there is none."""

    def confirm(submission: FormSubmission) -> str:
        row = submission.row(table, field)
        return question.format(row[column] if row else unknown)

    return Operation(run, irreversible=True, confirm=confirm)


def preference(column: str, page: str) -> Operation:
    """Switch one of the account's settings as the form's tick says."""

    def run(submission: FormSubmission) -> Success | Rejected:
        submission.state.change(
            "account", "me", **{column: int(submission.form.get(column) == "on")}
        )
        return Success(page)

    return Operation(run)


def toggle(table: str, column: str) -> Operation:
    """Turn a flag of a row around."""

    def run(submission: FormSubmission) -> Success | Rejected:
        row = submission.row(table)
        if row is None:
            return Rejected(f"There is no such {table}.")
        submission.state.change(table, row["id"], **{column: 1 - row[column]})
        return Success(table, {"id": row["id"]})

    return Operation(run)


def transition(
    table: str,
    before: str,
    after: str,
    refusal: str,
    *,
    field: str = "",
    page: str = "",
    **choices: Collection[str],
) -> Callable[[FormSubmission], Success | Rejected]:
    """Make what takes a row (the one that ``field``, by default named like the table, holds) from
    one status to another, then shows it on ``page`` (by default named like the table too). The
    columns ``choices`` take what the form says, one of their values each."""

    def run(submission: FormSubmission) -> Success | Rejected:
        row = submission.row(table, field)
        chosen = {name: submission.form.get(name, "") for name in choices}
        known = all(value in choices[name] for name, value in chosen.items())
        if row is None or row["status"] != before or not known:
            return Rejected(refusal)
        submission.state.change(table, row["id"], status=after, **chosen)
        return Success(page or table, {"id": row["id"]})

    return run


def removal(table: str, page: str, field: str = "", *, irreversible: bool = False) -> Operation:
    """Take a row away: the one that ``field`` (by default named like the table) holds."""

    def run(submission: FormSubmission) -> Success | Rejected:
        submission.state.remove(table, submission.form.get(field or table, ""))
        return Success(page)

    return Operation(run, irreversible=irreversible)


def added(
    submission: FormSubmission,
    table: str,
    *,
    prefix: str = "",
    least: int = 10_000,
    **values: Value,
) -> Success:
    """Add a row under a new key, with a number of this ``prefix`` if one is given (see
    ``number_for``), and show its page, which is named like the table."""
    key = submission.state.token(table)
    numbered = {"number": number_for(prefix, key, least)} if prefix else {}
    submission.state.add(table, id=key, **numbered, **values)
    return Success(table, {"id": key})


def changed(submission: FormSubmission, table: str, row: sqlite3.Row, **values: Value) -> Success:
    """Change columns of a row, and show its page, which is named like the table."""
    submission.state.change(table, row["id"], **values)
    return Success(table, {"id": row["id"]})


def number_for(prefix: str, key: str, least: int = 10_000) -> str:
    """Return the number that people see, from an opaque key: ``T-14711``."""
    return f"{prefix}-{least + int(key[:4], 16)}"


def is_date(text: str) -> bool:
    """Tell whether this is a date, written ``YYYY-MM-DD``."""
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def whole(text: str, low: int, high: int) -> int | None:
    """Read the whole number that was typed, if it lies between both (included)."""
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(high))):
        return None
    return int(text) if low <= int(text) <= high else None
