"""``--max-cost``: the worst case of a call is reserved before it is sent; the ledger of what
attempts cost, over all sessions of a run.
"""

from __future__ import annotations

import os
import secrets
import socket
import sys
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import orjson

from trajudge.judges.adapters.errors import BadReply, CallFailed, Unreachable, causes
from trajudge.judges.model import Request, Usage
from trajudge.util.errors import UserError
from trajudge.util.files import read_regular
from trajudge.util.terminal import count_of


class Payments:
    """Notes attempts as lines of JSON in the file at ``path``, which is created with the first one.
    Every method raises UserError where it cannot be written."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None
        self._session = secrets.token_hex(4)
        self._count = 0

    def sent(self, request_hash: str, worst: float) -> str:
        """Note an attempt that is about to be sent and return its name, for ``settled``."""
        attempt = self._named()
        self.note(attempt, request_hash, worst)
        return attempt

    def paid(self, request_hash: str, cost: float | None) -> None:
        """Note the cost of an attempt that was not noted before it was sent, None if its price is
        not known."""
        self.note(self._named(), request_hash, cost)  # of one that is never settled, this counts

    def note(self, attempt: str, request_hash: str, cost: float | None) -> None:
        """Note the cost of an attempt that others made and name, None if its price is not known."""
        line = {"attempt": attempt, "request": request_hash, "reserved": cost}
        self._write(orjson.dumps(line))

    def settled(self, attempt: str, cost: float) -> None:
        """Note what the attempt cost."""
        self._write(orjson.dumps({"attempt": attempt, "paid": cost}))

    def _named(self) -> str:
        self._count += 1
        return f"{self._session}-{self._count}"

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _write(self, line: bytes) -> None:
        try:
            if self._descriptor is None:
                flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
                self._descriptor = os.open(self.path, flags, 0o644)
            # The line break before it ends what a kill may have left unfinished.
            os.write(self._descriptor, b"\n" + line)
        except OSError as error:
            raise UserError(
                f"{self.path}: cannot be written ({error.strerror}): make room, or the folder "
                "writable, and start the same command again; nothing that was answered is lost"
            ) from error


def read_payments(path: Path) -> dict[str, float]:
    """Read the dollars by request: the cost of its attempts, and the worst case of those never
    settled; without those of unknown price. Empty without the file."""
    return dollars_by_request(read_attempts(path))


def dollars_by_request(attempts: Mapping[str, tuple[str, float | None]]) -> dict[str, float]:
    """Add up the dollars of attempts as ``read_attempts`` returns them, by request; without those
    of unknown price."""
    dollars: dict[str, float] = defaultdict(float)
    for request_hash, cost in attempts.values():
        dollars[request_hash] += cost or 0.0
    return {request_hash: cost for request_hash, cost in dollars.items() if cost}


def read_attempts(path: Path) -> dict[str, tuple[str, float | None]]:
    """Read the request of each attempt, and its dollars as of ``read_payments``; None if its price
    is not known."""
    sent: dict[str, tuple[str, float | None]] = {}
    lines = read_regular(path).split(b"\n") if path.exists() else []
    for line in lines:
        try:
            entry = orjson.loads(line)
            attempt = str(entry["attempt"])
            if "reserved" in entry:
                worst = entry["reserved"]
                sent[attempt] = str(entry["request"]), None if worst is None else float(worst)
            else:
                sent[attempt] = sent[attempt][0], float(entry["paid"])
        except (ValueError, KeyError, TypeError):
            continue  # empty, or torn by a kill before its attempt was sent
    return sent


# Nothing was sent: the connection was never made. By name, for none of these libraries is
# imported before its first use (aiohttp, httpx).
_NO_CONNECTION = {
    "ClientConnectorError",
    "ClientConnectorDNSError",
    "ClientConnectorCertificateError",
    "ClientConnectorSSLError",
    "ConnectionTimeoutError",
    "ConnectError",
    "ConnectTimeout",
}


def may_be_billed(error: BaseException) -> bool:
    """Tell whether the model may have answered although no usage was read.

    True of an answer that is cut or malformed, of silence or a dropped connection after the request
    went out, and of an attempt that was cancelled on its way. A status of 4xx or 5xx is not billed,
    and neither is a connection that was never made.
    """
    if isinstance(error, BadReply):
        return True
    if isinstance(error, Unreachable):
        return not any(_no_connection(cause) for cause in causes(error))
    return not isinstance(error, CallFailed)


def _no_connection(error: BaseException) -> bool:
    if isinstance(error, ConnectionRefusedError | socket.gaierror):
        return True
    return any(kind.__name__ in _NO_CONNECTION for kind in type(error).__mro__)


Estimate = Callable[[Request], Usage]

"""The usage to expect of a request: its prompt's tokens, and an assumed number of output tokens."""


