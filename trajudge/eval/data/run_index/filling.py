"""From the lines of ``judgments.jsonl`` to rows of the index."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path

from pydantic import ValidationError

from trajudge.eval.data.index.lines import (
    CallFields,
    JournalLine,
    JudgmentFields,
    bad_line,
    decode_fields,
    whole_lines,
)
from trajudge.eval.data.run_index.schema import ELIDED, HEAD, INDEXES, REPAIRED, VOTES
from trajudge.eval.data.run_index.seconds import CallSeconds
from trajudge.eval.data.run_index.trajectories import KnownTrajectories
from trajudge.eval.rungs import furthest_rung
from trajudge.judges.model import Call, Judgment

_INSERT = f"insert into judgment values ({', '.join('?' * 22)})"  # noqa: S608 - no text of anybody's
_BILLED = attrgetter("input", "cache_read", "cache_write", "output")

Row = tuple[object, ...]


def append_judgments(
    connection: sqlite3.Connection, path: Path, offset: int, seconds: CallSeconds
) -> int:
    """Add the file's lines from ``offset`` on; return where its whole lines end. A last line
    without its newline waits for the rest. Raises UserError for a bad line."""
    first = connection.execute("select coalesce(max(id), -1) + 1 from judgment").fetchone()[0]
    known = KnownTrajectories(connection)
    end = offset

    def rows() -> Iterator[Row]:
        nonlocal end
        for place, line in enumerate(whole_lines(path, offset), start=first):
            yield _row(place, line, _decoded(path, place, line), known, seconds)
            end = line.offset + len(line.content)

    connection.executemany(_INSERT, rows())
    _indexed(connection)
    connection.execute(VOTES, (first,))
    return end


def _indexed(connection: sqlite3.Connection) -> None:
    """Make the indexes inside the transaction, which a script would end."""
    for statement in filter(str.strip, INDEXES.split(";")):
        connection.execute(statement)


def _decoded(path: Path, place: int, line: JournalLine) -> Judgment | JudgmentFields:
    try:
        return decode_fields(line.content)
    except ValidationError as error:
        raise bad_line(path, place + 1, error) from error


def _row(
    place: int,
    line: JournalLine,
    judgment: Judgment | JudgmentFields,
    known: KnownTrajectories,
    seconds: CallSeconds,
) -> Row:
    trajectory = known.of(judgment.key)
    calls = judgment.calls
    flags = (ELIDED if furthest_rung(calls) else 0) | (REPAIRED if judgment.fallback else 0)
    process = judgment.process
    return (
        place,
        0,
        place,
        line.offset,
        len(line.content),
        trajectory.number,
        judgment.judge,
        judgment.sample,
        str(judgment.status),
        judgment.success,
        judgment.side_effect,
        judgment.repetition,
        judgment.optimality,
        process if isinstance(process, bool) else None,
        judgment.score,
        _cost(calls),
        sum(sum(_BILLED(call.usage)) for call in calls if call.usage),
        seconds.take(judgment.key, judgment.sample, calls),
        flags,
        (judgment.reasoning or judgment.detail)[:HEAD],
        trajectory.expert,
        trajectory.rule,
    )


def _cost(calls: tuple[Call | CallFields, ...]) -> float | None:
    """Add up what calls cost; None where the price of one is not known."""
    costs = [call.cost for call in calls]
    known = [cost for cost in costs if cost is not None]
    return sum(known) if len(known) == len(costs) else None
