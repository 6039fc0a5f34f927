"""What the auditors' commands show and write: a table for people, JSON and CSV for programs."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from trajudge.util.files import save_bytes
from trajudge.util.tables import Table, print_tables


def show(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table on standard output; the columns of numbers after those of words stand right,
    and are never cut."""
    listed = [list(row) for row in rows]
    words = [n for n in range(len(columns)) if any(isinstance(row[n], str) for row in listed)]
    cells = [tuple(map(_cell, row)) for row in listed]
    print_tables([Table(title, tuple(columns), cells, names=max(words, default=0) + 1)])


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.1%}"
    return str(value)


def first(values: Sequence[object], most: int = 8) -> str:
    """Return the first few values and how many more there are."""
    listed = ", ".join(map(str, values[:most]))
    return f"{listed} and {len(values) - most} more" if len(values) > most else listed


def text_of(value: object) -> str:
    """Return a text as it is, any other value as JSON."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def brief(value: object, most: int = 60) -> str:
    """Return the text of a value, cut after so many characters."""
    text = text_of(value)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def write_json(path: Path, value: Any) -> None:
    """Write a value as indented JSON. Raises UserError if the file cannot be written."""
    write_text(path, msgspec.json.format(msgspec.json.encode(value)).decode() + "\n")


def write_csv(path: Path, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write rows as CSV with a header. Raises UserError if the file cannot be written."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    write_text(path, text.getvalue())


def write_text(path: Path, text: str) -> None:
    """Write text in UTF-8, with its folders. Raises UserError if the file cannot be written."""
    save_bytes(path, text.encode("utf-8", errors="surrogatepass"))
