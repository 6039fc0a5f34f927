"""How a judge's ``ask`` reaches the engine, and what the ledger keeps of it."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

from pydantic import JsonValue

from trajudge.judges.adapters.errors import ContextOverflow, Refused
from trajudge.judges.asked import Asked, Asker
from trajudge.judges.engine.budget import Price
from trajudge.judges.engine.engine import Engine, Estimate
from trajudge.judges.engine.store.cache import Cache
from trajudge.judges.model import Call, Reply, Request, Usage
from trajudge.trajectories.tokens import likely_tokens


class Line(NamedTuple):
    """One model that a judgment may ask: through which engine, with which parameters, the usage
    to expect of a request and the most that it can take (None: what is expected)."""

    engine: Engine
    model: str
    parameters: Mapping[str, JsonValue]
    estimate: Estimate
    worst_case: Estimate | None = None

    @property
    def endpoint(self) -> str:
        return self.engine.adapter.endpoint


class DryLine(NamedTuple):
    """The same without an engine."""

    endpoint: str
    model: str
    parameters: Mapping[str, JsonValue]
    estimate: Estimate


L = TypeVar("L", bound=Line | DryLine)


class _Ledger(Asker, Generic[L]):
    """An ask that keeps its calls, and names the model and the request of each.

    ``own`` is the run's model, ``others`` those that a call may name beside it.
    """

    def __init__(self, own: L, others: Sequence[L], sample: int) -> None:
        self._own = own
        self._lines = {line.model: line for line in others}
        self._sample = sample
        self._places: list[Call | None] = []

    @property
    def calls(self) -> list[Call]:
        """In the order in which they were asked, whichever ended first: so a run that was resumed
        ends with the same bytes."""
        return [call for call in self._places if call is not None]

    def _place(self) -> int:
        """Keeps a place for the call that is asked now."""
        self._places.append(None)
        return len(self._places) - 1

    def _line(self, asked: Asked) -> L:
        return self._own if asked.model is None else self._lines[asked.model]

    def _request(self, line: L, asked: Asked) -> Request:
        return Request(
            endpoint=line.endpoint,
            model=line.model,
            messages=tuple(asked.messages),
            parameters={**line.parameters, **asked.parameters},
            sample=self._sample,
        )


class Asking(_Ledger[Line]):
    """The ``judges.model.Ask`` of one judgment; ``calls`` is its ledger, in the order asked.

    ``parameters`` are the run's, overridden by those of a single call; ``sample`` tells repeated
    judgments apart; ``refresh`` are the hashes of requests that are asked again although they are
    in the cache; ``others`` are the models that a call may name beside the run's own.
    """

    def __init__(
        self,
        engine: Engine,
        model: str,
        parameters: Mapping[str, JsonValue],
        *,
        estimate: Estimate,
        worst_case: Estimate | None = None,
        sample: int = 0,
        refresh: Container[str] = (),
        others: Sequence[Line] = (),
    ) -> None:
        super().__init__(Line(engine, model, parameters, estimate, worst_case), others, sample)
        self._refresh = refresh

    async def answer(self, asked: Asked) -> Reply:
        """Ask the model. Raises what ``Engine.ask`` raises.

        A refusal and an overflow are in the ledger too, for they are answers; a call that failed
        is not, for it may succeed when the run is resumed.
        """
        line = self._line(asked)
        request = self._request(line, asked)
        place = self._place()
        try:
            reply, cached = await line.engine.ask(
                request,
                refresh=request.hash in self._refresh,
                estimate=line.estimate,
                worst_case=line.worst_case,
            )
        except (Refused, ContextOverflow) as outcome:
            finish = "refused" if isinstance(outcome, Refused) else "context_overflow"
            self._places[place] = _call(asked, request, finish=finish, usage=Usage(), cost=0.0)
            raise
        self._places[place] = _call(
            asked,
            request,
            finish=reply.finish,
            usage=reply.usage,
            cost=line.engine.budget.cost(line.model, reply.usage),
            text=reply.text,
            seconds=0.0 if cached else reply.seconds,
            cached=cached,
        )
        return reply


class DryRun(_Ledger[DryLine]):
    """The same ``ask`` without a call: ``calls`` holds what each would cost.

    What is in the cache already is answered from there and costs nothing; everything else gets
    the reply that the judge assumes, with the usage of ``estimate`` (its output the assumed
    reply's, where there is one).
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
        others: Sequence[DryLine] = (),
    ) -> None:
        super().__init__(DryLine(endpoint, model, parameters, estimate), others, sample)
        self._price = price
        self._cache = cache

    async def answer(self, asked: Asked) -> Reply:
        """The reply of the cache, or the assumed one. Raises what the cache holds."""
        line = self._line(asked)
        request = self._request(line, asked)
        known = self._cache.get(request.hash) if self._cache else None
        usage = Usage() if known else _expected(line, request, asked.assume)
        self._places[self._place()] = _call(
            asked,
            request,
            finish="not sent",
            usage=usage,
            cost=self._price(line.model, usage),
            cached=known is not None,
        )
        if isinstance(known, Refused | ContextOverflow):
            raise known
        return known or Reply(text=asked.assume, usage=usage, model=line.model)


def _call(
    asked: Asked,
    request: Request,
    *,
    finish: str,
    usage: Usage,
    cost: float | None,
    text: str = "",
    seconds: float = 0.0,
    cached: bool = False,
) -> Call:
    return Call(
        stage=asked.stage,
        request=request.hash,
        rung=asked.rung,
        finish=finish,
        usage=usage,
        cost=cost,
        text=text,
        seconds=seconds,
        cached=cached,
    )


def _expected(line: DryLine, request: Request, assume: str) -> Usage:
    expected = line.estimate(request)
    return expected.model_copy(update={"output": likely_tokens(assume)}) if assume else expected
