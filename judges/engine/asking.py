"""How a judge's ``ask`` reaches the engine, and what the ledger keeps of it."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import NamedTuple

from pydantic import JsonValue

from judges.adapters.errors import ContextOverflow, Refused
from judges.engine.budget import Price
from judges.engine.cache import Cache
from judges.engine.engine import Engine, Estimate
from judges.model import Call, Message, Reply, Request, Usage
from trajectories.tokens import likely_tokens


class Line(NamedTuple):
    """One model that a judgment may ask: through which engine, with which parameters, and the
    usage to expect of a request."""

    engine: Engine
    model: str
    parameters: Mapping[str, JsonValue]
    estimate: Estimate

    @property
    def endpoint(self) -> str:
        return self.engine.adapter.endpoint


class DryLine(NamedTuple):
    """The same without an engine."""

    endpoint: str
    model: str
    parameters: Mapping[str, JsonValue]
    estimate: Estimate


class _Ledger:
    """The calls of a judgment in the order in which they were asked, whichever ends first: so a
    run that was resumed ends with the same bytes."""

    def __init__(self) -> None:
        self._places: list[Call | None] = []

    @property
    def calls(self) -> list[Call]:
        return [call for call in self._places if call is not None]

    def place(self) -> int:
        self._places.append(None)
        return len(self._places) - 1

    def record(self, place: int, call: Call) -> None:
        self._places[place] = call


class Asking:
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
        sample: int = 0,
        refresh: Container[str] = (),
        others: Sequence[Line] = (),
    ) -> None:
        self._own = Line(engine, model, parameters, estimate)
        self._lines = {line.model: line for line in others}
        self._sample = sample
        self._refresh = refresh
        self._ledger = _Ledger()

    @property
    def calls(self) -> list[Call]:
        return self._ledger.calls

    async def __call__(
        self,
        messages: Sequence[Message],
        *,
        stage: str = "verdict",
        rung: str = "full",
        model: str | None = None,
        assume: str = "",
        **parameters: JsonValue,
    ) -> Reply:
        """Ask the model. Raises what ``Engine.ask`` raises.

        A refusal and an overflow are in the ledger too, for they are answers; a call that failed
        is not, for it may succeed when the run is resumed.
        """
        line = self._own if model is None else self._lines[model]
        request = _request(line, messages, parameters, self._sample)
        place = self._ledger.place()
        try:
            reply, cached = await line.engine.ask(
                request, refresh=request.hash in self._refresh, estimate=line.estimate
            )
        except (Refused, ContextOverflow) as outcome:
            self._ledger.record(place, _call(line, request, outcome, stage=stage, rung=rung))
            raise
        call = _call(line, request, reply, stage=stage, rung=rung, cached=cached)
        self._ledger.record(place, call)
        return reply


def _request(
    line: Line | DryLine,
    messages: Sequence[Message],
    overrides: Mapping[str, JsonValue],
    sample: int,
) -> Request:
    return Request(
        endpoint=line.endpoint,
        model=line.model,
        messages=tuple(messages),
        parameters={**line.parameters, **overrides},
        sample=sample,
    )


def _call(
    line: Line,
    request: Request,
    outcome: Reply | Refused | ContextOverflow,
    *,
    stage: str,
    rung: str,
    cached: bool = False,
) -> Call:
    if isinstance(outcome, Reply):
        finish: str = outcome.finish
        text, usage = outcome.text, outcome.usage
        cost = line.engine.budget.cost(line.model, usage)
        seconds = 0.0 if cached else outcome.seconds
    else:
        finish = "refused" if isinstance(outcome, Refused) else "context_overflow"
        text, usage, cost, seconds = "", Usage(), 0.0, 0.0
    return Call(
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


class DryRun:
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
        self.calls: list[Call] = []
        self._own = DryLine(endpoint, model, parameters, estimate)
        self._lines = {line.model: line for line in others}
        self._price = price
        self._cache = cache
        self._sample = sample

    async def __call__(
        self,
        messages: Sequence[Message],
        *,
        stage: str = "verdict",
        rung: str = "full",
        model: str | None = None,
        assume: str = "",
        **parameters: JsonValue,
    ) -> Reply:
        """The reply of the cache, or the assumed one. Raises what the cache holds."""
        line = self._own if model is None else self._lines[model]
        request = _request(line, messages, parameters, self._sample)
        known = self._cache.get(request.hash) if self._cache else None
        usage = Usage() if known else _expected(line, request, assume)
        self.calls.append(
            Call(
                stage=stage,
                request=request.hash,
                rung=rung,
                finish="not sent",
                usage=usage,
                cost=self._price(line.model, usage),
                text="",
                cached=known is not None,
            )
        )
        if isinstance(known, Refused | ContextOverflow):
            raise known
        return known or Reply(text=assume, usage=usage, model=line.model)


def _expected(line: DryLine, request: Request, assume: str) -> Usage:
    expected = line.estimate(request)
    return expected.model_copy(update={"output": likely_tokens(assume)}) if assume else expected
