"""How a judge's ``ask`` reaches the engine, and what the ledger keeps of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pydantic import JsonValue

from judges.adapters.errors import ContextOverflow, Refused
from judges.engine.budget import Price
from judges.engine.cache import Cache
from judges.engine.engine import Engine, Estimate
from judges.model import Call, Message, Reply, Request, Usage


class _Bound(NamedTuple):
    """What every call of a judgment has in common."""

    endpoint: str
    model: str
    parameters: Mapping[str, JsonValue]
    sample: int

    def request(self, messages: Sequence[Message], overrides: Mapping[str, JsonValue]) -> Request:
        return Request(
            endpoint=self.endpoint,
            model=self.model,
            messages=tuple(messages),
            parameters={**self.parameters, **overrides},
            sample=self.sample,
        )


class Asking:
    """The ``judges.model.Ask`` of one judgment; ``calls`` is its ledger, in the order asked.

    ``parameters`` are the run's, overridden by those of a single call; ``sample`` tells repeated
    judgments apart; ``refresh`` asks again what is in the cache.
    """

    def __init__(
        self,
        engine: Engine,
        model: str,
        parameters: Mapping[str, JsonValue],
        *,
        estimate: Estimate,
        sample: int = 0,
        refresh: bool = False,
    ) -> None:
        self.calls: list[Call] = []
        self._engine = engine
        self._bound = _Bound(engine.adapter.endpoint, model, parameters, sample)
        self._estimate = estimate
        self._refresh = refresh

    async def __call__(
        self,
        messages: Sequence[Message],
        *,
        stage: str = "verdict",
        rung: str = "full",
        **parameters: JsonValue,
    ) -> Reply:
        """Ask the model. Raises what ``Engine.ask`` raises.

        A refusal and an overflow are in the ledger too, for they are answers; a call that failed
        is not, for it may succeed when the run is resumed.
        """
        request = self._bound.request(messages, parameters)
        try:
            reply, cached = await self._engine.ask(
                request, refresh=self._refresh, estimate=self._estimate
            )
        except (Refused, ContextOverflow) as outcome:
            self._record(request, stage, rung, outcome)
            raise
        self._record(request, stage, rung, reply, cached)
        return reply

    def _record(
        self,
        request: Request,
        stage: str,
        rung: str,
        outcome: Reply | Refused | ContextOverflow,
        cached: bool = False,
    ) -> None:
        if isinstance(outcome, Reply):
            finish: str = outcome.finish
            text, usage = outcome.text, outcome.usage
            cost = self._engine.budget.cost(self._bound.model, usage)
            seconds = 0.0 if cached else outcome.seconds
        else:
            finish = "refused" if isinstance(outcome, Refused) else "context_overflow"
            text, usage, cost, seconds = "", Usage(), 0.0, 0.0
        self.calls.append(
            Call(
                stage=stage,
                request=request.hash,
                rung=rung,
                finish=finish,
                usage=usage,
                cost=cost,
                text=text,
                seconds=seconds,
                cached=cached,
            )
        )


class DryRun:
    """The same ``ask`` without a call: ``calls`` holds what each would cost.

    What is in the cache already is answered from there and costs nothing; everything else gets an
    empty reply with the usage of ``estimate``.
    """

    def __init__(
        self,
        endpoint: str,
        model: str,
        parameters: Mapping[str, JsonValue],
        *,
        estimate: Estimate,
        price: Price,
        cache: Cache | None = None,
        sample: int = 0,
    ) -> None:
        self.calls: list[Call] = []
        self._bound = _Bound(endpoint, model, parameters, sample)
        self._estimate = estimate
        self._price = price
        self._cache = cache

    async def __call__(
        self,
        messages: Sequence[Message],
        *,
        stage: str = "verdict",
        rung: str = "full",
        **parameters: JsonValue,
    ) -> Reply:
        """The reply of the cache, or an empty one. Raises what the cache holds."""
        request = self._bound.request(messages, parameters)
        known = self._cache.get(request.hash) if self._cache else None
        usage = Usage() if known else self._estimate(request)
        self.calls.append(
            Call(
                stage=stage,
                request=request.hash,
                rung=rung,
                finish="not sent",
                usage=usage,
                cost=self._price(self._bound.model, usage),
                text="",
                cached=known is not None,
            )
        )
        if isinstance(known, Refused | ContextOverflow):
            raise known
        return known or Reply(text="", usage=usage, model=self._bound.model)