def tokens_of(usage: Usage) -> int:
    """Return the tokens that a rate limit counts: prompt and answer."""
    return usage.input + usage.cache_read + usage.cache_write + usage.output


Price = Callable[[str, Usage], float | None]

"""US dollars for a model's usage; None if the model's price is not known."""


class BudgetSpent(Exception):
    """The next call might pass the limit. Judgments so far are kept, and the run can be resumed."""


@dataclass(eq=False)
class Reservation:
    """Money reserved for one attempt: ``worst`` dollars, of which ``cost`` were spent; it
    ``is_unpriced`` if nobody knows how many, and ``is_presumed`` where the reservation then
    counts."""

    model: str
    worst: float
    cost: float = 0.0
    is_unpriced: bool = False
    is_presumed: bool = False
    attempt: str = ""
    request_hash: str = ""


class Budget:
    """US dollars that a run has spent and may still spend; ``limit`` None: only counted.

    ``spent`` is the cost of earlier sessions of the same run, if the limit is to hold for all, and
    ``payments`` the file in which this session notes its own.
    """

    def __init__(
        self,
        price: Price,
        limit: float | None = None,
        spent: float = 0.0,
        payments: Payments | None = None,
    ) -> None:
        from asyncio import Event  # noqa: PLC0415 - what reads the payments needs none

        self.limit = limit
        self.spent = spent
        self.presumed = 0.0
        self.lost = self.unpriced = 0
        self.waiting = 0
        self._price = price
        self._payments = payments
        self._open: set[Reservation] = set()
        self._tested = set[str]()
        self._correction = 1.0
        self._dearest_overrun = 0.0
        self._settled = Event()
        self._unwritable: UserError | None = None

    def require_price(self, model: str) -> None:
        """Raise UserError if there is a limit and the model's price is not known."""
        if self.limit is not None and self._price(model, Usage(input=1)) is None:
            raise UserError(
                f"the price of {model!r} is not known, so --max-cost {self.limit:g} cannot be "
                "kept: give its price with --prices FILE, or run without --max-cost"
            )

    def cost(self, model: str, usage: Usage | None) -> float | None:
        """Compute US dollars, None if the usage or the price is not known."""
        return None if usage is None else self._price(model, usage)

    @asynccontextmanager
    async def reserve(self, model: str, worst: Usage) -> AsyncIterator[Reservation]:
        """Reserve the worst case of one attempt; ``settle`` or ``presume`` inside.

        Waits while attempts in flight hold what this one needs: most cost less than was reserved
        for them. Raises BudgetSpent if it does not fit even when all of them are settled.
        """
        self.require_price(model)
        reservation = Reservation(model, self._dearest(model, worst))
        await self._admit(reservation)
        try:
            yield reservation
        finally:
            self._close(reservation)

    def sending(self, reservation: Reservation, request_hash: str) -> None:
        """Note the request and, before it goes out, what it may cost where there is a limit. Raises
        UserError."""
        reservation.request_hash = request_hash
        if self._payments is not None and self.limit is not None:
            reservation.attempt = self._payments.sent(request_hash, self._worst(reservation))

    def settle(self, reservation: Reservation, usage: Usage | None) -> None:
        """Count the usage that the attempt's answer reports; without one, what was reserved."""
        self._tested.add(reservation.model)
        cost = self.cost(reservation.model, usage)
        if cost is None:
            reservation.is_unpriced = True
            self.unpriced += 1
            self._presume(reservation)
            return
        reservation.cost += cost
        if reservation.worst and cost > self._worst(reservation):
            self._raise_reservations(reservation, cost)

    def presume(self, reservation: Reservation) -> None:
        """Count what was reserved: no answer was read, yet one may be billed."""
        self.lost += 1
        self._presume(reservation)

    def _presume(self, reservation: Reservation) -> None:
        reservation.is_presumed = True
        reservation.cost += self._worst(reservation)
        self.presumed += self._worst(reservation)

    def _worst(self, reservation: Reservation) -> float:
        """Return the dollars that are reserved for an attempt, after all replies so far."""
        return max(reservation.worst * self._correction, self._dearest_overrun)

    def _raise_reservations(self, reservation: Reservation, cost: float) -> None:
        """Reserve more for all calls that follow, as a reply cost more than was reserved for it;
        say so the first time."""
        if self._correction == 1.0:
            sys.stderr.write(
                f"warning: a reply of {reservation.model} cost ${cost:.4f} where at most "
                f"${reservation.worst:.4f} was reserved: its server ignores --max-tokens, or "
                f"counts more tokens: {cost / reservation.worst:.1f} times as much is reserved for "
                "every call that follows\n"
            )
        self._correction = max(self._correction, cost / reservation.worst)
        self._dearest_overrun = cost

    async def _admit(self, reservation: Reservation) -> None:
        if self._unwritable is not None:
            raise self._unwritable
        while (lacks_room := self._lacks_room(reservation)) or self._awaits_test(reservation):
            if lacks_room and (not self._open or self._never_fits(reservation)):
                raise BudgetSpent(self._sentence(reservation))
            self._settled.clear()
            self.waiting += 1
            try:
                await self._settled.wait()
            finally:
                self.waiting -= 1
        self._open.add(reservation)

    def _awaits_test(self, reservation: Reservation) -> bool:
        """Tell whether the first reply of the model is still to show what a call costs."""
        if self.limit is None or reservation.model in self._tested:
            return False
        return any(one.model == reservation.model for one in self._open)

    def _dearest(self, model: str, worst: Usage) -> float:
        """Compute the dollars of the worst case: some providers charge more for a prompt they
        cache."""
        if self.limit is None:
            return 0.0
        as_cached = worst.model_copy(update={"input": 0, "cache_write": worst.input})
        return max(self._price(model, worst) or 0.0, self._price(model, as_cached) or 0.0)

    def _lacks_room(self, reservation: Reservation) -> bool:
        """Tell whether it passes the limit, with all that is in flight."""
        if self.limit is None:
            return False
        reserved = sum(map(self._worst, self._open)) + self._worst(reservation)
        return self.spent + reserved > self.limit

    def _never_fits(self, reservation: Reservation) -> bool:
        """Tell whether it would not fit even if everything in flight were free."""
        return self.spent + self._worst(reservation) > (self.limit or 0.0)

    def _sentence(self, reservation: Reservation) -> str:
        limit = self.limit or 0.0
        # Calls that are under way are finished, and paid.
        at_most, at_least = ("at most ", "at least ") if self._open else ("", "")
        counted = f" (${self.presumed:.4f} of it {self._presumed_for()})" if self.presumed else ""
        return (
            f"the next call may cost up to ${self._worst(reservation):.4f} and "
            f"{at_most}${max(0.0, limit - self.spent):.4f} is left of --max-cost {limit:g}, "
            f"{at_least}${self.spent:.4f} is spent{counted}: raise --max-cost or lower --max-tokens"
        )

    def _presumed_for(self) -> str:
        """Say what the reservations that count are for."""
        parts = []
        if self.unpriced:
            parts.append(f"reserved for {count_of(self.unpriced, 'reply')} of unknown cost")
        if self.lost:
            parts.append("for answers that did not arrive and may be billed")
        return " and ".join(parts)

    def _close(self, reservation: Reservation) -> None:
        self._open.remove(reservation)
        self.spent += reservation.cost
        self._settled.set()
        if self._payments is None:
            return
        try:
            if reservation.attempt:
                if not reservation.is_presumed:  # else the worst case, which is noted, counts
                    self._payments.settled(reservation.attempt, reservation.cost)
            elif reservation.cost or reservation.is_unpriced:
                cost = None if reservation.is_unpriced else reservation.cost
                self._payments.paid(reservation.request_hash, cost)
        except UserError as error:  # the reply is paid and still to be kept
            self._unwritable = error
