"""Which of the judged runs become training data: duplicates, a cap per task, a split by task."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import NamedTuple

import numpy as np

from trajudge.annotations.agentrewardbench import family_of
from trajudge.eval.acceptance.conversations import ChatTurn
from trajudge.eval.acceptance.training.settings import TrainingConfig
from trajudge.trajectories.model import TrajectoryKey

TRAIN, TEST = "train", "test"


class JudgedRun(NamedTuple):
    """A run that may become training data: the judge's score and answer, and a hash of its
    goal and of what the agent wrote."""

    key: TrajectoryKey
    score: float
    success: bool
    written: bytes


class ChosenRuns(NamedTuple):
    """The file (train, test) that each chosen run goes to, and how many were left out, by the
    reason."""

    runs: Mapping[TrajectoryKey, tuple[JudgedRun, str]]
    left_out: Counter[str]


def written_hash(turns: Iterable[ChatTurn], goal: str) -> bytes:
    """Return what is equal for two runs of a goal in which the agent wrote the same."""
    hashed = sha256(goal.encode("utf-8", "surrogatepass"))
    for turn in turns:
        if turn.role == "assistant":
            hashed.update(b"\0" + turn.content.encode("utf-8", "surrogatepass"))
    return hashed.digest()


def choose_runs(listed: Iterable[JudgedRun], config: TrainingConfig) -> ChosenRuns:
    """Drop duplicates within a task, cap its runs, and split the tasks.

    Successes and failures of a task are capped apart. The draws depend on the seed and the keys,
    not on the order in which the runs come.
    """
    by_task: dict[tuple[str, str], list[JudgedRun]] = defaultdict(list)
    for run in sorted(listed, key=lambda run: run.key.order):
        by_task[run.key.benchmark, run.key.task_id].append(run)
    rng = np.random.default_rng(config.seed)
    tasks = sorted(by_task)
    families = [(task[0], family_of(by_task[task][0].key)) for task in tasks]
    tested = _test_families(sorted(set(families)), config.test_share, rng)
    left_out: Counter[str] = Counter()
    runs = {}
    for task, family in zip(tasks, families, strict=True):
        distinct = list({(run.success, run.written): run for run in by_task[task][::-1]}.values())
        left_out["duplicate"] += len(by_task[task]) - len(distinct)
        for success in (True, False):
            same = [run for run in distinct[::-1] if run.success is success]
            kept = _capped(same, config.per_task, rng)
            left_out["above the cap per task"] += len(same) - len(kept)
            runs.update({run.key: (run, TEST if family in tested else TRAIN) for run in kept})
    return ChosenRuns(runs, +left_out)


def _test_families(
    families: list[tuple[str, str]], share: float, rng: np.random.Generator
) -> set[tuple[str, str]]:
    """Draw what goes to the test file, with all tasks of a family; at least one family where a
    share is asked for and two remain."""
    if not share or len(families) < 2:
        return set()
    wanted = min(max(round(share * len(families)), 1), len(families) - 1)
    return {families[place] for place in rng.choice(len(families), wanted, replace=False).tolist()}


def _capped(runs: list[JudgedRun], most: int | None, rng: np.random.Generator) -> list[JudgedRun]:
    if most is None or len(runs) <= most:
        return runs
    return [runs[place] for place in sorted(rng.choice(len(runs), most, replace=False).tolist())]
