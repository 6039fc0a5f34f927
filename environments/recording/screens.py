"""What ``trajudge env record`` shows of a recording."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from trajudge.environments.recording.campaign import CampaignResult, table
from trajudge.environments.recording.faulted import ArmResult
from trajudge.environments.recording.pool import FailedJob
from trajudge.environments.recording.recorder import run_name
from trajudge.trajectories.util.tables import (
    Table,
    first_screen,
    first_warnings,
    screen_width,
)
from trajudge.trajectories.util.terminal import one_line


def recording_screen(recorded: CampaignResult, out: Path) -> str:
    """Show a recording: labels by agent."""
    runs = sum(row["runs"] for row in recorded.counts.values())
    found = [f"{runs} runs recorded by {len(recorded.counts)} agents", *_again(recorded.failed)]
    rest = f"judge them with  trajudge judge --data trajudge:{out}"
    return first_screen(found, [table(recorded.counts)], rest=rest, more="labels.jsonl")


def arms_screen(arms: Sequence[ArmResult], out: Path) -> str:
    """Show a recording with faults: runs and successes by arm."""
    rows = []
    for arm in arms:
        agents = arm.recorded.counts.values()
        totals = (sum(row[name] for row in agents) for name in ("runs", "success", "open"))
        rows.append((arm.name, *map(str, totals)))
    failed = [job for arm in arms for job in arm.recorded.failed]
    found = [f"{len(arms)} arms recorded, the first without faults", *_again(failed)]
    head = ("arm", "runs", "success", "open")
    rest = f"compare them with  trajudge proxy results {out}"
    return first_screen(found, [Table("Runs by arm", head, rows, names=1)], rest=rest)


def failure_lines(failed: Sequence[FailedJob]) -> list[str]:
    """Say which jobs gave no run, and why, in a few lines."""
    reasons = [f"failed: {run_name(job)}: {one_line(reason)}" for job, reason in failed]
    return first_warnings(reasons, screen_width(), rest="the same command tries all again")


def _again(failed: Sequence[FailedJob]) -> list[str]:
    return [f"{len(failed)} runs failed: the same command tries them again"] if failed else []
