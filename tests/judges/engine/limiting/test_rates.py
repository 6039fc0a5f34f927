"""What the window and the pace learn from answers and refusals."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trajudge.judges.engine.limits import AdaptiveConcurrency, RateLimiter


def departures(rate: RateLimiter, count: int, start: float = 0.0) -> list[float]:
    """When ``count`` requests go that all want to go at ``start``."""
    now, times = start, []
    for _ in range(count):
        now += max(0.0, rate.delay(now))
        rate.take(now)
        times.append(now)
    return times


def test_a_pace_uses_almost_all_of_its_limit_and_never_more() -> None:
    times = departures(RateLimiter(6000), 1000)
    assert times[-1] == pytest.approx(1000 / 99.5, rel=0.02)


def test_without_a_limit_nothing_waits() -> None:
    assert departures(RateLimiter(), 1000)[-1] == 0


def test_a_slow_pace_does_not_bunch() -> None:
    times = departures(RateLimiter(60), 4)
    assert min(b - a for a, b in itertools.pairwise(times)) > 0.9


def test_the_lower_of_the_fixed_and_the_told_limit_holds() -> None:
    rate = RateLimiter(600)
    rate.update_limit(6000)
    assert rate.per_minute == 600
    rate.update_limit(60)
    assert rate.per_minute == 60


def test_units_taken_beyond_the_estimate_are_paid_later() -> None:
    rate = RateLimiter(60_000)
    rate.take(0.0, 1000)
    before = rate.delay(0.0)
    rate.settle(500)
    assert rate.delay(0.0) == pytest.approx(before + 0.5, rel=0.01)


def test_a_refused_pace_slows_down_and_recovers() -> None:
    rate = RateLimiter(6000)
    rate.refused(100.0)
    assert rate.share(100.0) < 0.9
    assert rate.share(110.0) == pytest.approx(0.995)


@given(st.lists(st.tuples(st.sampled_from(["answered", "refused"]), st.integers(1, 64))))
def test_a_window_stays_between_one_and_its_cap(events: list[tuple[str, int]]) -> None:
    concurrency = AdaptiveConcurrency(32)
    for kind, level in events:
        if kind == "answered":
            concurrency.answered(level)
        else:
            concurrency.refused(level, level - 1, alone=False)
        assert 1 <= concurrency.size <= 32


def test_a_refusal_shrinks_the_window_to_what_the_server_holds() -> None:
    concurrency = AdaptiveConcurrency(64)
    concurrency.refused(64, 48, alone=False)
    assert concurrency.size == 48


def test_one_refusal_at_a_level_that_was_answered_before_is_bad_luck() -> None:
    concurrency = AdaptiveConcurrency(64)
    concurrency.answered(64)
    concurrency.refused(40, 39, alone=True)
    assert concurrency.size == 64


def test_a_limit_that_is_gone_is_found_out() -> None:
    concurrency = AdaptiveConcurrency(64)
    concurrency.refused(64, 1, alone=False)
    for _ in range(200):
        concurrency.answered(concurrency.size)
    assert concurrency.size == 64
