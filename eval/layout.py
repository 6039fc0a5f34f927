"""Tables on standard output: through rich on a terminal, aligned text elsewhere."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence

Table = tuple[str, tuple[str, ...], list[tuple[str, ...]]]
"""Title, head, rows."""

_LEFT = re.compile(r"[^\d–$+-]")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def print_tables(tables: Sequence[Table], sentences: Sequence[str]) -> None:
    """All tables, then the sentences. What files say cannot steer the terminal."""
    safe = [
        (title, head, [tuple(map(printable, row)) for row in rows]) for title, head, rows in tables
    ]
    if sys.stdout.isatty():
        _print_rich(safe)
    else:
        sys.stdout.write("\n\n".join(map(_plain, safe)) + "\n\n")
    for sentence in sentences:
        sys.stdout.write(printable(sentence) + "\n")


def printable(text: str) -> str:
    """``text`` without control characters."""
    return _CONTROL.sub("", text)


def _aligned_left(rows: Sequence[tuple[str, ...]], column: int) -> bool:
    return any(_LEFT.match(row[column]) for row in rows if row[column])


def _print_rich(tables: Sequence[Table]) -> None:
    from rich.console import Console  # noqa: PLC0415 - plain output needs none of it
    from rich.table import Table as RichTable  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    console = Console()
    for title, head, rows in tables:
        shown = RichTable(title=title, title_justify="left")
        for column, name in enumerate(head):
            justify = "left" if _aligned_left(rows, column) else "right"
            shown.add_column(name, justify=justify, overflow="fold")  # type: ignore[arg-type]
        for row in rows:
            shown.add_row(*map(Text, row))
        console.print(shown)


def _plain(table: Table) -> str:
    title, head, rows = table
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    left = [_aligned_left(rows, column) for column in range(len(head))]
    lines = [
        "  ".join(
            cell.ljust(width) if to_left else cell.rjust(width)
            for cell, width, to_left in zip(row, widths, left, strict=True)
        ).rstrip()
        for row in (head, *rows)
    ]
    return "\n".join([title, *lines])
