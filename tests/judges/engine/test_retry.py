"""Who is tried again, when, and when it ends."""

from __future__ import annotations

import numpy as np
import pytest

from tests.judges.engine.parts import now, run
from trajudge.judges.adapters.errors import (
    BadReply,
    BadRequest,
    CallFailed,
    Forbidden,
    NoAccess,
    Overloaded,
    RateLimited,
    ServerFailed,
    Unreachable,
)
from trajudge.judges.engine.retry import CircuitBreaker, Retry


class Failing:
    """Fails as listed, then succeeds."""

    def __init__(self, *errors: CallFailed) -> None:
        self.errors = list(errors)
        self.times: list[float] = []
        self.again: list[bool] = []

    async def __call__(self, again: bool) -> str:
        self.times.append(now())
        self.again.append(again)
        if self.errors:
            raise self.errors.pop(0)
        return "done"


def retry(**options: float) -> Retry:
    return Retry(np.random.default_rng(0), **options)  # type: ignore[arg-type]


def test_a_passing_failure_is_tried_again() -> None:
    failing = Failing(Overloaded("busy"), BadReply("cut"))
    assert run(retry().call(failing)) == "done"
    assert failing.again == [False, True, True]


def test_waits_grow_and_the_servers_own_wait_is_kept() -> None:
    failing = Failing(Overloaded("busy"), Overloaded("busy"), Overloaded("busy", 17.0))
    run(retry(first=1.0).call(failing))
    waits = np.diff(failing.times)
    assert 0.5 <= waits[0] <= 1.0 <= waits[1] <= 2.0
    assert waits[2] == pytest.approx(17.0)


def test_what_fails_for_good_is_not_tried_again() -> None:
    failing = Failing(BadRequest("no such parameter"))
    with pytest.raises(BadRequest):
        run(retry().call(failing))
    assert len(failing.times) == 1


def test_the_last_failure_is_raised_after_so_many_attempts() -> None:
    failing = Failing(*[Overloaded(str(i)) for i in range(10)])
    with pytest.raises(Overloaded, match="2"):
        run(retry(attempts=3).call(failing))
    assert len(failing.times) == 3


def test_refusals_count_by_time_only() -> None:
    failing = Failing(*[RateLimited("slow down", 1.0) for _ in range(50)])
    assert run(retry(attempts=3).call(failing)) == "done"

    failing = Failing(*[RateLimited("slow down", 1.0) for _ in range(50)])
    with pytest.raises(RateLimited):
        run(retry(attempts=3, seconds=20).call(failing))
    assert failing.times[-1] - failing.times[0] == pytest.approx(20)


def test_a_wait_doubles_up_to_its_longest_and_is_shortened_by_up_to_a_half() -> None:
    policy, short = retry(), retry(first=4.0, longest=4.0)
    waits = [[policy.backoff(attempts) for _ in range(100)] for attempts in range(1, 10)]
    for number, drawn in enumerate(waits):
        full = min(0.25 * 2**number, 30.0)
        assert full / 2 <= min(drawn) <= max(drawn) <= full
    assert max(short.backoff(3) for _ in range(100)) > 3.5


def test_the_same_seed_waits_the_same() -> None:
    runs = [Failing(Overloaded("a"), Overloaded("b")) for _ in range(2)]
    for failing in runs:
        run(retry().call(failing))
    assert runs[0].times == runs[1].times


def ended(breaker: CircuitBreaker, error: CallFailed, count: int) -> list[bool]:
    """Let so many calls fail, one after the other; whether the run has ended after each."""
    return [breaker.failed(error, now, now + 0.5) is not None for now in range(count)]


@pytest.mark.parametrize("error", [BadReply("cut"), BadRequest("no"), Forbidden("not you")])
def test_ten_failures_of_a_kind_without_an_answer_end_the_run(error: CallFailed) -> None:
    assert ended(CircuitBreaker("x", 900.0), error, 10) == [False] * 9 + [True]
    answering = CircuitBreaker("x", 900.0)
    answering.answered()
    assert ended(answering, error, 20) == [False] * 20


def test_three_rounds_of_silence_end_a_run_that_never_reached_its_server() -> None:
    assert ended(CircuitBreaker("x", 900.0), Unreachable("gone"), 3) == [False, False, True]
    together = CircuitBreaker("x", 900.0)
    assert {together.failed(Unreachable("gone"), 0.0, now) for now in (1.0, 1.1, 1.2)} == {None}
    reached = CircuitBreaker("x", 900.0)
    assert reached.failed(Overloaded("busy"), 0.0, 0.0) is None
    assert ended(reached, Unreachable("gone"), 9) == [False] * 9


def test_a_wait_that_is_longer_than_a_call_may_take_ends_the_run() -> None:
    breaker = CircuitBreaker("x", 900.0)
    for wait in (None, 900.0):
        assert breaker.failed(RateLimited("slow", wait), 0.0, 0.0) is None
    assert "x asks to wait 901 s (slow)" in str(breaker.failed(RateLimited("slow", 901.0), 0, 0))


@pytest.mark.parametrize(
    ("requests", "seconds", "again", "ends"),
    [
        (30, 120.0, False, True),
        (29, 120.0, False, False),
        (30, 119.9, False, False),
        (30, 120.0, True, False),
    ],
)
def test_thirty_requests_that_fail_for_two_minutes_end_the_run(
    requests: int, seconds: float, again: bool, ends: bool
) -> None:
    breaker = CircuitBreaker("x", 900.0)
    failed = ServerFailed("500")
    for _ in range(requests - 1):
        assert breaker.failed(failed, 0.0, 0.0) is None
    last = breaker.failed(failed, 0.0, seconds, again=again)
    assert (last is not None) is ends
    assert breaker.gave_up(failed) is None


def test_access_that_is_lost_ends_the_run_at_once_and_keeps_what_was_answered() -> None:
    breaker = CircuitBreaker("x", 900.0)
    assert str(breaker.failed(NoAccess("wrong key"), 0.0, 0.0)) == "wrong key"
    breaker = CircuitBreaker("x", 900.0)
    breaker.answered()
    told = "wrong key; everything that was answered is kept"
    assert str(breaker.failed(NoAccess("wrong key"), 0.0, 0.0)) == told
