"""Who is tried again, when, and when it ends."""

from __future__ import annotations

import numpy as np
import pytest

from tests.judges.engine.parts import now, run
from trajudge.judges.adapters.errors import (
    BadReply,
    BadRequest,
    CallFailed,
    Overloaded,
    RateLimited,
)
from trajudge.judges.engine.retry import Retry


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
