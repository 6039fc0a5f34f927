"""Ledger of batches: one SQLite file beside the cache of replies.

A batch is written down (``intent``) before anything is sent, and a request stands in at most one
open batch, whichever process put it there: a unique index holds that.
"""

from __future__ import annotations

import secrets
import sqlite3
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import orjson

from trajudge.judges.batch.records import BatchLine, BatchRow, OpenLine, PaidLine
from trajudge.judges.engine.cache import connect, explained
from trajudge.util.errors import UserError

VERSION = 1
SCHEMA = """
CREATE TABLE IF NOT EXISTS batches (
    id           TEXT PRIMARY KEY,  -- ours: goes to the provider as metadata
    service      TEXT NOT NULL,     -- openai, azure, anthropic or files
    endpoint     TEXT NOT NULL,     -- as in a request's hash
    model        TEXT NOT NULL,
    run          TEXT NOT NULL,     -- the run's folder
    state        TEXT NOT NULL,     -- intent, submitted, collected or released
    intent_at    REAL NOT NULL,     -- seconds since 1970
    submitted_at REAL,
    ended_at     REAL,
    provider_id  TEXT NOT NULL DEFAULT '',
    input_sha    TEXT NOT NULL,     -- SHA-256 of the file's bytes
    lines        INTEGER NOT NULL,
    tokens       INTEGER NOT NULL,  -- estimated, of prompts and replies
    duplicates   INTEGER NOT NULL DEFAULT 0,
    note         TEXT NOT NULL DEFAULT ''
);
CREATE TABLE IF NOT EXISTS lines (
    batch      TEXT NOT NULL,
    request    BLOB NOT NULL,       -- SHA-256 of the request
    outcome    TEXT NOT NULL,       -- open, done, failed or released
    reserved   REAL NOT NULL,       -- US dollars at most
    paid       REAL NOT NULL DEFAULT 0,
    parameters TEXT NOT NULL,       -- JSON
    detail     TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (batch, request)
) WITHOUT ROWID;
CREATE UNIQUE INDEX IF NOT EXISTS one_open_batch ON lines (request) WHERE outcome = 'open';
"""
UNPRICED = "unknown cost"
_IS_UNPRICED = f"detail LIKE '{UNPRICED}%'"
_COLUMNS = ", ".join(BatchRow._fields)


class LineOutcome(NamedTuple):
    """How a line ended: ``done`` or ``failed``, the dollars that it cost, and why it failed; before
    that UNPRICED where nobody knows what its answer cost: ``paid`` is then what was reserved."""

    request: str
    outcome: str
    paid: float
    detail: str = ""


class LineCounts(NamedTuple):
    """Lines with one outcome: how many, the dollars reserved and paid for them, and how many of
    them cost nobody knows what."""

    lines: int
    reserved: float
    paid: float
    unpriced: int


