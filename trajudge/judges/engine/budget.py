"""``--max-cost``: the worst case of a call is reserved before it is sent, and settled after it.

The limit holds for all attempts, including those whose answer never arrived but may be billed and
those whose server reports no usage: both count as what was reserved. It rests on two assumptions:
no answer is longer than the request allows, and no prompt takes more tokens than were counted. The
first call of each model goes alone and tests both; where a server breaks either, every later
reservation is scaled up.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable

from trajudge.judges.engine.store.payments import Payments
from trajudge.judges.model import Usage
from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.terminal import count_of

Price = Callable[[str, Usage], float | None]
"""US dollars for a model's usage; None if the model's price is not known."""


class BudgetSpent(Exception):
    """The next call might pass the limit. Judgments so far are kept, and the run can be resumed."""


class Reservation:
    """Money reserved for one attempt: ``worst`` dollars, of which ``cost`` were spent; it
    ``is_unpriced`` if nobody knows how many, and ``is_presumed`` where the reservation then counts.

    Entering waits for the money, leaving gives back what was not spent. Raises what
    ``Budget.reserve`` says.
    """

    def __init__(self, budget: Budget, model: str, worst: float) -> None:
        self.model = model
        self.worst = worst
        self.cost = 0.0
        self.is_unpriced = False
        self.is_presumed = False
        self.attempt = ""
        self.request_hash = ""
        self._budget = budget

    async def __aenter__(self) -> Reservation:
        await self._budget._admit(self)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._budget._close(self)


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
        self._settled = asyncio.Event()
        self._unwritable: UserError | None = None

    def require_price(self, model: str) -> None:
        """Raise UserError if there is a limit and the model's price is not known."""
        if self.limit is not None and self._price(model, Usage(input=1)) is None:
            raise UserError(
                f"the price of {model!r} is not known, so --max-cost {self.limit:g} cannot be "
                "kept: give its price in a price file, or run without --max-cost"
            )

    def cost(self, model: str, usage: Usage | None) -> float | None:
        """Compute US dollars, None if the usage or the price is not known."""
        return None if usage is None else self._price(model, usage)

    def reserve(self, model: str, worst: Usage) -> Reservation:
        """Reserve the worst case of one attempt; ``settle`` or ``presume`` inside.

        Waits while attempts in flight hold what this one needs: most cost less than was reserved
        for them. Raises BudgetSpent if it does not fit even when all of them are settled.
        """
        self.require_price(model)
        return Reservation(self, model, self._dearest(model, worst))

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
        return self.limit is not None and self._lacking(reservation) > 0

    def _lacking(self, reservation: Reservation) -> float:
        """Return the dollars by which it passes the limit, with all that is in flight."""
        reserved = sum(map(self._worst, self._open)) + self._worst(reservation)
        return self.spent + reserved - (self.limit or 0.0)

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
