"""All tasks wait at one gate, which listens to the server."""

from __future__ import annotations

import asyncio
from collections import Counter

import numpy as np
import pytest

from tests.judges.engine.parts import (
    Metered,
    Scripted,
    Slots,
    ask_all,
    echo,
    engine,
    now,
    request,
    run,
    text_of,
)
from trajudge.eval.runs.jobs import workers_for
from trajudge.judges.adapters.base import RateHeaders
from trajudge.judges.adapters.errors import RateLimited, ServerFailed, Unreachable
from trajudge.judges.engine.limits import Limiter, Permit
from trajudge.judges.model import Reply, Request

JUDGMENTS, LATENCY = 1300, 0.2


async def timed(server: Scripted, concurrency: int = 64) -> float:
    start = now()
    texts = await ask_all(engine(server, limiter=Limiter(concurrency=concurrency)), JUDGMENTS)
    assert texts == [f"judged {i}" for i in range(JUDGMENTS)]
    return now() - start


@pytest.mark.slow
def test_without_limits_the_concurrency_is_used_up() -> None:
    server = Scripted(latency=LATENCY)
    assert run(timed(server)) == pytest.approx(JUDGMENTS * LATENCY / 64, rel=0.05)
    assert server.most_in_flight == 64


class Troubled(Scripted):
    """Refuses 5 % with Retry-After 0.3 s, fails at 1 %, drops 0.5 %."""

    def __init__(self, seed: int) -> None:
        self.answers = Counter[str]()
        super().__init__(self.answer, LATENCY)
        self.rng = np.random.default_rng(seed)

    def answer(self, request: Request, nth: int) -> Reply:
        self.answers[text_of(request)] += 1
        return echo(request, nth)

    def admit(self, request: Request) -> None:
        draw = self.rng.random()
        if draw < 0.05:
            raise RateLimited("too many requests", 0.3)
        if draw < 0.06:
            raise ServerFailed("500")
        if draw < 0.065:
            raise Unreachable("dropped")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_trouble_takes_a_fifth_more_time_at_most_and_loses_nothing(seed: int) -> None:
    server = Troubled(seed)

    async def main() -> float:
        calls = engine(server, limiter=Limiter(concurrency=64))
        workers, start = asyncio.Semaphore(workers_for(64)), now()

        async def ask(number: int) -> None:
            async with workers:
                await calls.ask(request(str(number)))

        await asyncio.gather(*map(ask, range(JUDGMENTS)))
        return now() - start

    assert run(main()) <= 1.2 * JUDGMENTS * LATENCY / 64
    assert server.answers == Counter(map(str, range(JUDGMENTS)))


def test_a_limit_a_minute_that_is_told_is_kept() -> None:
    server = Metered(6000, LATENCY, tells=True)
    assert run(timed(server)) <= 1.2 * JUDGMENTS / 100
    assert server.refusals <= 60


@pytest.mark.slow
@pytest.mark.parametrize(("slots", "learning"), [(48, 44), (24, 60)])
def test_a_limit_at_once_is_found_out(slots: int, learning: int) -> None:
    """The first wave finds ``64 - slots`` closed doors; learning the limit costs few more."""
    server = Slots(slots, LATENCY)
    assert run(timed(server)) <= 1.2 * JUDGMENTS * LATENCY / slots
    assert server.refusals <= 64 - slots + learning


@pytest.mark.parametrize(
    ("wait", "refusals", "shrinks"),
    [(0.3, 8, False), (0.3, 9, True), (None, 5, False), (None, 6, True)],
)
def test_a_few_refusals_that_name_a_wait_are_bad_luck(
    wait: float | None, refusals: int, shrinks: bool
) -> None:
    """Of 5 % refusals chance makes more than 5 of 32 now and then, more than 8 hardly ever."""

    async def main() -> int:
        limiter = Limiter(concurrency=64)
        permits = [await limiter.acquire() for _ in range(40)]
        for permit in permits[-refusals:]:
            limiter.refused(permit, wait, None)
        return limiter.concurrency.size

    assert (run(main()) < 64) is shrinks


def test_refusals_are_counted_among_the_last_32() -> None:
    async def main() -> int:
        limiter = Limiter(concurrency=64)
        permits = [await limiter.acquire() for _ in range(64)]
        for permit in permits[:5]:
            limiter.refused(permit, None, None)
        for permit in permits[5:32]:
            limiter.answered(permit, None, None)
        limiter.refused(permits[62], None, None)
        return limiter.concurrency.size

    assert run(main()) == 64


