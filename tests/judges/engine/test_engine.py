"""Every request is sent once, kept, and a run that cannot succeed ends early."""

from __future__ import annotations

import asyncio
import random
import re
import subprocess
import sys
import time
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from tests.judges.engine.parts import Scripted, ask_all, echo, engine, now, request, run
from trajudge.judges.adapters import errors
from trajudge.judges.adapters.base import RateHeaders
from trajudge.judges.engine.budget import Budget
from trajudge.judges.engine.cache import Cache, SentCalls
from trajudge.judges.engine.engine import CallCounts, Engines, reasons
from trajudge.judges.engine.limits import Limiter
from trajudge.judges.engine.retry import Retry
from trajudge.judges.model import Reply, Request, Usage
from trajudge.util.errors import UserError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cache.db"


def always(error: errors.CallFailed) -> Scripted:
    return Scripted(lambda request, nth: error, latency=0.1)


def test_a_question_is_asked_once_in_one_run_and_never_again(path: Path) -> None:
    async def main(server: Scripted) -> list[bool]:
        judging = engine(server, cache=path)
        answers = await asyncio.gather(*(judging.ask(request()) for _ in range(5)))
        answers.append(await judging.ask(request()))
        await judging.close()
        return [answer.cached for answer in answers]

    first, second = Scripted(latency=0.1), Scripted()
    assert run(main(first)) == [False] + [True] * 5
    assert run(main(second)) == [True] * 6
    assert (len(first.times), len(second.times)) == (1, 0)


def test_what_several_want_asked_again_is_asked_again_once(path: Path) -> None:
    """Judgments that share a request, one after the other: the first has the reply replaced."""

    async def main() -> None:
        server = Scripted(lambda request, nth: Reply(text=str(nth)))
        judging = engine(server, cache=path)
        await judging.ask(request())
        begun = time.time()
        again = [await judging.ask(request(), refresh=True, since=begun) for _ in range(3)]
        assert [one.reply.text for one in again] == ["1"] * 3
        assert [one.cached for one in again] == [False, True, True]
        assert (await judging.ask(request(), refresh=True)).reply.text == "2", "at any time"

    run(main())


@pytest.mark.parametrize("error", [errors.Refused("filtered"), errors.ContextOverflow("too long")])
def test_an_answer_that_is_an_error_is_kept(path: Path, error: errors.CallFailed) -> None:
    async def main(server: Scripted) -> None:
        judging = engine(server, cache=path)
        with pytest.raises(type(error), match=str(error)):
            await judging.ask(request())
        await judging.close()

    run(main(always(error)))
    again = Scripted()
    run(main(again))
    assert not again.times


@pytest.mark.parametrize(
    "error", [errors.BadRequest("no"), errors.Overloaded("busy"), errors.RateLimited("slow", 1)]
)
def test_a_failure_is_not_kept(path: Path, error: errors.CallFailed) -> None:
    async def main() -> None:
        judging = engine(always(error), cache=path, attempts=2, seconds=5)
        with pytest.raises(type(error)):
            await judging.ask(request())
        judging.adapter = Scripted()
        assert not (await judging.ask(request())).cached

    run(main())


def test_under_trouble_nothing_is_lost_or_answered_twice(path: Path) -> None:
    rng = random.Random(0)
    answered: list[str] = []

    def script(request: Request, nth: int) -> Reply | errors.CallFailed:
        draw = rng.random()
        if draw < 0.05:
            return errors.RateLimited("slow down", 0.3)
        if draw < 0.06:
            return errors.ServerFailed("500")
        if draw < 0.065:
            return errors.Unreachable("dropped")
        answered.append(request.hash)
        return echo(request, nth)

    async def main() -> list[str]:
        judging = engine(Scripted(script, latency=0.2), cache=path)
        return await ask_all(judging, 1300)

    assert run(main()) == [f"judged {i}" for i in range(1300)]
    assert len(answered) == len(set(answered)) == 1300


@pytest.mark.slow
def test_a_wrong_key_ends_the_run_before_the_server_is_hammered() -> None:
    async def main(server: Scripted) -> None:
        judging = engine(server, limiter=Limiter(concurrency=8))
        results = await asyncio.gather(
            *(judging.ask(request(str(i))) for i in range(1300)), return_exceptions=True
        )
        assert {type(result) for result in results} == {UserError}
        assert "OPENAI_API_KEY" in str(results[0])
        with pytest.raises(UserError):
            await judging.ask(request("later"))

    server = always(errors.AuthFailed("the key in OPENAI_API_KEY was refused"))
    run(main(server))
    assert len(server.times) == 8


