"""The judgments that a run has still to make, drawn lazily from the files."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from trajudge.eval.data.journal import JobId
from trajudge.eval.runs.plan import RunPlan
from trajudge.judges.model import Judgment, Status
from trajudge.trajectories.model import Trajectory, TrajectoryKey, Unreadable
from trajudge.trajectories.util.errors import UserError


class JudgmentJob(NamedTuple):
    """One judgment to make: ``sample`` counts repeated judgments of a trajectory from 0. ``item``
    is the trajectory, or why it could not be read."""

    key: TrajectoryKey
    item: Trajectory | Unreadable
    sample: int


@dataclass
class LoadReport:
    """What the files gave besides jobs; ``rewards`` are the official ones."""

    rewards: dict[TrajectoryKey, float | None] = field(default_factory=dict)
    unreadable: list[Unreadable] = field(default_factory=list)
    repeated: list[TrajectoryKey] = field(default_factory=list)


def jobs_of(
    plan: RunPlan, samples: int, done: Collection[JobId], report: LoadReport, *, strict: bool
) -> Iterator[JudgmentJob]:
    """Yield jobs in the order of the files; a trajectory is read only if something of it is
    missing.

    Raises UserError at the first trajectory that cannot be read if ``strict``.
    """
    wanted = {
        key
        for key in plan.keys
        if key not in report.rewards or any((key, n) not in done for n in range(samples))
    }
    read: set[TrajectoryKey] = set()
    if not wanted:
        return
    for item in plan.source.read(wanted.__contains__, plan.needs):
        if isinstance(item, Unreadable):
            if strict:
                raise UserError(f"{item.source}: {item.reason} (--strict stops here)")
            report.unreadable.append(item)
        if item.key is None or item.key not in wanted:
            continue
        if item.key in read:
            report.repeated.append(item.key)
            continue
        read.add(item.key)
        if isinstance(item, Trajectory):
            report.rewards[item.key] = item.official_reward
        for sample in range(samples):
            if (item.key, sample) not in done:
                yield JudgmentJob(item.key, item, sample)


def skipped(judge_id: str, key: TrajectoryKey, sample: int, item: Unreadable) -> Judgment:
    """Make the judgment on a trajectory whose file could not be read."""
    detail = f"{item.source}: {item.reason}"
    return Judgment(key=key, judge=judge_id, sample=sample, status=Status.SKIPPED, detail=detail)