class Ledger:
    """The file at ``path``, which is created if it is not there. Raises UserError."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = connect(path)
            self._connection.execute("PRAGMA journal_mode = WAL")
            version = self._connection.execute("PRAGMA user_version").fetchone()[0]
            if version > VERSION:
                raise UserError(f"{path} was written by a newer trajudge: update trajudge")
            if not version:
                self._connection.executescript(SCHEMA)
                self._connection.execute(f"PRAGMA user_version = {VERSION}")
        except (sqlite3.Error, OSError) as error:
            raise explained(error, path) from error

    def close(self) -> None:
        self._connection.close()

    def intend(
        self, batch: str, where: tuple[str, str, str, str], lines: Sequence[BatchLine]
    ) -> list[BatchLine]:
        """Write down a batch before it is sent, and return its lines: those that stand in another
        open batch are left out. ``where``: service, endpoint, model and run. No line, no batch."""
        with self._transaction():
            taken = self.open_requests()
            mine = [line for line in lines if line.request not in taken]
            if not mine:
                return []
            self._connection.execute(
                "INSERT INTO batches (id, service, endpoint, model, run, state, intent_at, "
                "input_sha, lines, tokens) VALUES (?, ?, ?, ?, ?, 'intent', ?, ?, ?, ?)",
                (
                    *(batch, *where, time.time(), file_sha(mine)),
                    *(len(mine), sum(line.tokens for line in mine)),
                ),
            )
            self._connection.executemany(
                "INSERT INTO lines (batch, request, outcome, reserved, parameters) "
                "VALUES (?, ?, 'open', ?, ?)",
                [
                    (batch, bytes.fromhex(n.request), n.reserved, orjson.dumps(n.parameters))
                    for n in mine
                ],
            )
        return mine

    def submitted(self, batch: str, provider_id: str) -> None:
        """Note that the provider has the batch, under its own name for it."""
        with self._transaction():
            self._connection.execute(
                "UPDATE batches SET state = 'submitted', provider_id = ?, submitted_at = ? "
                "WHERE id = ? AND state = 'intent'",
                (provider_id, time.time(), batch),
            )

    def release(self, batch: str, note: str) -> None:
        """Note that the provider never took the batch: its lines may be sent again."""
        with self._transaction():
            self._connection.execute(
                "UPDATE batches SET state = 'released', ended_at = ?, note = ? WHERE id = ?",
                (time.time(), note, batch),
            )
            self._connection.execute(
                "UPDATE lines SET outcome = 'released' WHERE batch = ? AND outcome = 'open'",
                (batch,),
            )

    def collected(
        self, batch: str, outcomes: Collection[LineOutcome], duplicates: int, word: str
    ) -> None:
        """Note how every line ended; those that ``outcomes`` lacks have failed. To be called when
        their replies are in the cache."""
        rows = [(kind, paid, told, batch, bytes.fromhex(r)) for r, kind, paid, told in outcomes]
        with self._transaction():
            self._connection.executemany(
                "UPDATE lines SET outcome = ?, paid = ?, detail = ? WHERE batch = ? "
                "AND request = ? AND outcome = 'open'",
                rows,
            )
            self._connection.execute(
                "UPDATE lines SET outcome = 'failed', detail = 'no result' WHERE batch = ? "
                "AND outcome = 'open'",
                (batch,),
            )
            self._connection.execute(
                "UPDATE batches SET state = 'collected', ended_at = ?, duplicates = ?, note = ? "
                "WHERE id = ?",
                (time.time(), duplicates, word, batch),
            )

    def batches(self, *, only_open: bool = False) -> list[BatchRow]:
        """Return the batches in the order of their intents."""
        where = "WHERE state IN ('intent', 'submitted')" if only_open else ""
        rows = self._connection.execute(
            f"SELECT {_COLUMNS} FROM batches {where} ORDER BY intent_at, id"  # noqa: S608 - constants
        )
        return [BatchRow(*row) for row in rows]

    def provider_ids(self) -> set[str]:
        """Return the provider's names of all batches that are known to be ours."""
        rows = self._connection.execute("SELECT provider_id FROM batches WHERE provider_id != ''")
        return {str(name) for (name,) in rows}

    def open_requests(self) -> dict[str, str]:
        """Return the requests, by hash, that are in an open batch, and in which."""
        rows = self._connection.execute("SELECT request, batch FROM lines WHERE outcome = 'open'")
        return {request.hex(): batch for request, batch in rows}

    def open_lines(self, batch: str) -> dict[str, OpenLine]:
        """Return the open lines of a batch by the request's hash."""
        rows = self._connection.execute(
            "SELECT request, parameters, reserved FROM lines WHERE batch = ? AND outcome = 'open'",
            (batch,),
        )
        return {r.hex(): OpenLine(orjson.loads(given), dollars) for r, given, dollars in rows}

    def reserved(self, run: str) -> dict[str, float]:
        """Return the dollars by request that are reserved for a run's open lines."""
        rows = self._connection.execute(
            "SELECT request, reserved FROM lines JOIN batches ON batches.id = lines.batch "
            "WHERE run = ? AND outcome = 'open'",
            (run,),
        )
        return {request.hex(): dollars for request, dollars in rows}

    def paid(self, run: str) -> Iterator[PaidLine]:
        """Yield the lines of a run that cost something, answered or not, earlier batches first."""
        rows = self._connection.execute(
            f"SELECT batch, request, paid, {_IS_UNPRICED}, outcome = 'done' FROM lines "  # noqa: S608 - constants
            "JOIN batches ON batches.id = lines.batch WHERE run = ? AND outcome != 'open' "
            f"AND (paid > 0 OR {_IS_UNPRICED}) ORDER BY intent_at, batch, request",
            (run,),
        )
        for batch, request, paid, unpriced, answered in rows:
            dollars = None if unpriced and not paid else paid
            yield PaidLine(f"{batch}-{request.hex()}", request.hex(), dollars, bool(answered))

    def counts(self, batch: str) -> Mapping[str, LineCounts]:
        """Count the lines of a batch by outcome."""
        rows = self._connection.execute(
            f"SELECT outcome, COUNT(*), SUM(reserved), SUM(paid * NOT {_IS_UNPRICED}), "  # noqa: S608 - constants
            f"SUM({_IS_UNPRICED}) FROM lines WHERE batch = ? GROUP BY outcome",
            (batch,),
        )
        return {kind: LineCounts(*sums) for kind, *sums in rows}

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            yield
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise explained(error, self.path) from error
        finally:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")


def file_bytes(lines: Sequence[BatchLine]) -> bytes:
    """Return the bytes of a file of these lines."""
    return b"".join(line.content + b"\n" for line in lines)


def file_sha(lines: Sequence[BatchLine]) -> str:
    """Return the SHA-256 (hexadecimal) of a file of these lines."""
    return sha256(file_bytes(lines)).hexdigest()


def new_batch_id() -> str:
    """Draw a name for a batch, which no other process draws."""
    return secrets.token_hex(12)


def ledger_path(cache: Path) -> Path:
    """Return where the ledger beside a cache stands."""
    return cache.with_name(cache.name + ".batches")