@pytest.mark.slow
def test_a_server_that_is_not_there_is_named_after_a_few_rounds() -> None:
    async def main(server: Scripted) -> None:
        results = await asyncio.gather(
            *(engine_.ask(request(str(i))) for i in range(1300)), return_exceptions=True
        )
        assert {type(result) for result in results} == {UserError}
        assert "no answer from test (127.0.0.1:9 refused the connection)" in str(results[0])

    server = always(errors.Unreachable("127.0.0.1:9 refused the connection"))
    engine_ = engine(server, limiter=Limiter(concurrency=64))
    run(main(server))
    assert len(server.times) <= 64 + 4


@pytest.mark.slow
def test_a_server_that_goes_away_for_a_minute_costs_nothing() -> None:
    async def main() -> list[str]:
        server = Scripted(latency=0.2)
        start = asyncio.get_running_loop().time()

        def script(request: Request, nth: int) -> Reply | errors.CallFailed:
            gone = 1 < asyncio.get_running_loop().time() - start < 61
            return errors.Unreachable("refused") if gone else echo(request, nth)

        server.script = script
        return await ask_all(engine(server, attempts=12), 1300)

    assert len(run(main())) == 1300


def test_a_wait_of_hours_ends_the_run_with_a_sentence() -> None:
    async def main() -> None:
        with pytest.raises(UserError, match="asks to wait 7200 s"):
            await engine(always(errors.RateLimited("daily quota", 7200.0))).ask(request())

    run(main())


@pytest.mark.slow
def test_a_full_disk_ends_the_run(path: Path) -> None:
    async def main() -> None:
        server = Scripted(latency=0.01)
        judging = engine(server, cache=path, limiter=Limiter(concurrency=4))
        assert judging.cache
        judging.cache._connection.execute("PRAGMA max_page_count = 10")
        results = await asyncio.gather(
            *(judging.ask(request(str(i))) for i in range(1300)), return_exceptions=True
        )
        assert any(isinstance(result, UserError) for result in results)
        assert len(server.times) < 1300

    asyncio.run(main())  # real time, for a real disk


class Interrupted(Exception):
    """What a command might stop its run with."""


def test_why_calls_wait_is_told_from_a_second_on() -> None:
    async def main(pause: float, *wakes: float) -> list[str]:
        calls = engine(Scripted(), limiter=Limiter(concurrency=4))
        assert [*reasons(calls)] == []
        calls.limiter.paused_until, calls.limiter.pause_reason = now() + pause, "429"
        calls.retry.wakes += [now() + wake for wake in wakes]
        return [*reasons(calls)]

    def in_an_hour(sentence: str) -> str:
        """Replace the time of day in about an hour."""
        ahead = [datetime.now() + timedelta(seconds=3600 + more) for more in range(-9, 2)]
        return re.sub("|".join(f"{at:%H:%M:%S}" for at in ahead), "later", sentence)

    assert run(main(0.99, 0.99)) == []
    assert list(map(in_an_hour, run(main(3600.0, 1.0)))) == ["paused until later (429)"]
    told = ["2 calls wait for another attempt, the first until later"]
    assert list(map(in_an_hour, run(main(0.0, 3600.0, 7200.0)))) == told
    assert len(run(main(1.0))) == len(run(main(0.0, 1.0))) == 1


def test_a_narrow_window_is_told_with_its_server_if_there_are_several(path: Path) -> None:
    class Other(Scripted):
        endpoint = "other"

    async def main(*adapters: Scripted) -> str:
        engines = Engines(
            {str(number): adapter for number, adapter in enumerate(adapters)},
            cache=Cache(path),
            limiter=lambda _: Limiter(concurrency=4),
            retry=Retry(np.random.default_rng(0)),
            budget=Budget(lambda model, usage: None),
        )
        assert engines.waits() == ""
        engines["0"].limiter.concurrency.size = 3
        engines["0"].counts.retried = 2
        told = engines.waits()
        await engines.close()
        return told

    assert run(main(Scripted())) == "window 3 of 4, 2 retries"
    assert run(main(Scripted(), Other())) == "test: window 3 of 4, test: 2 retries"
    assert CallCounts() == CallCounts(0, 0, 0, 0, 0, 0, 0)


