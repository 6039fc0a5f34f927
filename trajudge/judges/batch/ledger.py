"""Ledger of batches: one SQLite file next to the cache of replies.

A batch is written down (``intent``) before anything is sent, and a request stands in at most one
open batch, whichever process put it there: a unique index holds that.
"""

from __future__ import annotations

import secrets
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal

import orjson

from trajudge.judges.engine.cache import connect, explained
from trajudge.judges.models import Price

BatchState = Literal["intent", "submitted", "collected", "released"]
"""``intent``: it may have reached the provider or not; ``submitted``: it has; ``collected``: every
line has its outcome; ``released``: the provider never took it, so its lines may be sent again."""

SCHEMA = """
CREATE TABLE IF NOT EXISTS batches (
    id          TEXT PRIMARY KEY,  -- ours: goes to the provider as metadata
    service     TEXT NOT NULL,     -- openai, azure, anthropic, files or an URL
    endpoint    TEXT NOT NULL,     -- as in a request's hash
    model       TEXT NOT NULL,
    run         TEXT NOT NULL,     -- the run's folder
    price       TEXT NOT NULL,     -- JSON of the price in batches, '' if it is not known
    lines       INTEGER NOT NULL,
    tokens      INTEGER NOT NULL,  -- estimated, of prompts and replies
    state       TEXT NOT NULL,
    intent_at   REAL NOT NULL,     -- seconds since 1970
    provider_id TEXT NOT NULL,
    duplicates  INTEGER NOT NULL,
    note        TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS lines (
    batch      TEXT NOT NULL,
    request    BLOB NOT NULL,                  -- SHA-256 of the request
    outcome    TEXT NOT NULL DEFAULT 'open',   -- open, done, failed or released
    reserved   REAL NOT NULL,                  -- US dollars at most
    paid       REAL NOT NULL DEFAULT 0,        -- of an unpriced line what was reserved
    unpriced   INTEGER NOT NULL DEFAULT 0,     -- whether nobody knows what its answer cost
    parameters TEXT NOT NULL,                  -- JSON
    detail     TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (batch, request)
) WITHOUT ROWID;
CREATE UNIQUE INDEX IF NOT EXISTS one_open_batch ON lines (request) WHERE outcome = 'open';
"""


@dataclass(frozen=True, slots=True)
class BatchLine:
    """One request of a batch: its hash, the line's bytes (without a line break), its parameters as
    they are shown, estimated tokens, and the dollars reserved for it (at batch price)."""

    request: str
    content: bytes
    parameters: dict[str, Any]
    tokens: int
    reserved: float


@dataclass(frozen=True, slots=True)
class BatchRow:
    """A batch as the ledger has it, field by column; ``intent_at`` in seconds since 1970."""

    service: str
    endpoint: str
    model: str
    run: str
    price: str
    id: str = field(default_factory=lambda: secrets.token_hex(12))
    lines: int = 0
    tokens: int = 0
    state: BatchState = "intent"
    intent_at: float = field(default_factory=time.time)
    provider_id: str = ""
    duplicates: int = 0
    note: str = ""

    @property
    def is_open(self) -> bool:
        return self.state in ("intent", "submitted")

    @property
    def prices(self) -> Price | None:
        """What a request costs in this batch, None if it is not known."""
        return Price.model_validate_json(self.price) if self.price else None


_COLUMNS = ", ".join(each.name for each in fields(BatchRow))
_MARKS = ", ".join("?" for _ in fields(BatchRow))


@dataclass(frozen=True, slots=True)
class PaidLine:
    """A line that cost something, ``dollars`` None if its cost is not known and nothing was
    reserved for it; ``attempt`` names it among all lines of a run's batches."""

    attempt: str
    request: str
    dollars: float | None
    is_answered: bool


@dataclass(frozen=True, slots=True)
class LineOutcome:
    """How a line ended: ``done`` or ``failed``, the dollars that it cost, and why it failed. Where
    it ``is_unpriced`` nobody knows its cost: ``paid`` is then what was reserved."""

    request: str
    outcome: Literal["done", "failed"]
    paid: float
    is_unpriced: bool
    detail: str = ""


@dataclass(frozen=True, slots=True)
class LineCounts:
    """Lines with one outcome: how many, the dollars reserved and paid for them, and how many of
    them cost nobody knows what."""

    lines: int
    reserved: float
    paid: float
    unpriced: int


