"""The money of a run is reserved before a call and settled after it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.judges.engine.parts import Scripted, engine, request, run
from trajudge.judges.engine.budget import (
    Budget,
    BudgetSpent,
    Payments,
    Reservation,
    dollars_by_request,
    tokens_of,
)
from trajudge.judges.model import Usage
from trajudge.util.errors import UserError


def a_dollar_a_token(model: str, usage: Usage) -> float | None:
    return None if model == "unknown" else float(usage.input + usage.output)


async def spend(budget: Budget, estimate: int, actual: int, seconds: float = 0.0) -> None:
    async with budget.reserve("m", Usage(input=estimate)) as reservation:
        await asyncio.sleep(seconds)
        budget.settle(reservation, Usage(input=actual))


def test_spending_stops_before_the_limit() -> None:
    async def main() -> None:
        budget = Budget(a_dollar_a_token, limit=10)
        for _ in range(3):
            await spend(budget, 3, 3)
        with pytest.raises(BudgetSpent, match="10"):
            await spend(budget, 3, 3)
        assert budget.spent == 9

    run(main())


def test_calls_in_flight_are_waited_for_as_they_may_cost_less() -> None:
    async def main() -> None:
        budget = Budget(a_dollar_a_token, limit=10)
        await asyncio.gather(*(spend(budget, 6, 2, seconds=1) for _ in range(3)))
        assert budget.spent == 6

    run(main())


def test_the_sentence_of_the_limit_knows_of_calls_under_way() -> None:
    async def main() -> tuple[str, str]:
        budget = Budget(a_dollar_a_token, limit=10)
        await spend(budget, 3, 3)
        under_way = asyncio.create_task(spend(budget, 2, 2, seconds=1))
        await asyncio.sleep(0.5)
        with pytest.raises(BudgetSpent) as early:
            await spend(budget, 8, 8)
        await under_way
        with pytest.raises(BudgetSpent) as late:
            await spend(budget, 8, 8)
        return str(early.value), str(late.value)

    early, late = run(main())
    assert "at most $7.0000 is left of --max-cost 10, at least $3.0000 is spent" in early
    assert "and $5.0000 is left of --max-cost 10, $5.0000 is spent" in late


def test_a_reply_is_kept_though_its_payment_cannot_be_noted(tmp_path: Path) -> None:
    """The call is paid; that the run ends is known before the next one."""

    async def main() -> None:
        payments = Payments(tmp_path / "gone" / "payments.jsonl")
        budget = Budget(a_dollar_a_token, payments=payments)
        async with budget.reserve("m", Usage(input=1)) as reservation:
            budget.settle(reservation, Usage(input=1))
        with pytest.raises(UserError, match="cannot be written"):
            await spend(budget, 1, 1)

    run(main())


def test_estimates_that_were_too_low_are_corrected() -> None:
    async def main() -> None:
        budget = Budget(a_dollar_a_token, limit=100)
        await spend(budget, 10, 40)
        await spend(budget, 10, 40)
        with pytest.raises(BudgetSpent):
            await spend(budget, 10, 40)

    run(main())


def test_a_call_that_fails_gives_its_money_back() -> None:
    async def main() -> None:
        budget = Budget(a_dollar_a_token, limit=10)
        for _ in range(5):
            with pytest.raises(ValueError):
                async with budget.reserve("m", Usage(input=10)):
                    raise ValueError
        await spend(budget, 10, 10)

    run(main())


def test_a_limit_needs_a_price() -> None:
    with pytest.raises(UserError, match=r"'unknown'.*--max-cost"):
        Budget(a_dollar_a_token, limit=1).require_price("unknown")
    Budget(a_dollar_a_token).require_price("unknown")


def test_what_is_counted_of_a_call() -> None:
    assert tokens_of(Usage(input=1, cache_read=2, cache_write=4, output=8, reasoning=3)) == 15
    reserved = Reservation("m", 3.0)
    assert (reserved.cost, reserved.is_unpriced, reserved.is_presumed) == (0.0, False, False)
    attempts = {"a": ("x", 1.0), "b": ("x", None), "c": ("y", None), "d": ("x", 2.0)}
    assert dollars_by_request(attempts) == {"x": 3.0}


def test_the_engine_never_spends_more_than_the_limit() -> None:
    async def main() -> None:
        server = Scripted(latency=0.2)
        budget = Budget(a_dollar_a_token, limit=1000)
        judging = engine(server, budget=budget)
        estimate = Usage(input=100, output=10)
        results = await asyncio.gather(
            *(judging.ask(request(str(i)), estimate=lambda _: estimate) for i in range(30)),
            return_exceptions=True,
        )
        assert sum(isinstance(result, BudgetSpent) for result in results) == 21
        assert budget.spent == 990
        assert len(server.times) == 9

    run(main())
