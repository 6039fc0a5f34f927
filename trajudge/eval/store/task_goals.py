"""Goals of tasks: runs of one goal under several task ids are no independent tasks.

``goals.jsonl`` of a run's folder names every task of the run with the digest of its goal and its
start page; two task ids with one digest are one goal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path

import numpy as np
import orjson

from trajudge.annotations.agentrewardbench import grouped_tasks
from trajudge.eval.settings import TaskId
from trajudge.eval.store.table import KeyColumns
from trajudge.stats.intervals import Ints
from trajudge.trajectories.model import Trajectory
from trajudge.util.errors import UserError
from trajudge.util.files import UnsafeFile, read_regular, write_bytes
from trajudge.util.terminal import count_of

FILE = "goals.jsonl"
_MAX_BYTES = 2**31

Task = tuple[str, str]
"""A benchmark and a task id of it."""
TaskGoals = Mapping[Task, int]


def goal_digest(trajectory: Trajectory) -> int:
    """Return a number of 53 bits for the goal and the start page, blanks and case aside; 0 without
    a goal."""
    words = " ".join(trajectory.goal.split()).casefold()
    if not words:
        return 0
    start = trajectory.steps[0].observation.url if trajectory.steps else None
    whole = f"{words}\0{(start or '').rstrip('/')}".encode("utf-8", "replace")
    return int.from_bytes(blake2b(whole, digest_size=8).digest(), "big") >> 11 or 1


def write_goals(folder: Path, keys: KeyColumns, digests: Ints) -> None:
    """Add the tasks of ``keys`` (N,) with the digests of their goals (N,) to ``goals.jsonl``, in
    the order of the tasks. Of several goals of one task the least digest stands for all."""
    pair = keys.benchmark.astype(np.int64) * max(len(keys.tasks), 1) + keys.task
    order = np.lexsort((digests, pair))
    first = order[np.diff(pair[order], prepend=-1) != 0]
    goals = dict(read_goals(folder))
    before = len(goals)
    for place, digest in zip(first.tolist(), digests[first].tolist(), strict=True):
        task = keys.benchmarks[keys.benchmark[place]], keys.tasks[keys.task[place]]
        if digest:
            goals[task] = min(digest, goals.get(task, digest))
    if len(goals) > before:
        save_goals(folder, goals)


def save_goals(folder: Path, goals: TaskGoals) -> None:
    """Write ``goals.jsonl`` in the order of the tasks; no file where no goal is known."""
    if goals:
        write_bytes(folder / FILE, b"".join(map(_line, sorted(goals.items()))))


def _line(known: tuple[Task, int]) -> bytes:
    (benchmark, task), digest = known
    line = {"benchmark": benchmark, "task_id": task, "goal": digest}
    return orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE)


def read_goals(folder: Path) -> dict[Task, int]:
    """Read ``goals.jsonl``; empty where the run has none. Raises UserError for another file."""
    path = folder / FILE
    if not path.is_file():
        return {}
    try:
        lines = map(orjson.loads, read_regular(path, _MAX_BYTES).splitlines())
        return {(line["benchmark"], line["task_id"]): int(line["goal"]) for line in lines}
    except (OSError, UnsafeFile, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path}: cannot be read as goals ({error}): judge again") from error


def shared_goals(goals: TaskGoals) -> dict[Task, str]:
    """Name the goal of every task whose goal other task ids of its benchmark have too."""
    tasks = Counter((benchmark, goal) for (benchmark, _), goal in goals.items())
    return {task: f"goal {goal:014x}" for task, goal in goals.items() if tasks[task[0], goal] > 1}


@contextmanager
def task_units(goals: TaskGoals, task_id: TaskId) -> Iterator[None]:
    """Inside the block, take equal goals for one task where ``task_id`` (``--task-id``) is "goal".
    Raises UserError where no goal is known."""
    if task_id == "goal" and not goals:
        raise UserError(
            f"--task-id goal: the runs name no goals (no {FILE}): judge them again, or leave it out"
        )
    with grouped_tasks(shared_goals(goals) if task_id == "goal" else {}):
        yield


def shared_sentence(shared: Mapping[Task, str]) -> str:
    """Say how many task ids share how many goals, "" where none do."""
    if not shared:
        return ""
    goals = len({(benchmark, goal) for (benchmark, _), goal in shared.items()})
    return f"{len(shared):,} task ids share {count_of(goals, 'goal')} and their start pages"


def goal_note(goals: TaskGoals, measure: Callable[[], tuple[str, str, int] | None]) -> str:
    """Return the warning that task ids share goals, with both intervals of a rate: by task id and
    by goal; "" where goals are not shared, or both count as many tasks.

    ``measure`` computes the rate as (what is measured, the rate with its interval, the number of
    tasks), or None; it is called outside and inside ``task_units``.
    """
    if not (sentence := shared_sentence(shared_goals(goals))):
        return ""
    by_task = measure()
    with task_units(goals, "goal"):
        by_goal = measure()
    if by_task is None or by_goal is None or by_task[2] == by_goal[2]:
        return ""
    what, one, tasks = by_task
    return (
        f"warning: {sentence}: {what} {one} counts {count_of(tasks, 'task')}, {by_goal[1]} "
        f"{count_of(by_goal[2], 'goal')}: count goals with --task-id goal"
    )
