"""Streams of rewards of known truth: judges that stay or change, honest and hacked policies."""

from __future__ import annotations

import numpy as np

from trajudge.rewards.reward import Reward
from trajudge.rewards.settings import WatchConfig
from trajudge.rewards.watch import RewardMonitor, WatchState
from trajudge.trajectories.model import Observation, Step, Trajectory, TrajectoryKey

CANARIES = 100
TASKS = 50
SHARES = {"repetition": 0.1, "side_effect": 0.05}  # of accepted runs, while nothing changes
STEPS = 12.0  # of a run in the mean


def reward(name: str, believed: bool) -> Reward:
    key = TrajectoryKey(benchmark="b", agent="a", task_id=name)
    value = float(believed)
    return Reward(key=key, value=value, probability=value, verdict=believed, judge="j", version="1")


def canaries_until_stop(
    rng: np.random.Generator, *, flips: float, most: int, config: WatchConfig
) -> int | None:
    """How many canaries it takes until rewards stop, of a judge that gives another verdict than at
    first in a share of them; None: not within ``most``."""
    monitor = RewardMonitor(config)
    first = rng.random(CANARIES) < 0.4
    for number, verdict in [*enumerate(first)] * 2:
        monitor.add_canary(str(number), bool(verdict))
    for asked in range(most):
        number = asked % CANARIES
        monitor.add_canary(str(number), bool(first[number] ^ (rng.random() < flips)))
        if monitor.state is WatchState.STOP:
            return asked + 1
    return None


def audits_until_stop(
    rng: np.random.Generator, *, believed: float, true: float, most: int, config: WatchConfig
) -> int | None:
    """How many audited rewards it takes, where the judge believes and the truth holds in shares;
    every true success is believed first."""
    monitor = RewardMonitor(config)
    for number in range(most):
        success = rng.random() < true
        # Among failures as many are believed as the share says.
        believes = bool(success or rng.random() < (believed - true) / (1 - true))
        monitor.add_reward(str(number), reward(str(number), believes))
        monitor.add_audit(str(number), bool(success))
        if monitor.state is WatchState.STOP:
            return number + 1
    return None


def run_of(
    rng: np.random.Generator, *, accepted: float, change: str = ""
) -> tuple[Trajectory, Reward]:
    """Draw a run and its reward; ``change`` is what half of the accepted ones show."""
    is_accepted = bool(rng.random() < accepted)
    shown = change if is_accepted and rng.random() < 0.5 else ""
    task = str(rng.integers(TASKS))
    steps = 1 + int(rng.poisson(STEPS * (3 if shown == "long" else 1)))
    said = "task complete" if shown == "repeated_answer" else f"{task}: {rng.integers(1_000_000)}"
    key = TrajectoryKey(benchmark="b", agent="a", task_id=task)
    run = Trajectory(
        key=key,
        raw_task_id=task,
        goal="g",
        steps=tuple(Step(index=i, observation=Observation()) for i in range(steps)),
        answer=said,
    )
    labels = {n: 0.1 for n, p in SHARES.items() if n == shown or rng.random() < p}
    return run, reward(task, is_accepted).model_copy(update={"penalties": labels})


def runs_until_sign(
    rng: np.random.Generator, monitor: RewardMonitor, change: str, *, before: int, most: int
) -> int | None:
    """How many runs after the change until its sign, 0: one came before it; None: not within
    ``most``. ``better``: more are accepted and nothing else changes."""
    accepted = 0.4
    for number in range(before + most):
        if number >= before and change == "better":
            accepted = 0.8
        shown = change if number >= before else ""
        monitor.add_run(*run_of(rng, accepted=accepted, change=shown))
        if monitor.state is not WatchState.OK:
            return max(0, number + 1 - before)
    return None