def test_pauses_double_up_to_half_a_minute_and_an_answer_halves_them() -> None:
    async def main() -> list[float]:
        limiter, pauses = Limiter(), []
        for _ in range(11):
            limiter.refused(await limiter.acquire(), None, None)
            pauses.append(limiter.paused_until - now())
        limiter.answered(await limiter.acquire(), None, None)
        limiter.answered(await limiter.acquire(), None, None)
        limiter.refused(await limiter.acquire(), None, None)
        return [*pauses, limiter.paused_until - now()]

    doubled = [0.1 * 2**number for number in range(9)]
    assert run(main()) == pytest.approx([*doubled, 30.0, 30.0, 15.0])


@pytest.mark.parametrize(("wait", "paused"), [(7.0, 7.0), (None, 0.0)])
def test_a_wait_holds_for_all_where_half_of_them_are_refused(
    wait: float | None, paused: float
) -> None:
    async def main() -> float:
        limiter = Limiter()
        first, _ = await limiter.acquire(), await limiter.acquire()
        limiter.refused(first, wait, None)
        return max(0.0, limiter.paused_until - now())

    assert run(main()) == paused


def test_half_of_the_last_16_calls_that_a_server_fails_at_are_a_pause() -> None:
    async def main() -> list[bool]:
        limiter = Limiter(concurrency=4)
        for _ in range(9):
            limiter.answered(await limiter.acquire(), None, None)
        paused = []
        for _ in range(8):
            limiter.server_failed(await limiter.acquire())
            paused.append(limiter.paused_until > now())
        return paused

    assert run(main()) == [False] * 7 + [True]


def test_what_an_answer_used_beyond_its_estimate_is_paid_by_the_next() -> None:
    async def main() -> tuple[Permit, float]:
        limiter = Limiter(tpm=60_000)
        unmeasured = await limiter.acquire()
        limiter.answered(await limiter.acquire(tokens=1000), None, 1500)
        return unmeasured, limiter.tokens.delay(now())

    unmeasured, delay = run(main())
    assert (unmeasured.tokens, unmeasured.again) == (0.0, False)
    assert delay == pytest.approx(1.5 / 0.995 - 0.1)


def test_a_limit_that_is_only_refused_loses_nothing() -> None:
    server = Metered(6000, LATENCY, tells=False)
    assert run(timed(server)) <= 1.2 * JUDGMENTS / 100


def test_a_fixed_number_of_tokens_a_minute_is_kept() -> None:
    async def main() -> float:
        limiter, start = Limiter(tpm=60_000), now()
        for _ in range(10):
            limiter.release(await limiter.acquire(tokens=3000))
        return now() - start

    assert run(main()) == pytest.approx(9 * 3.0, rel=0.02)


def test_a_pause_that_the_server_asks_for_holds_for_all() -> None:
    async def main() -> float:
        limiter, start = Limiter(), now()
        limiter.refused(await limiter.acquire(), retry_after=7.0, limits=None)
        limiter.release(await limiter.acquire())
        return now() - start

    assert run(main()) == pytest.approx(7.0)


def test_one_refusal_among_many_answers_holds_up_nobody() -> None:
    async def main() -> float:
        limiter, start = Limiter(), now()
        permits = [await limiter.acquire() for _ in range(20)]
        limiter.refused(permits.pop(), retry_after=7.0, limits=None)
        await limiter.acquire()
        return now() - start

    assert run(main()) == 0


def test_a_refusal_by_the_told_limit_leaves_the_window_alone() -> None:
    async def main() -> int:
        limiter = Limiter(concurrency=8)
        permits = [await limiter.acquire() for _ in range(8)]
        limits = RateHeaders(requests=600, requests_left=0)
        for permit in permits:
            limiter.refused(permit, retry_after=0.1, limits=limits)
        return limiter.concurrency.size

    assert run(main()) == 8


