"""The engines of a worker: open over all its shards, so that they keep what they learned of a
server."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from trajudge.eval.runs.grid import PlannedRun
from trajudge.eval.shards.limits import SharedLimits
from trajudge.judges.engine.store.payments import Payments

if TYPE_CHECKING:
    from trajudge.judges.engine import Engines


class SharedCalls:
    """Opens the engines of a run's model when they are needed, and again after ``close``; none for
    a judge without a model. ``payments`` are the lines of what they have paid since somebody took
    them out, none unless they are ``noting``."""

    def __init__(self, planned: PlannedRun, limits: SharedLimits, *, noting: bool) -> None:
        self._planned = planned
        self._limits = limits
        self._model = planned.model
        self._engines: Engines | None = None
        self._spent = 0.0
        self.payments: list[bytes] = []
        self._noting = Payments(self.payments.append if noting else lambda line: None)

    def open(self) -> Engines | None:
        """Return the engines. Raises UserError as the first call of a run does."""
        if self._model is not None and self._engines is None:
            repeat = self._planned.run.samples > 1
            self._engines = self._model.open_engines(
                self._spent, self._noting, prompts_repeat=repeat, shared=self._limits
            )
        return self._engines

    async def close(self) -> None:
        """Close the connections and give back the dollars that were not spent. Raises UserError."""
        if self._engines is None:
            return
        from trajudge.eval.runs.members import make_model_handle  # noqa: PLC0415 - where a model is asked

        await self._engines.close()
        self._spent, self._engines = self._engines.budget.spent, None
        self._model = make_model_handle(self._planned.config, self._planned.calls)
        await asyncio.to_thread(self._limits.give_back, self._limits.leased - self._spent)
