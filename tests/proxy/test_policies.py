"""A thousand seeded plans: exact counts, no memory between draws, the same on every machine."""

from __future__ import annotations

import hashlib
import random
from collections import Counter

import pytest
from pydantic import ValidationError

from trajudge.proxy.addon import DrawKey, draw, planned_ordinals
from trajudge.proxy.plan import FaultPlan, FaultPolicy, Schedule
from trajudge.proxy.results import exposure

SEEDS = range(1000)
POLICY = FaultPolicy(random=2, horizon=6)


def plan(*policies: str) -> FaultPlan:
    return FaultPlan.model_validate(
        {
            "faults": [
                {"id": f"f{i}", "kind": "status", "status": 503, "policy": policy}
                for i, policy in enumerate(policies)
            ]
        }
    )


def test_random_is_a_uniform_sample_without_replacement() -> None:
    samples = [planned_ordinals(POLICY.model_dump(), DrawKey(seed, "task", "f")) for seed in SEEDS]
    assert all(one and len(set(one)) == 2 and {*one} <= {*range(1, 7)} for one in samples)
    pairs = Counter(samples)
    assert len(pairs) == 15
    # Chi-square with 14 degrees of freedom: 36.1 is its 99.9 % point.
    assert sum((n - 1000 / 15) ** 2 / (1000 / 15) for n in pairs.values()) < 36.1


def test_a_larger_sample_holds_the_smaller_one() -> None:
    for seed in SEEDS:
        key = DrawKey(seed, "task", "f")
        samples = [set(planned_ordinals({"random": n, "horizon": 6}, key) or ()) for n in (1, 2, 6)]
        assert samples[0] < samples[1] < samples[2] == {1, 2, 3, 4, 5, 6}


def test_bernoulli_fires_for_its_share() -> None:
    made = plan("bernoulli(0.2)")
    fired = sum(bool(Schedule(made, "task", seed).due(k)) for seed in SEEDS for k in range(1, 11))
    assert 0.185 < fired / 10_000 < 0.215
    assert not Schedule(plan("bernoulli(0)"), "task", 1).due(1)
    assert Schedule(plan("bernoulli(1)"), "task", 1).due(1)


def test_decisions_do_not_depend_on_the_order_of_questions() -> None:
    made = plan("random(3, 9)", "bernoulli(0.5)", "at(4)")
    for seed in SEEDS:
        loads = list(range(1, 10))
        forward = {k: Schedule(made, "task", seed).due(k) for k in loads}
        random.Random(seed).shuffle(loads)
        shuffled = Schedule(made, "task", seed)
        assert {k: shuffled.due(k) for k in loads} == forward


def test_a_fault_does_not_depend_on_the_others() -> None:
    alone, beside = plan("random(2, 6)"), plan("random(2, 6)", "bernoulli(0.5)")
    for seed in SEEDS:
        first = alone.faults[0]
        assert Schedule(alone, "t", seed).planned(first) == Schedule(beside, "t", seed).planned(
            first
        )


def test_seed_task_and_fault_all_matter() -> None:
    def all_of(key: DrawKey) -> tuple[float, ...]:
        return tuple(draw(key, k) for k in range(1, 50))

    keys = [DrawKey(1, "a", "f"), DrawKey(2, "a", "f"), DrawKey(1, "b", "f"), DrawKey(1, "a", "g")]
    assert len({all_of(key) for key in keys}) == 4
    # No two names run into each other: ("a", "bc") and ("ab", "c") are two keys.
    assert draw(DrawKey(1, "a", "bc"), 1) != draw(DrawKey(1, "ab", "c"), 1)


def test_a_draw_is_the_published_formula() -> None:
    """Another program can repeat it: the first 53 bits of SHA-256 over a JSON list."""
    digest = hashlib.sha256(b'[7, "shop.1", "popup", 3]').digest()
    bits = "".join(f"{byte:08b}" for byte in digest)[:53]
    assert draw(DrawKey(7, "shop.1", "popup"), 3) == int(bits, 2) / 2**53


@pytest.mark.parametrize(
    ("text", "ordinals"), [("at(3)", (3,)), ("at( k=3 )", (3,)), ("random(n=2, horizon=2)", (1, 2))]
)
def test_a_policy_is_written_as_a_call(text: str, ordinals: tuple[int, ...]) -> None:
    policy = FaultPolicy.model_validate(text)
    assert planned_ordinals(policy.model_dump(), DrawKey(0, "t", "f")) == ordinals
    assert FaultPolicy.model_validate(str(policy)) == policy


@pytest.mark.parametrize("text", ["at(0)", "at(1.5)", "random()", "at(x)", "never", "at(1, 2)"])
def test_a_wrong_policy_is_refused(text: str) -> None:
    with pytest.raises(ValidationError):
        FaultPolicy.model_validate(text)


def test_a_policy_without_a_horizon_takes_the_tasks() -> None:
    policy = FaultPolicy.model_validate("random(2)")
    assert FaultPolicy.model_validate(str(policy)) == policy
    for seed in range(20):
        key = DrawKey(seed, "t", "f")
        own = FaultPolicy(random=2, horizon=6)
        assert planned_ordinals(policy.model_dump(), key, 6) == planned_ordinals(
            own.model_dump(), key, 9
        )
        assert planned_ordinals(policy.model_dump(), key, 1) == (1,), (
            "a task of one page load has no second"
        )
        assert planned_ordinals(policy.model_dump(), key) == ()


def test_exposure_sets_planned_against_fired() -> None:
    made = plan("at(1)", "random(2, 6)", "bernoulli(1)")
    schedule = Schedule(made, "task", 5)
    first, second = schedule.planned(made.faults[1]) or ()
    exposed = exposure(schedule, second - 1, [("f0", 1, "fired"), ("f1", first, "masked")])
    assert (exposed[0]["planned"], exposed[0]["fired"]) == ([1], [1])
    assert (exposed[0]["unreached"], exposed[0]["open"]) == ([], [])
    assert (exposed[1]["masked"], exposed[1]["unreached"]) == ([first], [second])
    assert exposed[1]["open"] == []
    assert exposed[2]["planned"] == exposed[2]["open"] == list(range(1, second))
