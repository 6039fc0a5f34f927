"""Workers of a sharded run as actors of Ray: each is the loop of ``trajudge run work``."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from trajudge.trajectories.util.errors import MissingExtra, UserError
from trajudge.trajectories.util.exits import FAILURES, OK

Command = Callable[[Sequence[str]], int]
"""A command by its words; returns the exit code."""

RESTARTS = 10  # of one worker: what kills it again and again is no accident


class ShardActor:
    """One worker, in a process that Ray starts, and starts again where it died."""

    def work(self, command: Command, words: Sequence[str], folder: str) -> int:
        """Do what the command does with these ``words`` in ``folder``; return its exit code."""
        try:  # a relative --shared would be a run of its own on each node
            os.chdir(folder)
        except OSError as error:
            sys.stderr.write(
                f"error: {folder}: is no folder of this node ({error.strerror}): start the command "
                "in a folder that all nodes have\n"
            )
            return FAILURES
        return command(words)


def work_on_ray(command: Command, words: Sequence[str], count: int) -> int:
    """Work with ``count`` actors, each running the ``command`` with ``words``, until all end.

    They run in the cluster at ``RAY_ADDRESS``, else in one of this machine that ends with them.
    Returns the exit code of the first that did not finish, 0 if all did. Raises UserError.
    """
    with _cluster() as ray:
        actor = ray.remote(num_cpus=1, max_restarts=RESTARTS, max_task_retries=RESTARTS)(ShardActor)
        spread = actor.options(scheduling_strategy="SPREAD")
        actors = [spread.remote() for _ in range(count)]
        calls = [one.work.remote(command, list(words), str(Path.cwd())) for one in actors]
        codes = [_code(ray, call) for call in calls]
    return next((code for code in codes if code != OK), OK)


def _code(ray: Any, call: Any) -> int:
    try:
        return int(ray.get(call))
    except ray.exceptions.RayActorError as error:
        first = str(error).strip().splitlines()[0]
        sys.stderr.write(f"a worker died {RESTARTS + 1} times, the others go on: {first}\n")
        return FAILURES


@contextmanager
def _cluster() -> Iterator[Any]:
    """Connect to the cluster, or start one, for the block."""
    try:
        import ray  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise MissingExtra("ray", "ray", "--ray") from error
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is told to Ray's authors
    known = ray.is_initialized()
    try:
        if not known:
            ray.init(include_dashboard=False, logging_level="warning")
    except (ConnectionError, ValueError, RuntimeError) as error:
        first = str(error).strip().splitlines()[0]
        raise UserError(
            f"Ray cannot be reached ({first}): check RAY_ADDRESS, or unset it"
        ) from error
    try:
        yield ray
    finally:
        if not known:
            ray.shutdown()
