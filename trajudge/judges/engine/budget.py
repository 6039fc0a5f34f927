"""``--max-cost``: the worst case of a call is reserved before it is sent, and settled after it.

The limit holds for all attempts, including those whose answer never arrived but may be billed. It
rests on two assumptions: no answer is longer than the request allows, and no prompt takes more
tokens than were counted. Where a server breaks either, every later reservation is scaled up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from trajudge.judges.engine.store.payments import Payments
from trajudge.judges.model import Usage
from trajudge.trajectories.util.errors import UserError

Price = Callable[[str, Usage], float | None]
"""US dollars for a model's usage; None if the model's price is not known."""


class BudgetSpent(Exception):
    """The next call might pass the limit. Judgments so far are kept, and the run can be resumed."""


class Reservation:
    """Money reserved for one attempt: ``worst`` dollars, of which ``cost`` were spent; it
    ``is_unpriced`` if nobody knows how many.

    Entering waits for the money, leaving gives back what was not spent. Raises what
    ``Budget.reserve`` says.
    """

    def __init__(self, budget: Budget, model: str, worst: float) -> None:
        self.model = model
        self.worst = worst
        self.cost = 0.0
        self.is_unpriced = False
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
        self.waiting = 0
        self._price = price
        self._payments = payments
        self._reserved = 0.0
        self._open = 0
        self._correction = 1.0
        self._settled = asyncio.Event()
        self._unwritable: UserError | None = None

    def require_price(self, model: str) -> None:
        """Raise UserError if there is a limit and the model's price is not known."""
        if self.limit is not None and self._price(model, Usage(input=1)) is None:
            raise UserError(
                f"the price of {model!r} is not known, so --max-cost {self.limit:g} cannot be "
                "kept: give its price in a price file, or run without --max-cost"
            )

    def cost(self, model: str, usage: Usage) -> float | None:
        """Compute US dollars, None if the price is not known."""
        return self._price(model, usage)

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
            worst = reservation.worst * self._correction
            reservation.attempt = self._payments.sent(request_hash, worst)

    def settle(self, reservation: Reservation, usage: Usage) -> None:
        """Count the usage that the attempt's answer reports."""
        cost = self._price(reservation.model, usage)
        reservation.is_unpriced = cost is None
        reservation.cost += cost or 0.0
        if reservation.worst:
            self._correction = max(self._correction, reservation.cost / reservation.worst)

    def presume(self, reservation: Reservation) -> None:
        """Count the worst case: no answer was read, yet one may be billed."""
        reservation.cost += reservation.worst
        self.presumed += reservation.worst

    async def _admit(self, reservation: Reservation) -> None:
        if self._unwritable is not None:
            raise self._unwritable
        while self._lacks_room(reservation):
            if not self._open or self._never_fits(reservation):
                raise BudgetSpent(self._sentence(reservation))
            self._settled.clear()
            self.waiting += 1
            try:
                await self._settled.wait()
            finally:
                self.waiting -= 1
        self._reserved += reservation.worst
        self._open += 1

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
        reserved = (self._reserved + reservation.worst) * self._correction
        return self.spent + reserved - (self.limit or 0.0)

    def _never_fits(self, reservation: Reservation) -> bool:
        """Tell whether it would not fit even if everything in flight were free."""
        return self.spent + reservation.worst * self._correction > (self.limit or 0.0)

    def _sentence(self, reservation: Reservation) -> str:
        limit = self.limit or 0.0
        # Calls that are under way are finished, and paid.
        at_most, at_least = ("at most ", "at least ") if self._open else ("", "")
        counted = (
            f" (${self.presumed:.4f} of it for answers that did not arrive and may be billed)"
            if self.presumed
            else ""
        )
        return (
            f"the next call may cost up to ${reservation.worst * self._correction:.4f} and "
            f"{at_most}${max(0.0, limit - self.spent):.4f} is left of --max-cost {limit:g}, "
            f"{at_least}${self.spent:.4f} is spent{counted}: raise --max-cost or lower --max-tokens"
        )

    def _close(self, reservation: Reservation) -> None:
        self._open -= 1
        self._reserved = self._reserved - reservation.worst if self._open else 0.0
        self.spent += reservation.cost
        self._settled.set()
        if self._payments is None:
            return
        try:
            if reservation.attempt:
                self._payments.settled(reservation.attempt, reservation.cost)
            elif reservation.cost or reservation.is_unpriced:
                cost = None if reservation.is_unpriced else reservation.cost
                self._payments.paid(reservation.request_hash, cost)
        except UserError as error:  # the reply is paid and still to be kept
            self._unwritable = error
