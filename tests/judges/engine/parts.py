"""Time that jumps, and servers with known limits that live in it."""

from __future__ import annotations

import asyncio
import selectors
from collections import Counter
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from trajudge.judges.adapters.base import AdapterResponse, RateHeaders
from trajudge.judges.adapters.errors import CallFailed, RateLimited
from trajudge.judges.engine.budget import Budget
from trajudge.judges.engine.cache import Cache
from trajudge.judges.engine.engine import Engine
from trajudge.judges.engine.limits import Limiter
from trajudge.judges.engine.retry import Retry
from trajudge.judges.model import Message, Reply, Request, Text, Usage

T = TypeVar("T")


class _JumpingSelector(selectors.DefaultSelector):
    """Where a real loop would sleep, the clock is set forward instead."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1000.0

    def select(self, timeout: float | None = None) -> Any:
        if timeout is None:  # nothing but a thread can wake the loop
            ready = super().select(10)
            if not ready:
                raise RuntimeError("deadlock: every task waits for another")
            return ready
        ready = super().select(0)
        if not ready:
            self.now += timeout
        return ready


class _JumpingLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self.jumping = _JumpingSelector()
        super().__init__(self.jumping)

    def time(self) -> float:
        return self.jumping.now


def run(main: Coroutine[Any, Any, T]) -> T:
    """Like ``asyncio.run``, but sleeping takes no time."""
    with asyncio.Runner(loop_factory=_JumpingLoop) as runner:
        return runner.run(main)


def now() -> float:
    return asyncio.get_running_loop().time()


def request(text: str = "Did the agent succeed?", sample: int = 0) -> Request:
    messages = (Message(role="user", parts=(Text(text=text),)),)
    return Request(endpoint="test", model="m", messages=messages, sample=sample)


def text_of(request: Request) -> str:
    part = request.messages[0].parts[0]
    assert isinstance(part, Text)
    return part.text


Script = Callable[[Request, int], Reply | CallFailed]
"""From a request and how often it came before to what happens to it."""


def echo(request: Request, _: int) -> Reply:
    return Reply(text=f"judged {text_of(request)}", usage=Usage(input=100, output=10))


class Scripted:
    """An adapter that does as the script says, after ``latency`` seconds."""

    name = "scripted"
    endpoint = "test"

    def __init__(self, script: Script = echo, latency: float = 0.0) -> None:
        self.script = script
        self.latency = latency
        self.came: Counter[str] = Counter()
        self.times: list[float] = []
        self.in_flight = 0
        self.most_in_flight = 0
        self.refusals = 0

    async def send(self, request: Request) -> AdapterResponse:
        self.times.append(now())
        nth = self.came[request.hash]
        self.came[request.hash] += 1
        self.in_flight += 1  # refusals on their way included
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            self.admit(request)
            await asyncio.sleep(self.latency)
        except RateLimited:
            await asyncio.sleep(min(self.latency, 0.001))  # a refusal travels, too
            raise
        finally:
            self.in_flight -= 1
        outcome = self.script(request, nth)
        if isinstance(outcome, CallFailed):
            raise outcome
        return AdapterResponse(outcome, self.limits())

    def admit(self, request: Request) -> None:
        """Raises RateLimited if the server does not take it."""

    def limits(self) -> RateHeaders | None:
        return None

    async def close(self) -> None:
        pass


class Slots(Scripted):
    """Admits ``slots`` at once; the rest gets a bare 429."""

    def __init__(self, slots: int, latency: float) -> None:
        super().__init__(latency=latency)
        self.slots = slots

    def admit(self, request: Request) -> None:
        if self.in_flight > self.slots:
            self.refusals += 1
            raise RateLimited("too many at once")


class Metered(Scripted):
    """Admits ``rpm`` requests a minute with one second's burst; tells it, or only refuses."""

    def __init__(self, rpm: float, latency: float, *, tells: bool) -> None:
        super().__init__(latency=latency)
        self.rpm = rpm
        self.tells = tells
        self.level = rpm / 60
        self.filled = 0.0

    def admit(self, request: Request) -> None:
        rate = self.rpm / 60
        self.level = min(rate, self.level + (now() - self.filled) * rate)
        self.filled = now()
        if self.level < 1:
            self.refusals += 1
            raise RateLimited("too fast", (1 - self.level) / rate if self.tells else None)
        self.level -= 1

    def limits(self) -> RateHeaders | None:
        return RateHeaders(requests=self.rpm) if self.tells else None


def engine(
    adapter: Scripted,
    *,
    cache: Path | None = None,
    limiter: Limiter | None = None,
    budget: Budget | None = None,
    attempts: int = 6,
    seconds: float = 900.0,
) -> Engine:
    """An engine with everything that a test does not care for."""
    return Engine(
        adapter,
        cache=Cache(cache) if cache else None,
        limiter=limiter or Limiter(),
        retry=Retry(np.random.default_rng(0), attempts=attempts, seconds=seconds),
        budget=budget or Budget(lambda model, usage: None),
    )


async def ask_all(engine: Engine, count: int) -> list[str]:
    """The replies to ``count`` different requests, all asked at once."""
    answers = await asyncio.gather(*(engine.ask(request(str(i))) for i in range(count)))
    return [answer.reply.text for answer in answers]
