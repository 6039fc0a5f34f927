"""Words of whole texts: what judges reasoned, and trajectories' goals and answers (SQLite's FTS5).

Reasoning is read a part at a time, each in a transaction of its own: lines that are appended
meanwhile are shown at once, and what a kill cuts off goes on where it was.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from pydantic import ValidationError

from trajudge.eval.data.index.lines import decode_fields
from trajudge.eval.data.index.opened_file import OpenedFile
from trajudge.trajectories.util.errors import UserError

DONE = "said"
"""The name in ``meta`` of how many judgments were read."""
PART = 1_000
"""Judgments of one transaction."""
LONGEST = 50_000
"""Characters of a text that are looked through."""


def match_of(text: str) -> str:
    """Make the expression that finds the words of ``text`` after each other, the last of which may
    go on."""
    return '"' + text.replace("\0", " ").replace('"', '""') + '" *'


def words_read(connection: sqlite3.Connection) -> tuple[int, int]:
    """Return of how many judgments the reasoning was read, and how many there are."""
    row = connection.execute(
        "select coalesce((select value from meta where name = ?), 0), "
        "(select coalesce(max(id), -1) + 1 from judgment)",
        (DONE,),
    ).fetchone()
    return int(row[0]), int(row[1])


def read_words(connection: sqlite3.Connection, journal: Path) -> bool:
    """Read the reasoning of the next ``PART`` judgments; tell whether there was any left. Raises
    UserError where the file cannot be read."""
    first, count = words_read(connection)
    if first >= count:
        return False
    file, end = OpenedFile(journal), min(first + PART, count)
    lines = connection.execute(
        "select id, offset, length from judgment where id >= ? and id < ?", (first, end)
    ).fetchall()
    for number, offset, length in lines:
        try:
            judgment = decode_fields(file.line(offset, length))
        except ValidationError as error:
            raise UserError(f"{journal}: was changed while it was read: read it again") from error
        text = _plain(f"{judgment.reasoning} {judgment.detail}")
        connection.execute("insert into said (rowid, reasoning) values (?, ?)", (number, text))
    connection.execute("insert or replace into meta values (?, ?)", (DONE, str(end)))
    return True


def put_told(connection: sqlite3.Connection, trajectory: int, goal: str, answer: str) -> None:
    """Note a trajectory's goal and answer, once."""
    texts = _plain(goal), _plain(answer)
    connection.execute(
        "insert into told (rowid, goal, answer) values (?, ?, ?)", (trajectory, *texts)
    )


def forget_words(connection: sqlite3.Connection) -> None:
    """Empty both."""
    for table in ("said", "told"):
        connection.execute(f"insert into {table} ({table}) values ('delete-all')")  # noqa: S608 - our own names


def _plain(text: str) -> str:
    """Cut a text; a lone surrogate, which SQLite cannot hold, is replaced."""
    return text[:LONGEST].encode("utf-8", "replace").decode()