def test_who_tries_again_goes_first_and_in_turn() -> None:
    async def main() -> list[str]:
        limiter, order = Limiter(concurrency=1), []
        first = await limiter.acquire()

        async def wait(name: str, again: bool) -> None:
            permit = await limiter.acquire(again=again)
            order.append(name)
            limiter.release(permit)

        waiting = [("new", False), ("again", True), ("again later", True)]
        tasks = [asyncio.create_task(wait(name, again)) for name, again in waiting]
        await asyncio.sleep(0)
        limiter.release(first)
        await asyncio.gather(*tasks)
        return order

    assert run(main()) == ["again", "again later", "new"]


class Failing(Scripted):
    """Answers 500 to the requests ``failing``, to all others for the seconds ``ill``."""

    def __init__(self, failing: range = range(0), ill: tuple[float, float] = (0, 0)) -> None:
        super().__init__(self.answer, LATENCY)
        self.failing, self.ill, self.began = failing, ill, 0.0

    def answer(self, request: Request, nth: int) -> Reply | ServerFailed:
        is_ill = self.ill[0] <= now() - self.began < self.ill[1]
        if is_ill or int(text_of(request)) in self.failing:
            return ServerFailed("500")
        return echo(request, nth)

    async def run(self, count: int, at_once: int = 32) -> tuple[float, int]:
        """Ask so many requests; the seconds that it takes, and how many failed."""
        calls = engine(self, limiter=Limiter(concurrency=at_once))
        workers = asyncio.Semaphore(workers_for(at_once))
        self.began = now()

        async def is_answered(number: int) -> bool:
            async with workers:
                try:
                    await calls.ask(request(str(number)))
                except ServerFailed:
                    return False
                return True

        answered = await asyncio.gather(*map(is_answered, range(count)))
        return now() - self.began, answered.count(False)


def test_requests_that_the_server_never_answers_hold_up_no_others() -> None:
    """All six attempts of each take their own 8 seconds, and the others theirs."""
    seconds, failed = run(Failing(range(0, 130, 5)).run(130))
    assert failed == 26
    assert seconds <= 15


def test_requests_that_all_fail_are_given_up_in_two_minutes_and_without_a_flood() -> None:
    """As those of an earlier run that are asked for again: nothing else tells of the server."""
    server = Failing(range(28))
    seconds, failed = run(server.run(28))
    assert failed == 28
    assert seconds <= 120
    later = [at - server.began for at in server.times if at - server.began > 10]
    assert len(later) <= 2 * (seconds - 10)


def test_a_server_that_fails_for_a_minute_loses_no_call() -> None:
    seconds, failed = run(Failing(ill=(0, 60)).run(130))
    assert failed == 0
    assert seconds <= 70


@pytest.mark.parametrize(("at_once", "begins", "lost"), [(4, 0, 0), (4, 3, 8), (8, 3, 0)])
def test_few_calls_at_once_lose_few_to_a_server_that_fails_for_a_minute(
    at_once: int, begins: int, lost: int
) -> None:
    """Each takes its six attempts within seconds, unless the first that fail hold up the rest."""
    seconds, failed = run(Failing(ill=(begins, begins + 60)).run(260, at_once))
    assert failed <= lost
    assert seconds <= 80


@pytest.mark.parametrize(("at_once", "most"), [(1, 180), (4, 35), (8, 20)])
def test_some_requests_that_always_fail_cost_few_calls_at_once_no_pause(
    at_once: int, most: int
) -> None:
    seconds, failed = run(Failing(range(0, 126, 6)).run(130, at_once))
    assert failed == 21
    assert seconds <= most


def test_a_cancelled_waiter_keeps_no_place() -> None:
    async def main() -> Permit:
        limiter = Limiter(concurrency=1)
        first = await limiter.acquire()
        waiters = [asyncio.create_task(limiter.acquire()) for _ in range(2)]
        await asyncio.sleep(0)
        limiter.release(first)  # admits the first waiter, which is cancelled before it knows
        waiters[0].cancel()
        permit = await waiters[1]
        assert limiter.in_flight == 1
        return permit

    run(main())


def test_after_stop_nobody_is_admitted() -> None:
    async def main() -> None:
        limiter = Limiter(concurrency=1)
        await limiter.acquire()
        waiter = asyncio.create_task(limiter.acquire())
        await asyncio.sleep(0)
        limiter.stop(KeyError("over"))
        with pytest.raises(KeyError):
            await waiter
        with pytest.raises(KeyError):
            await limiter.acquire()

    run(main())
