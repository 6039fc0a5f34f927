"""Collection of a batch that ended: replies into the cache, then every line's outcome into the
ledger, in this order: a process that is killed in between collects the same batch again."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from trajudge.judges.adapters.errors import (
    BadReply,
    Blocked,
    CallFailed,
    ContextOverflow,
    Refused,
    Retryable,
)
from trajudge.judges.adapters.provider import ProviderAdapter
from trajudge.judges.batch.ledger import UNPRICED, Ledger, LineOutcome
from trajudge.judges.batch.records import BatchRow, LineResult, OpenLine, RequestRef
from trajudge.judges.batch.service import BatchService
from trajudge.judges.engine.cache import Cache, Outcome
from trajudge.judges.model import Reply, Usage

log = logging.getLogger(__name__)

PUT_AT_ONCE = 1000  # replies in one commit of the cache

LineDollars = Callable[[BatchRow, Usage], float | None]
"""US dollars of a line's usage in its batch, None if the price is not known."""


class LineExpired(Retryable):
    """The batch's window closed before the line's turn, or the batch was cancelled."""


@dataclass
class BatchCollection:
    """What one batch brought: requests that are ``answered`` (an error that is kept among them),
    and why the others failed; None where the same line may be sent again with a parameter less.
    ``overrun`` is the dearest line's cost as a multiple of what was reserved for it, at least 1."""

    answered: set[str] = field(default_factory=set)
    failed: dict[str, CallFailed | None] = field(default_factory=dict)
    duplicates: int = 0
    overrun: float = 1.0


async def collect(
    row: BatchRow,
    service: BatchService,
    *,
    adapter: ProviderAdapter,
    ledger: Ledger,
    cache: Cache,
    dollars: LineDollars,
) -> BatchCollection:
    """Take in the results of a batch. Raises CallFailed if they cannot be downloaded whole: the
    batch then stays open, for what it answered is paid for."""
    results = await service.results(row.provider_id)
    lines = ledger.open_lines(row.id)
    reading = _Reading(row, adapter, lines, dollars)
    for result in sorted(results.lines, key=lambda line: line.content is None):
        reading.add(result)
    answers = {line.request for line in results.lines if line.content is not None}
    if len(answers) < results.expected:
        raise BadReply(
            f"{len(answers)} of {results.expected} answers of batch {row.provider_id} arrived"
        )
    for start in range(0, len(reading.kept), PUT_AT_ONCE):
        some = [*reading.kept.items()][start : start + PUT_AT_ONCE]
        await asyncio.gather(
            *(cache.put(RequestRef(request, row.endpoint, row.model), o) for request, o in some)
        )
    collection = reading.collection
    missing = lines.keys() - collection.answered - collection.failed.keys()
    for request in missing:
        collection.failed[request] = LineExpired("the batch ended without a result for this line")
    ledger.collected(row.id, reading.outcomes(), collection.duplicates, "")
    if reading.unread:
        more = f" (and {len(reading.unread) - 1} more)" if len(reading.unread) > 1 else ""
        sys.stderr.write(f"warning: {reading.unread[0]}{more}: its request is asked again\n")
    return collection


class _Reading:
    """Reads the lines of one batch; an answer wins over an error, the first over later ones.
    ``unread`` says of lines of a file why their requests are asked again."""

    def __init__(
        self,
        row: BatchRow,
        adapter: ProviderAdapter,
        lines: Mapping[str, OpenLine],
        dollars: LineDollars,
    ) -> None:
        self.row, self.adapter, self.lines, self.dollars = row, adapter, lines, dollars
        self.collection = BatchCollection()
        self.kept: dict[str, Outcome] = {}
        self.unread: list[str] = []
        self._paid: dict[str, float] = {}
        self._unpriced: set[str] = set()

    def add(self, result: LineResult) -> None:
        """Take in one line. Lines of requests that are not this batch's are ignored."""
        request = result.request
        if request not in self.lines:
            log.info("batch %s: a result of no request of ours", self.row.id)
            return
        is_first = not (request in self.collection.answered or request in self.collection.failed)
        usage: Usage | None = None
        is_billed = False
        try:
            outcome: Outcome = self._outcome(result)
            usage, is_billed = outcome.usage, isinstance(outcome, Reply)
        except CallFailed as error:
            usage, is_billed = error.usage, isinstance(error, BadReply)
            if is_first:
                self.collection.failed[request] = error
                if result.where and isinstance(error, Retryable):
                    self.unread.append(str(error))
        except _Learned:
            if is_first:
                self.collection.failed[request] = None
        else:
            if is_first:
                self.collection.answered.add(request)
                self.kept[request] = outcome
        # Whatever comes twice is billed twice.
        cost = None if usage is None else self.dollars(self.row, usage)
        reserved = self.lines[request].reserved
        if cost is not None:
            if reserved:
                self.collection.overrun = max(self.collection.overrun, cost / reserved)
        elif is_billed or usage is not None:
            self._unpriced.add(request)
            cost = reserved
        self._paid[request] = self._paid.get(request, 0.0) + (cost or 0.0)
        self.collection.duplicates += not is_first

    def outcomes(self) -> list[LineOutcome]:
        """Return how the lines ended, for the ledger."""
        answered = [self._ended(request, "done") for request in self.collection.answered]
        failed = [
            self._ended(request, "failed", str(error or ""))
            for request, error in self.collection.failed.items()
        ]
        return answered + failed

    def _ended(self, request: str, kind: str, why: str = "") -> LineOutcome:
        price = UNPRICED if request in self._unpriced else ""
        detail = "; ".join(filter(None, [price, why]))
        return LineOutcome(request, kind, self._paid.get(request, 0.0), detail)

    def _outcome(self, result: LineResult) -> Outcome:
        """Return what is kept of a line. Raises CallFailed and _Learned."""
        parameters = self.lines[result.request].parameters
        try:
            if result.content is not None:
                return self.adapter.batch_reply(result.content, parameters, where=result.where)
            if result.expired:
                raise LineExpired("the batch ended before this line's turn")
            failed = self.adapter.batch_failure(
                self.row.model,
                result.status,
                result.error,
                parameters,
                where=result.where,
                unserved=result.unserved,
            )
            if failed is None:
                raise _Learned
            raise failed
        except (Refused, ContextOverflow) as outcome:
            if isinstance(outcome, Blocked):
                raise
            return outcome


class _Learned(Exception):
    """A parameter was refused, and is left out from now on."""