class Ledger:
    """The file at ``path``, which is created if it is not there. Every method raises UserError."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = connect(path)
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.executescript(SCHEMA)
        except (sqlite3.Error, OSError) as error:
            raise explained(error, path) from error

    def close(self) -> None:
        self._connection.close()

    def intend(self, batch: BatchRow, lines: Sequence[BatchLine]) -> list[BatchLine]:
        """Write down a batch before it is sent, and return its lines: those that stand in another
        open batch are left out. No line, no batch."""
        with self._transaction() as connection:
            taken = self.open_requests()
            mine = [line for line in lines if line.request not in taken]
            if not mine:
                return []
            tokens = sum(line.tokens for line in mine)
            row = astuple(replace(batch, lines=len(mine), tokens=tokens))
            connection.execute(
                f"INSERT INTO batches ({_COLUMNS}) VALUES ({_MARKS})",  # noqa: S608 - constants
                row,
            )
            connection.executemany(
                "INSERT INTO lines (batch, request, reserved, parameters) VALUES (?, ?, ?, ?)",
                [
                    (batch.id, bytes.fromhex(n.request), n.reserved, orjson.dumps(n.parameters))
                    for n in mine
                ],
            )
        return mine

    def submitted(self, batch: str, provider_id: str) -> None:
        """Note that the provider has the batch, under its own name for it."""
        with self._transaction() as connection:
            connection.execute(
                "UPDATE batches SET state = 'submitted', provider_id = ? "
                "WHERE id = ? AND state = 'intent'",
                (provider_id, batch),
            )

    def release(self, batch: str, note: str) -> None:
        """Note that the provider never took the batch: its lines may be sent again."""
        with self._transaction():
            self._end(batch, "released", note=note, left="released")

    def collected(self, batch: str, outcomes: Iterable[LineOutcome], duplicates: int) -> None:
        """Note how every line ended; those that ``outcomes`` lacks have failed. To be called when
        their replies are in the cache."""
        rows = [
            (*(o.outcome, o.paid, o.is_unpriced, o.detail), *(batch, bytes.fromhex(o.request)))
            for o in outcomes
        ]
        with self._transaction() as connection:
            connection.executemany(
                "UPDATE lines SET outcome = ?, paid = ?, unpriced = ?, detail = ? "
                "WHERE batch = ? AND request = ? AND outcome = 'open'",
                rows,
            )
            self._end(batch, "collected", duplicates=duplicates, left="failed")

    def _end(
        self, batch: str, state: BatchState, *, note: str = "", duplicates: int = 0, left: str
    ) -> None:
        """End a batch; ``left`` is the outcome of its open lines."""
        self._connection.execute(
            "UPDATE lines SET outcome = ? WHERE batch = ? AND outcome = 'open'", (left, batch)
        )
        self._connection.execute(
            "UPDATE batches SET state = ?, note = ?, duplicates = ? WHERE id = ?",
            (state, note, duplicates, batch),
        )

    def batches(self) -> list[BatchRow]:
        """Return the batches in the order of their intents."""
        rows = self._select(f"SELECT {_COLUMNS} FROM batches ORDER BY intent_at, id")  # noqa: S608 - constants
        return [BatchRow(*row) for row in rows]

    def open_requests(self) -> dict[str, str]:
        """Return the requests, by hash, that are in an open batch, and in which."""
        rows = self._select("SELECT request, batch FROM lines WHERE outcome = 'open'")
        return {request.hex(): batch for request, batch in rows}

    def open_lines(self, batch: str) -> dict[str, tuple[dict[str, Any], float]]:
        """Return, by hash, the parameters that were sent and the dollars that are reserved of the
        lines of a batch whose outcome is not known yet."""
        rows = self._select(
            "SELECT request, parameters, reserved FROM lines WHERE batch = ? AND outcome = 'open'",
            batch,
        )
        return {request.hex(): (orjson.loads(given), dollars) for request, given, dollars in rows}

    def reserved(self, run: str) -> dict[str, float]:
        """Return the dollars by request that are reserved for a run's open lines."""
        rows = self._select(
            "SELECT request, reserved FROM lines JOIN batches ON batches.id = lines.batch "
            "WHERE run = ? AND outcome = 'open'",
            run,
        )
        return {request.hex(): dollars for request, dollars in rows}

    def paid(self, run: str) -> Iterator[PaidLine]:
        """Yield the lines of a run that cost something, answered or not, earlier batches first."""
        rows = self._select(
            "SELECT batch, request, NULLIF(paid, 0), outcome = 'done' FROM lines "
            "JOIN batches ON batches.id = lines.batch WHERE run = ? AND outcome != 'open' "
            "AND (paid > 0 OR unpriced) ORDER BY intent_at, batch, request",
            run,
        )
        for batch, request, dollars, answered in rows:
            yield PaidLine(f"{batch}-{request.hex()}", request.hex(), dollars, bool(answered))

    def counts(self, batch: str) -> dict[str, LineCounts]:
        """Count the lines of a batch by outcome."""
        rows = self._select(
            "SELECT outcome, COUNT(*), SUM(reserved), SUM(paid * NOT unpriced), SUM(unpriced) "
            "FROM lines WHERE batch = ? GROUP BY outcome ORDER BY outcome",
            batch,
        )
        return {outcome: LineCounts(*sums) for outcome, *sums in rows}

    def _select(self, query: str, *values: str) -> list[Any]:
        try:
            return self._connection.execute(query, values).fetchall()
        except sqlite3.Error as error:
            raise explained(error, self.path) from error

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            yield self._connection
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise explained(error, self.path) from error
        finally:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")


def ledger_path(cache: Path) -> Path:
    """Return where the ledger of a cache stands."""
    return cache.with_name(cache.name + ".batches")
