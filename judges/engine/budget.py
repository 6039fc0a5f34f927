"""``--max-cost``: the money of a run is reserved before a call and settled after it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from judges.model import Usage
from trajectories.errors import UserError

Price = Callable[[str, Usage], float | None]
"""US dollars for a model's usage; None if the model's price is not known."""


class BudgetSpent(Exception):
    """The next call would pass the limit. What was judged is kept, and the run can be resumed."""


class Reservation:
    """The money set aside for one call; ``settle`` once its real usage is known."""

    def __init__(self, model: str, dollars: float) -> None:
        self.model = model
        self.dollars = dollars
        self.cost = 0.0


class Budget:
    """What a run has spent and may still spend, in US dollars; ``limit`` None: only counted.

    ``spent`` is what earlier sittings of the same run cost, if the limit is to hold for all.
    """

    def __init__(self, price: Price, limit: float | None = None, spent: float = 0.0) -> None:
        self.limit = limit
        self.spent = spent
        self._price = price
        self._reserved = 0.0
        self._open = 0
        self._guessed = 0.0
        self._paid = 0.0
        self._settled = asyncio.Event()

    def require_price(self, model: str) -> None:
        """Raises UserError if there is a limit and no price to hold it with."""
        if self.limit is not None and self._price(model, Usage(input=1)) is None:
            raise UserError(
                f"the price of {model!r} is not known, so --max-cost {self.limit:g} cannot be "
                "kept: give its price in a price file, or run without --max-cost"
            )

    def cost(self, model: str, usage: Usage) -> float | None:
        """US dollars, None if the price is not known."""
        return self._price(model, usage)

    @asynccontextmanager
    async def reserve(self, model: str, estimate: Usage) -> AsyncIterator[Reservation]:
        """Set money aside for one call; ``settle`` it inside.

        Waits while calls in flight hold what this one needs: they may cost less than was set
        aside for them. Raises BudgetSpent if it does not fit even so.
        """
        self.require_price(model)
        guess = self._price(model, estimate) or 0.0
        dollars = guess * self._correction()
        while self.limit is not None and self.spent + self._reserved + dollars > self.limit:
            if not self._open or self.spent + dollars > self.limit:
                raise BudgetSpent(
                    f"the next call (about ${dollars:.4f}) would pass --max-cost {self.limit:g}: "
                    f"${self.spent:.4f} spent"
                )
            self._settled.clear()
            await self._settled.wait()
            dollars = guess * self._correction()
        reservation = Reservation(model, dollars)
        self._reserved += dollars
        self._open += 1
        try:
            yield reservation
        finally:
            self._close(reservation, guess)

    def settle(self, reservation: Reservation, usage: Usage) -> None:
        """The call's real usage."""
        reservation.cost += self._price(reservation.model, usage) or 0.0

    def _close(self, reservation: Reservation, guess: float) -> None:
        self._open -= 1
        self._reserved = self._reserved - reservation.dollars if self._open else 0.0
        if reservation.cost:
            self.spent += reservation.cost
            self._paid += reservation.cost
            self._guessed += guess
        self._settled.set()

    def _correction(self) -> float:
        """How much dearer than their estimates the calls have been so far; at least 1."""
        return max(1.0, self._paid / self._guessed) if self._guessed else 1.0
