"""What a judge sees of the engine, and what its ledger keeps."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.judges.engine.parts import Scripted, echo, engine, run
from trajudge.judges.adapters.errors import ContextOverflow, Overloaded
from trajudge.judges.engine.budget import Budget
from trajudge.judges.engine.cache import Cache
from trajudge.judges.engine.engine import DryRunClient, EngineClient, ModelRoute
from trajudge.judges.model import Message, Model, Reply, Request, Text, Usage

MESSAGES = [Message(role="user", parts=(Text(text="Did it succeed?"),))]


def price(model: str, usage: Usage) -> float | None:
    return None if model == "unknown" else usage.input * 0.01 + usage.output * 0.1


def estimate(request: Request) -> Usage:
    return Usage(input=50, output=20)


def client(server: Scripted, cache: Path | None = None, model: str = "m") -> EngineClient:
    judging = engine(server, cache=cache, budget=Budget(price))
    route = ModelRoute("test", model, {"temperature": 0, "max_tokens": 9}, estimate)
    return EngineClient({model: judging}, route, sample=2)


def test_a_call_is_recorded_with_its_usage_and_cost() -> None:
    ask = client(Scripted())
    reply = run(ask(MESSAGES, stage="verdict", rung="pruned"))
    [call] = ask.calls
    assert (call.stage, call.rung, call.finish, call.cached) == ("verdict", "pruned", "stop", False)
    assert call.usage == reply.usage == Usage(input=100, output=10)
    assert call.cost == pytest.approx(2.0)
    assert call.text == "judged Did it succeed?"


def test_parameters_of_the_call_override_the_runs() -> None:
    seen: list[Request] = []

    def script(request: Request, nth: int) -> Reply:
        seen.append(request)
        return echo(request, nth)

    run(client(Scripted(script))(MESSAGES, max_tokens=500))
    assert seen[0].parameters == {"temperature": 0, "max_tokens": 500}
    assert (seen[0].sample, seen[0].endpoint) == (2, "test")


def test_an_unknown_price_is_no_price_and_not_zero() -> None:
    ask = client(Scripted(), model="unknown")
    run(ask(MESSAGES))
    assert ask.calls[0].cost is None


def test_an_overflow_is_in_the_ledger_and_a_failure_is_not() -> None:
    ask = client(Scripted(lambda request, nth: ContextOverflow("too long")))
    with pytest.raises(ContextOverflow):
        run(ask(MESSAGES))
    assert [call.finish for call in ask.calls] == ["context_overflow"]

    ask = client(Scripted(lambda request, nth: Overloaded("busy")))
    with pytest.raises(Overloaded):
        run(ask(MESSAGES))
    assert not ask.calls


def test_a_dry_run_prices_what_is_not_in_the_cache(tmp_path: Path) -> None:
    path = tmp_path / "cache.db"

    async def main() -> None:
        ask = client(Scripted(), path)
        await ask(MESSAGES)
        bound: Model = DryRunClient(
            ModelRoute("test", "m", {"temperature": 0, "max_tokens": 9}, estimate),
            price=price,
            cache=Cache(path),
            sample=2,
        )
        assert isinstance(bound, DryRunClient)
        assert (await bound(MESSAGES)).text == "judged Did it succeed?"
        assert (await bound(MESSAGES, max_tokens=10)).text == ""
        assert [call.cost for call in bound.calls] == [0.0, pytest.approx(2.5)]
        assert [call.cached for call in bound.calls] == [True, False]

    run(main())
