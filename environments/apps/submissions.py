"""Operations of the recurring shapes, and what is read from a submitted form."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date

from environments.model.spec import Call, Done, Operation, Refused


def asks(
    table: str, column: str, question: str, *, unknown: str = "?", field: str = ""
) -> Callable[[Call], str]:
    """Make what a page asks before an operation: ``{}`` stands for the column of the row that
    ``field`` (by default named like the table) holds, or for ``unknown`` where there is none."""

    def confirm(call: Call) -> str:
        row = call.row(table, field)
        return question.format(row[column] if row else unknown)

    return confirm


def preference(column: str, page: str) -> Operation:
    """Switch one of the account's settings as the form's tick says."""

    def run(call: Call) -> Done | Refused:
        call.world.change("account", "me", **{column: int(call.form.get(column) == "on")})
        return Done(page)

    return Operation(run)


def toggle(table: str, column: str) -> Operation:
    """Turn a flag of a row around."""

    def run(call: Call) -> Done | Refused:
        row = call.row(table)
        if row is None:
            return Refused(f"There is no such {table}.")
        call.world.change(table, row["id"], **{column: 1 - row[column]})
        return Done(table, {"id": row["id"]})

    return Operation(run)


def removal(table: str, page: str, field: str = "", *, irreversible: bool = False) -> Operation:
    """Take a row away: the one that ``field`` (by default named like the table) holds."""

    def run(call: Call) -> Done | Refused:
        call.world.remove(table, call.form.get(field or table, ""))
        return Done(page)

    return Operation(run, irreversible=irreversible)


def number_for(prefix: str, key: str, least: int = 10_000) -> str:
    """The number that people see, from an opaque key: ``T-14711``."""
    return f"{prefix}-{least + int(key[:4], 16)}"


def is_date(text: str) -> bool:
    """Whether this is a date, written ``YYYY-MM-DD``."""
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def whole(text: str, low: int, high: int) -> int | None:
    """Read the whole number that was typed, if it lies between both (included)."""
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(high))):
        return None
    return int(text) if low <= int(text) <= high else None
