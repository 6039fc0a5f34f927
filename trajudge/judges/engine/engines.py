"""Engines of a run with several models: one per endpoint, with one cache and one budget."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Protocol

from trajudge.judges.adapters.base import Adapter
from trajudge.judges.engine.budget import Budget
from trajudge.judges.engine.engine import Engine
from trajudge.judges.engine.limiting.limiter import Limiter
from trajudge.judges.engine.limiting.waiting import reasons
from trajudge.judges.engine.retry import Retry
from trajudge.judges.engine.store.cache import Cache
from trajudge.judges.engine.store.sent import SentCalls


class EngineLookup(Protocol):
    """Engines by the name of the model."""

    def __getitem__(self, model: str) -> Engine: ...


class Engines:
    """Engine of every model. Models of one endpoint share an engine and with it its ``limiter``,
    because a server's limits hold for all its models."""

    def __init__(
        self,
        adapters: Mapping[str, Adapter],
        *,
        cache: Cache,
        limiter: Callable[[str], Limiter],
        retry: Retry,
        budget: Budget,
    ) -> None:
        """Make the engines; ``adapters`` by the name of the model, ``limiter`` of an endpoint."""
        self.cache = cache
        self.budget = budget
        self.sent = SentCalls()
        self._adapters = tuple(adapters.values())
        self._engines: dict[tuple[str, str], Engine] = {}
        self._by_model: dict[str, Engine] = {}
        for model, adapter in adapters.items():
            address = (adapter.name, adapter.endpoint)
            if address not in self._engines:
                engine = Engine(
                    adapter,
                    cache=cache,
                    limiter=limiter(adapter.endpoint),
                    retry=retry,
                    budget=budget,
                )
                engine.sent = self.sent
                self._engines[address] = engine
            self._by_model[model] = self._engines[address]

    def __getitem__(self, model: str) -> Engine:
        """Return the engine that reaches ``model``."""
        return self._by_model[model]

    def stop(self, error: Exception) -> None:
        """Send nothing any more: waiting calls get ``error``, calls in flight are finished."""
        for engine in self._engines.values():
            engine.stop(error)

    def waits(self) -> str:
        """Say why calls wait, for the progress line; "" if none does."""
        several = len(self._engines) > 1
        return ", ".join(
            f"{engine.adapter.endpoint}: {reason}" if several else reason
            for engine in self._engines.values()
            for reason in reasons(engine)
        )

    async def close(self) -> None:
        """Cancel the calls under way, commit what has arrived, close the connections."""
        await asyncio.gather(*(engine.drain() for engine in self._engines.values()))
        await self.cache.close()
        for adapter in self._adapters:
            await adapter.close()
