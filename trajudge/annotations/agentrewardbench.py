"""Groups of benchmarks' tasks in tables and in statistics."""

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
    """Return the benchmark under which a trajectory is reported: WorkArena's level 2 is
    WorkArena++, and each split of CUAVerifierBench is separate, because they were annotated
    differently."""
    if key.benchmark == "workarena" and "l2" in key.task_id:
        return "workarena++"
    if key.benchmark == "cuaverifierbench" and "/" in key.task_id:
        return f"{key.benchmark}/{key.task_id.partition('/')[0]}"
    return key.benchmark


def family_of(key: TrajectoryKey) -> str:
    """Return the family of tasks within which verdicts are dependent: for CUAVerifierBench a
    site, or the forms of one task; otherwise the task itself, or inside ``grouped_tasks`` its
    group."""
    if group := _GROUPS.get().get((key.benchmark, key.task_id)):
        return group
    return _VARIANT.sub("", key.task_id) if key.benchmark == "cuaverifierbench" else key.task_id


@contextmanager
def grouped_tasks(groups: Mapping[tuple[str, str], str]) -> Iterator[None]:
    """Treat tasks (benchmark and task id) with the same name in ``groups`` as one family in this
    context."""
    token = _GROUPS.set(groups)
    try:
        yield
    finally:
        _GROUPS.reset(token)
