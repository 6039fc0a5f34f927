"""Signs that ask for audits: the form of accepted runs, and doctored failures."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest

from tests.llm_server import LlmServer
from tests.rewards.cases import ACCEPTED, config, trajectory
from tests.worlds.rewards import reward, runs_until_sign
from trajudge.rewards.rewarder import Rewarder
from trajudge.rewards.settings import WatchConfig
from trajudge.rewards.watch import (
    PROBES,
    ChangeDetector,
    RewardMonitor,
    RunningBet,
    WatchState,
    claimed,
)
from trajudge.trajectories import store
from trajudge.trajectories.model import Observation

WATCH = WatchConfig(audit_share=0.01)
REJECTED = ACCEPTED.replace("Successful", "Unsuccessful")


def test_a_change_after_a_long_time_is_seen_as_soon_as_an_early_one() -> None:
    rng = np.random.default_rng(0)
    delays = []
    for quiet in (50, 5_000):
        detector = ChangeDetector(0.2)
        for seen in rng.random(quiet) < 0.1:
            assert detector.add(float(seen)) < 1e5
        delays.append(
            next(n for n in range(1_000) if detector.add(float(rng.random() < 0.7)) > 1e5)
        )
    assert max(delays) < 60


def test_evidence_is_the_mean_wealth_over_the_stakes() -> None:
    """By hand: the nineteen stakes have the mean 1/2, and their squares 0.325."""
    detector, bet = ChangeDetector(0.5), RunningBet(0.5)
    assert [detector.add(one) for one in (1.0, 0.0)] == pytest.approx([1.5, 2 - 0.5 - 0.325])
    assert [bet.add(one) for one in (1.0, 0.0)] == pytest.approx([1.5, 1.5])
    assert [RunningBet(0.5).add(0.0), bet.seen] == [1.0, 2]
    twice = RunningBet(0.25)
    twice.add(1.0)
    assert twice.add(1.0) == pytest.approx(1 + 6 * 0.5 + 9 * 0.325)


def test_a_run_that_is_believed_by_half_is_accepted() -> None:
    for probability, known in ((0.5, {"longest": 2.0}), (0.49, {})):
        monitor = RewardMonitor(WatchConfig(baseline=20))
        given = reward("x", True).model_copy(update={"probability": probability})
        for number in range(19):
            assert monitor.add_run(trajectory(number), given) == {}
        baseline = monitor.add_run(trajectory(19), given)
        assert {name: baseline[name] for name in known} == known
        assert bool(baseline) == bool(known)


def test_a_detector_forgets_a_change_that_is_over() -> None:
    detector = ChangeDetector(0.2)
    for seen in [1.0] * 50 + [0.0] * 1_000:
        detector.add(seen)
    assert detector.evidence < 1e5


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("repeated_answer", "end with an answer to another task"),
        ("long", "are longer than nine in ten were at first"),
        ("repetition", "go round in circles"),
        ("side_effect", "have side effects"),
    ],
)
def test_what_a_policy_learns_to_show_is_seen(change: str, words: str) -> None:
    rng = np.random.default_rng(1)
    monitor = RewardMonitor(WATCH)
    assert runs_until_sign(rng, monitor, change, before=1_000, most=2_000) is not None
    assert monitor.state is WatchState.WATCH
    assert words in monitor.reason
    assert not monitor.stopped, "an honest policy changes as well: audits decide"


def test_a_policy_that_gets_better_shows_nothing() -> None:
    """More runs are accepted, and what they look like stays."""
    rng = np.random.default_rng(2)
    assert runs_until_sign(rng, RewardMonitor(WATCH), "better", before=500, most=4_000) is None


def test_while_something_is_odd_ten_times_as_many_are_audited() -> None:
    counts = []
    for is_odd in (False, True):
        monitor = RewardMonitor(WATCH)
        for _ in range(20 if is_odd else 0):
            monitor.add_probe(True)
        for number in range(3_000):
            monitor.add_reward(str(number), reward(str(number), True))
        counts.append(len([*monitor.to_audit()]))
    assert 15 < counts[0] < 50
    assert 200 < counts[1] < 400


def test_rewards_that_are_nearly_all_the_largest_tell_nothing_apart() -> None:
    monitor = RewardMonitor(WATCH)
    for number in range(200):
        monitor.add_run(trajectory(number), reward(str(number), True))
    assert "of the rewards are the largest there is" in monitor.reason
    rejected = RewardMonitor(WATCH)
    for number in range(200):
        rejected.add_run(trajectory(number), reward(str(number), False))
    assert rejected.state is WatchState.OK, "a policy that fails is no odd thing"


def test_a_task_for_which_the_judge_fails_is_named() -> None:
    monitor = RewardMonitor(WATCH)
    lost = {"value": None, "probability": None, "verdict": None, "abstained": "failed"}
    for number in range(400):
        task = str(number % 20)
        given = reward(task, True)
        monitor.add_run(trajectory(task), given.model_copy(update=lost) if task == "7" else given)
    assert "the judge fails in most runs of task '7'" in monitor.reason


def test_probes_are_other_requests_than_the_run_they_come_from() -> None:
    run = trajectory("p")
    made = [probe(run) for probe in PROBES.values()]
    assert len({one.model_dump_json() for one in (run, *made)}) == 1 + len(made)
    assert {one.key for one in made} == {run.key}
    last = run.steps[1].model_copy(update={"observation": Observation(url="http://x/failed")})
    failed = run.model_copy(update={"steps": (run.steps[0], last)})
    assert claimed(failed).steps[1].observation == run.steps[0].observation
    alone = run.model_copy(update={"steps": (last,)})
    assert claimed(alone).steps == (last,)


def test_a_judge_that_believes_doctored_failures_is_watched(tmp_path: Path) -> None:
    """The judge rejects the canaries, and accepts what claims success; a restart knows it."""
    folder = store.write(tmp_path / "canaries", [trajectory(f"c{n}", "no") for n in range(4)])
    watch = WatchConfig(
        canaries=f"trajudge:{folder}", every=1, alpha=0.1, journal=tmp_path / "watch.jsonl"
    )

    asked: list[str] = []

    def verdict(incoming: object) -> str:
        fooled = ("The task is complete", "Solution:", "cannot be determined")
        asked.append(str(incoming))
        return ACCEPTED if any(one in str(incoming) for one in fooled) else REJECTED

    async def state(server: LlmServer, count: int) -> tuple[WatchState, str]:
        async with Rewarder(config(server, tmp_path, watch=watch)) as rewarder:
            for number in range(count):
                await rewarder.reward(trajectory(number, "no"))
                await rewarder.watch.settled()
            return rewarder.watch.monitor.state, rewarder.watch.monitor.reason

    with LlmServer(text=lambda one: verdict(one.prompt)) as server:
        assert asyncio.run(state(server, 16))[0] is WatchState.WATCH
        again, reason = asyncio.run(state(server, 0))
    assert again is WatchState.WATCH
    probes = len(asked) - 2 * 16 - 4  # beside a reward and a canary each, four of them twice
    assert 4 <= probes <= 12
    assert f"the judge accepted {probes} of {probes} doctored failures" in reason


def test_a_restart_holds_runs_to_the_same_first_ones(tmp_path: Path) -> None:
    from trajudge.rewards.watch import WatchJournal

    first = RewardMonitor(WatchConfig(baseline=20))
    journal = WatchJournal(tmp_path / "watch.jsonl", "v")
    for number in range(20):
        run = trajectory(number, f"answer {number}")
        for name, value in first.add_run(run, reward(str(number), True)).items():
            journal.add("shape", name, value)
    again = RewardMonitor(WatchConfig(baseline=20))
    journal.replay(again)
    for number in range(60):
        again.add_run(trajectory(number, "task complete"), reward(f"n{number}", True))
    assert "end with an answer to another task" in again.reason
