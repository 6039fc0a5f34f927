"""Model clients of the engine: one that sends calls and one that only prices them; both keep a
ledger."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from math import inf
from typing import Generic, NamedTuple, TypeVar

from pydantic import JsonValue

from trajudge.judges.adapters.errors import ContextOverflow, Refused
from trajudge.judges.client import BaseClient, CallArgs
from trajudge.judges.engine.budget import Price
from trajudge.judges.engine.engine import Engine
from trajudge.judges.engine.expected import Estimate
from trajudge.judges.engine.store.cache import Cache
from trajudge.judges.model import Call, Message, Reply, Request, Usage
from trajudge.trajectories.model import checked
from trajudge.trajectories.tokens import likely_tokens


class ModelRoute(NamedTuple):
    """How one model is reached: engine, parameters, the expected usage of a request and its maximum
    (``worst_case``; None: the expected one). A judge that limits a reply means the answer: no limit
    is below ``least_tokens``, of a model that thinks within it."""

    engine: Engine
    model: str
    parameters: Mapping[str, JsonValue]
    estimate: Estimate
    worst_case: Estimate | None = None
    least_tokens: int = 0

    @property
    def endpoint(self) -> str:
        return self.engine.adapter.endpoint


class DryRunRoute(NamedTuple):
    """A ``ModelRoute`` without an engine."""

    endpoint: str
    model: str
    parameters: Mapping[str, JsonValue]
    estimate: Estimate
    least_tokens: int = 0


RouteT = TypeVar("RouteT", bound=ModelRoute | DryRunRoute)


class _LedgerClient(BaseClient, Generic[RouteT]):
    """A client that keeps its calls, and names the model and the request of each.

    ``own`` is the run's model, ``others`` those that a call may name beside it.
    """

    def __init__(self, own: RouteT, others: Sequence[RouteT], sample: int) -> None:
        self._own = own
        self._routes = {route.model: route for route in others}
        self._sample = sample
        self._slots: list[Call | None] = []

    @property
    def calls(self) -> list[Call]:
        """Calls in the order in which they were made, whichever ended first, so that a resumed run
        writes the same bytes."""
        return [call for call in self._slots if call is not None]

    def _reserve_slot(self) -> int:
        """Reserve the next place of the ledger for the call that is made now."""
        self._slots.append(None)
        return len(self._slots) - 1

    def _route(self, call_args: CallArgs) -> RouteT:
        return self._own if call_args.model is None else self._routes[call_args.model]

    def _request(self, route: RouteT, call_args: CallArgs) -> Request:
        parameters = {**route.parameters, **call_args.parameters}
        limit = parameters.get("max_tokens")
        if isinstance(limit, int) and limit < route.least_tokens:
            parameters["max_tokens"] = route.least_tokens
        fields = {
            "endpoint": route.endpoint,
            "model": route.model,
            "messages": tuple(call_args.messages),
            "parameters": parameters,
            "sample": self._sample,
        }
        if call_args.parameters or {*map(type, call_args.messages)} != {Message}:
            return Request.model_validate(fields)  # a user's judge may have made them
        return checked(Request, fields)


class EngineClient(_LedgerClient[ModelRoute]):
    """Model client of one judgment; ``calls`` is its ledger, in the order of the calls.

    The parameters of ``own`` are overridden by those of a single call; ``sample`` tells repeated
    judgments apart; ``refresh`` are the hashes of requests that are asked again although the
    cache has an answer, unless it was kept after ``since`` (seconds since 1970): another judgment
    has asked the same again.
    """

    def __init__(
        self,
        own: ModelRoute,
        others: Sequence[ModelRoute] = (),
        sample: int = 0,
        *,
        refresh: Container[str] = (),
        since: float = inf,
    ) -> None:
        super().__init__(own, others, sample)
        self._refresh, self._since = refresh, since

    async def answer(self, call_args: CallArgs) -> Reply:
        """Ask the model. Raises what ``Engine.ask`` raises.

        A refusal and an overflow are kept in the ledger too, for they are answers; a failed call is
        not, for it may succeed when the run is resumed.
        """
        route = self._route(call_args)
        request = self._request(route, call_args)
        slot = self._reserve_slot()
        try:
            reply, cached = await route.engine.ask(
                request,
                refresh=request.hash in self._refresh,
                since=self._since,
                estimate=route.estimate,
                worst_case=route.worst_case,
            )
        except (Refused, ContextOverflow) as outcome:
            finish = "refused" if isinstance(outcome, Refused) else "context_overflow"
            self._slots[slot] = _call(call_args, request, finish=finish, usage=Usage(), cost=0.0)
            raise
        self._slots[slot] = _call(
            call_args,
            request,
            finish=reply.finish,
            usage=reply.usage,
            cost=route.engine.budget.cost(route.model, reply.usage),
            text=reply.text,
            seconds=0.0 if cached else reply.seconds,
            cached=cached,
        )
        return reply


class DryRunClient(_LedgerClient[DryRunRoute]):
    """Model client that sends nothing; ``calls`` holds what each call would cost.

    Cached replies are returned and cost nothing. Every other call returns the reply that the judge
    assumes, with the usage of ``estimate`` (its output the assumed reply's, where there is one).
    """

    def __init__(
        self,
        own: DryRunRoute,
        others: Sequence[DryRunRoute] = (),
        sample: int = 0,
        *,
        price: Price,
        cache: Cache | None = None,
    ) -> None:
        super().__init__(own, others, sample)
        self._price = price
        self._cache = cache

    async def answer(self, call_args: CallArgs) -> Reply:
        """Return the cached reply or the assumed one. Raises a cached failure."""
        route = self._route(call_args)
        request = self._request(route, call_args)
        known = self._cache.get(request.hash) if self._cache else None
        usage = Usage() if known else _expected(route, request, call_args.assume)
        self._slots[self._reserve_slot()] = _call(
            call_args,
            request,
            finish="not sent",
            usage=usage,
            cost=0.0 if known else self._price(route.model, usage),
            cached=known is not None,
        )
        if isinstance(known, Refused | ContextOverflow):
            raise known
        return known or Reply(text=call_args.assume, usage=usage, model=route.model)


def _call(
    call_args: CallArgs,
    request: Request,
    *,
    finish: str,
    usage: Usage | None,
    cost: float | None,
    text: str = "",
    seconds: float = 0.0,
    cached: bool = False,
) -> Call:
    fields = {
        "stage": call_args.stage,
        "request": request.hash,
        "rung": call_args.rung,
        "finish": finish,
        "usage": usage,
        "cost": cost,
        "text": text,
        "seconds": seconds,
        "cached": cached,
    }
    return checked(Call, fields)


def _expected(route: DryRunRoute, request: Request, assume: str) -> Usage:
    expected = route.estimate(request)
    return expected.model_copy(update={"output": likely_tokens(assume)}) if assume else expected
