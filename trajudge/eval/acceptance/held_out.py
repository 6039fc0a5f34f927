"""The tasks that an agent will be evaluated on, and must not be trained on."""

from __future__ import annotations

from pathlib import Path

from trajudge.trajectories.model import TrajectoryKey, canonical_task_id
from trajudge.util.errors import UserError
from trajudge.util.files import read_text


class HeldOutTasks(frozenset[tuple[str, str]]):
    """Pairs of benchmark ("": any) and task id."""

    __slots__ = ()

    def holds(self, key: TrajectoryKey) -> bool:
        """Say whether a run is on one of these tasks."""
        return (key.benchmark, key.task_id) in self or ("", key.task_id) in self


def read_held_out(file: Path) -> HeldOutTasks:
    """Read a list of tasks, one per line: ``TASK`` or ``BENCHMARK/TASK``; # begins a comment.

    Raises UserError for a file that cannot be read or lists none.
    """
    try:
        lines = read_text(file).splitlines()
    except OSError as error:
        raise UserError(f"--held-out {file}: cannot be read ({error.strerror})") from error
    tasks = [line.partition("#")[0].strip() for line in lines]
    made = HeldOutTasks(_pair(task) for task in tasks if task)
    if not made:
        raise UserError(
            f"--held-out {file}: lists no task: write one per line, TASK or BENCHMARK/TASK"
        )
    return made


def _pair(task: str) -> tuple[str, str]:
    benchmark, slash, name = task.partition("/")
    return (benchmark, canonical_task_id(benchmark, name)) if slash else ("", task)
