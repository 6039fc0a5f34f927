"""How the tasks of benchmarks are grouped in tables and in statistics."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType

from trajudge.trajectories.model import TrajectoryKey

BENCHMARKS = {
    "assistantbench": "AssistantBench",
    "visualwebarena": "VisualWebArena",
    "webarena": "WebArena",
    "workarena": "WorkArena",
    "workarena++": "WorkArena++",
}

# Site--12, find_tea_12
_VARIANT = re.compile(r"(?:--|_)\d+\Z")
_NO_GROUPS: Mapping[tuple[str, str], str] = MappingProxyType({})
_GROUPS = ContextVar("groups", default=_NO_GROUPS)


def benchmark_of(key: TrajectoryKey) -> str:
    """Name the benchmark to report a trajectory under: WorkArena's level 2 is WorkArena++, and
    CUAVerifierBench's splits, which were annotated in different ways, stand apart."""
    if key.benchmark == "workarena" and "l2" in key.task_id:
        return "workarena++"
    if key.benchmark == "cuaverifierbench" and "/" in key.task_id:
        return f"{key.benchmark}/{key.task_id.partition('/')[0]}"
    return key.benchmark


def family_of(key: TrajectoryKey) -> str:
    """Name the family of tasks within which verdicts are no independent ones: of CUAVerifierBench
    a site, or a task that was made in several forms; elsewhere the task itself, or inside
    ``grouped_tasks`` its group."""
    if group := _GROUPS.get().get((key.benchmark, key.task_id)):
        return group
    return _VARIANT.sub("", key.task_id) if key.benchmark == "cuaverifierbench" else key.task_id


@contextmanager
def grouped_tasks(groups: Mapping[tuple[str, str], str]) -> Iterator[None]:
    """Inside the block, take tasks (benchmark and task id) with one name in ``groups`` for one
    family."""
    token = _GROUPS.set(groups)
    try:
        yield
    finally:
        _GROUPS.reset(token)