def test_parameters_are_kept_once_with_the_adapter_that_sent_them() -> None:
    sent, adapter = SentCalls(), Scripted()
    noted = []
    for parameters, cached in (
        ({}, False),
        ({"a": 1}, True),
        ({"a": 1}, True),
        ({"a": 1}, False),
        ({"a": 1}, True),
        ({"b": 1}, False),
        ({"b": 1}, False),
        ({"a": 1}, False),
    ):
        sent.note(adapter, "m", parameters, cached=cached)
        noted.append(sent.changes)
    assert noted == [0, 1, 1, 2, 2, 3, 3, 3]
    a, b = sent
    assert (a.adapter, b.adapter) == ("scripted", "scripted")
    assert [dict(one.parameters) for one in (a, b)] == [{"a": 1}, {"b": 1}]


def test_stop_lets_what_is_in_flight_finish(path: Path) -> None:
    async def main() -> None:
        judging = engine(Scripted(latency=1.0), cache=path, limiter=Limiter(concurrency=3))
        asks = [asyncio.create_task(judging.ask(request(str(i)))) for i in range(10)]
        await asyncio.sleep(0.5)
        judging.stop(Interrupted())
        results = await asyncio.gather(*asks, return_exceptions=True)
        assert [isinstance(r, Interrupted) for r in results] == [False] * 3 + [True] * 7
        await judging.close()

    run(main())
    assert all(Cache(path).get(request(str(i)).hash) for i in range(3))


ASKER = """
import asyncio, sys
from pathlib import Path
from trajudge.judges.engine.limits import Limiter
from tests.judges.engine.parts import Scripted, engine, request

async def main():
    server = Scripted(latency=0.01)
    judging = engine(server, cache=Path(sys.argv[1]), limiter=Limiter(concurrency=8))
    async def ask(i):
        answer = await judging.ask(request(str(i)))
        print(i, "cached" if answer.cached else "sent", flush=True)
    await asyncio.gather(*(ask(i) for i in range(300)))
    await judging.close()

asyncio.run(main())
"""


def seen_before_death(command: list[str], sent: int | None = None) -> list[str]:
    """What the asker tells, a line a reply; killed once it has seen ``sent`` new ones."""
    told = list[str]()
    with subprocess.Popen(
        command, cwd=Path(__file__).parents[3], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        for line in process.stdout:
            told.append(line)
            if sum(line.endswith("sent\n") for line in told) == sent:
                process.kill()
                break
        told += process.stdout
    return told


@pytest.mark.slow
def test_after_kills_nothing_that_was_seen_is_sent_again(tmp_path: Path) -> None:
    """A reply that somebody saw is in the cache, whenever the process is killed."""
    command = [sys.executable, "-c", ASKER, str(tmp_path / "cache.db")]
    rng = random.Random(0)
    told = [line for _ in range(5) for line in seen_before_death(command, rng.randint(1, 50))]
    last = seen_before_death(command)
    assert len(last) == 300
    sent = [line.split()[0] for line in [*told, *last] if line.endswith("sent\n")]
    assert 5 <= len(sent) == len(set(sent)) <= 300


@pytest.mark.parametrize(
    ("limiter", "budget", "times"),
    [
        (Limiter(), None, 0),
        (Limiter(tpm=1e6), None, 1),
        (Limiter(), Budget(lambda model, usage: 0.01, limit=1.0), 1),
        (Limiter(tpm=1e6), Budget(lambda model, usage: 0.01, limit=1.0), 1),
    ],
)
def test_tokens_are_estimated_only_for_a_limit_and_once(
    limiter: Limiter, budget: Budget | None, times: int
) -> None:
    estimated: list[Request] = []

    def estimate(request: Request) -> Usage:
        estimated.append(request)
        return Usage(input=100)

    adapter = Scripted(
        lambda request, nth: errors.Overloaded("busy") if nth < 2 else echo(request, nth)
    )
    run(engine(adapter, limiter=limiter, budget=budget).ask(request(), estimate=estimate))
    assert len(estimated) == times


def test_the_tokens_of_a_refused_request_tell_which_limit_it_ran_into() -> None:
    """3,000 tokens are left and the request takes 5,000: too fast, not too many at once."""
    limits = RateHeaders(tokens=1e6, tokens_left=3000)
    refusal = errors.RateLimited("slow down", 0.1, limits)
    adapter = Scripted(lambda request, nth: echo(request, nth) if nth else refusal)
    limiter = Limiter(concurrency=64)
    asked = engine(adapter, limiter=limiter).ask(request(), estimate=lambda _: Usage(input=5000))
    run(asked)
    assert limiter.concurrency.size == 64
