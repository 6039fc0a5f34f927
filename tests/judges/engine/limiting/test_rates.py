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


def test_a_pace_may_catch_up_a_tenth_of_a_second() -> None:
    rate = RateLimiter(60)
    assert rate.delay(1.0) == pytest.approx(-1.1)
    rate.take(0.0)
    assert [rate.delay(0.0), rate.delay(0.5)] == pytest.approx([1 / 0.995 - 0.1, 1 / 0.995 - 0.6])


def test_a_limit_of_nothing_is_none() -> None:
    rate = RateLimiter()
    for told in (0.0, None):
        rate.update_limit(told)
    assert rate.per_minute is None


def test_units_taken_beyond_the_estimate_are_paid_later() -> None:
    rate = RateLimiter(60_000)
    rate.take(0.0, 1000)
    before = rate.delay(0.0)
    rate.settle(500)
    assert rate.delay(0.0) == pytest.approx(before + 0.5, rel=0.01)


def test_a_refused_pace_slows_down_and_recovers() -> None:
    rate = RateLimiter(6000)
    rate.refused(100.0)
    shares = [rate.share(now) for now in (100.0, 101.0, 102.9, 103.0)]
    assert shares == pytest.approx([0.84575, 0.89575, 0.99075, 0.995])


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


@pytest.mark.parametrize(
    ("level", "alone", "size"), [(40, True, 64), (64, True, 30), (40, False, 30)]
)
def test_one_refusal_below_the_window_is_bad_luck(level: int, alone: bool, size: int) -> None:
    concurrency = AdaptiveConcurrency(64)
    concurrency.answered(20)
    concurrency.refused(level, 30, alone=alone)
    assert concurrency.size == size
    concurrency.refused(20, 10, alone=True)
    assert concurrency.size == size


def answers_until_growth(concurrency: AdaptiveConcurrency) -> int:
    before, count = concurrency.size, 0
    while concurrency.size == before and count < 99:
        concurrency.answered(before)
        count += 1
    return count


def test_a_window_grows_after_eight_answers_by_ever_more() -> None:
    concurrency = AdaptiveConcurrency(64)
    concurrency.refused(64, 48, alone=False)
    for size in (49, 51, 55, 63, 64):
        assert answers_until_growth(concurrency) == 8
        assert concurrency.size == size
    concurrency.refused(64, 48, alone=False)
    concurrency.answered(20)
    assert concurrency.size == 48, "what is not used is not tried"


@pytest.mark.parametrize(
    ("first", "second", "answers"),
    [(48, 48, 16), (11, 10, 16), (10, 11, 16), (111, 100, 8), (48, 30, 8), (1, 1, 8)],
)
def test_a_size_that_is_refused_again_is_tried_half_as_often(
    first: int, second: int, answers: int
) -> None:
    """Within a tenth it is the same, and of one call at once eight answers are all there is."""
    concurrency = AdaptiveConcurrency(128)
    concurrency.refused(128, first, alone=False)
    answers_until_growth(concurrency)
    concurrency.answered(concurrency.size)
    concurrency.refused(128, second, alone=False)
    assert concurrency.size == second
    concurrency.refused(128, second, alone=False)  # of the same wave
    assert answers_until_growth(concurrency) == answers


def test_a_limit_that_is_gone_is_found_out() -> None:
    concurrency = AdaptiveConcurrency(64)
    concurrency.refused(64, 1, alone=False)
    for _ in range(200):
        concurrency.answered(concurrency.size)
    assert concurrency.size == 64
