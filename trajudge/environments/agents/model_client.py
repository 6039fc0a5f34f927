"""The model behind model agents: one engine for all runs of a recording, whoever waits for it.

The engine lives on an event loop in a thread of its own, so agents in several threads share its
cache, its limits and its budget.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Thread
from typing import TYPE_CHECKING

from trajudge.environments.agents.protocol import Halted, NotPlayed
from trajudge.judges.adapters.errors import CallFailed, ContextOverflow, Refused
from trajudge.judges.engine.budget import BudgetSpent
from trajudge.judges.engine.engine import EngineClient
from trajudge.judges.model import Message, Picture, Reply
from trajudge.judges.prompting import picture
from trajudge.trajectories.model import ImageRef
from trajudge.trajectories.represent import Representation
from trajudge.util.errors import UserError

if TYPE_CHECKING:
    from trajudge.judges.calls.handle import ModelHandle
    from trajudge.judges.engine.engine import Engines


class AgentModelClient:
    """``handle`` is the model, ``see`` what its agents are shown of a page."""

    def __init__(
        self,
        handle: ModelHandle,
        see: Representation,
        engines: Engines,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.handle = handle
        self.see = see
        self._engines = engines
        self._loop = loop

    def start_run(self, attempt: int) -> EngineClient:
        """Return the ledger of one run, for ``ask``; replies of another attempt are others."""
        return self.handle.ask(self._engines, attempt, refresh=())

    def ask(self, client: EngineClient, messages: Sequence[Message], rung: str) -> Reply:
        """Return the model's reply.

        Raises ContextOverflow and Refused, which say something of the prompt; NotPlayed where this
        call failed for good; Halted where no call can succeed (no key, the budget is spent).
        """
        work = client(messages, stage="action", rung=rung)
        try:
            return asyncio.run_coroutine_threadsafe(work, self._loop).result()
        except (ContextOverflow, Refused):
            raise
        except CallFailed as error:
            raise NotPlayed(f"{self.handle.model}: {error}") from error
        except (BudgetSpent, UserError) as error:
            raise Halted(str(error)) from error

    def picture(self, ref: ImageRef) -> Picture:
        """Load a screenshot within the model's limits. Raises ImageUnreadable."""
        return asyncio.run_coroutine_threadsafe(
            picture(ref, self.handle.images), self._loop
        ).result()

    def stop(self) -> None:
        """Send nothing any more: runs under way end without being recorded."""
        self._loop.call_soon_threadsafe(self._engines.stop, UserError("the recording was stopped"))


@contextmanager
def open_model_client(
    handle: ModelHandle, see: Representation, spent: float
) -> Iterator[AgentModelClient]:
    """Open the model of one session; ``spent`` dollars went to earlier ones. Raises UserError for a
    budget without a price, and for screenshots that the model does not take."""
    if see.shows_screenshot and not handle.known.images:
        raise UserError(f"{handle.model} takes no images: choose --see axtree")
    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        engines = asyncio.run_coroutine_threadsafe(_open(handle, spent), loop).result()
        try:
            yield AgentModelClient(handle, see, engines, loop)
        finally:
            asyncio.run_coroutine_threadsafe(engines.close(), loop).result()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _open(handle: ModelHandle, spent: float) -> Engines:
    return handle.open_engines(spent)
