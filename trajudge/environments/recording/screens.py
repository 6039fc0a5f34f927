"""What ``trajudge env record`` does and shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import quote

from trajudge.environments.agents.script import behaviour_of
from trajudge.environments.model.variant import MARK
from trajudge.environments.recording.campaign import (
    CampaignResult,
    Counts,
    RecordingPlan,
    record,
    table,
)
from trajudge.environments.recording.fault_proxy import check_plan
from trajudge.environments.recording.faulted import ArmResult, arms_of, record_arms
from trajudge.environments.recording.jobs import FEWER
from trajudge.environments.recording.pool import FailedJob
from trajudge.environments.recording.recorder import run_name
from trajudge.util.tables import Table, first_screen, first_warnings, screen_width
from trajudge.util.terminal import count_of, one_line


def recorded(
    plan: RecordingPlan, out: Path, workers: int, faults: Path | None, *, pictures: bool
) -> tuple[str, list[FailedJob]]:
    """Record what is planned, with each fault of ``faults`` once more; return what is shown, and
    the jobs that gave no run. Raises UserError and Halted."""
    if faults is None:
        campaign = record(plan, out, workers)
        return recording_screen(campaign, out), campaign.failed
    check_plan(faults)
    arms = record_arms(plan, arms_of(faults, pictures=pictures), out, workers)
    return arms_screen(arms, out), [job for arm in arms for job in arm.recorded.failed]


def recording_screen(campaign: CampaignResult, out: Path) -> str:
    """Show a recording: how many runs succeeded, and the labels by agent."""
    summary = [
        _finding([*campaign.counts.values()], count_of(len(campaign.counts), "agent")),
        *_again(campaign.failed),
    ]
    rest = f"judge them with  trajudge judge --data {quote(f'trajudge:{out}')}"
    warnings = [*_failures(campaign.failures), *_fewer(campaign.counts)]
    return first_screen(summary, [table(campaign.counts)], warnings, rest=rest, more="labels.jsonl")


def _failures(failures: Sequence[str]) -> list[str]:
    if not failures:
        return []
    runs = count_of(len(failures), "run")
    return [f"{runs} ended because the agent failed (facts.jsonl), such as {failures[0]}"]


def _finding(counts: Sequence[Mapping[str, int]], agents: str) -> str:
    """Say in a sentence what the runs came to, by the state at their end."""
    runs, right, unclear = (
        sum(row[name] for row in counts) for name in ("runs", "success", "ambiguous")
    )
    if not runs:
        return "No run was recorded."
    sentence = (
        f"{right:,} of {count_of(runs, 'run')} of {agents} succeeded, by the state at the end"
    )
    return sentence + (f"; {unclear:,} stay open." if unclear else ".")


def _fewer(counts: Counts) -> list[str]:
    """Say why agents have fewer runs than others."""
    most = max((row["runs"] for row in counts.values()), default=0)
    short = [agent.partition(MARK) for agent, row in counts.items() if row["runs"] < most]
    known = {behaviour_of(base) for base, _, _ in short}
    reasons = [f"{one} {why}" for one, why in FEWER.items() if one in known]
    if any(variant for _, _, variant in short):
        reasons.append("a variant needs a run that can end so")
    return [f"fewer runs: {'; '.join(reasons)}"] if reasons else []


def arms_screen(arms: Sequence[ArmResult], out: Path) -> str:
    """Show a recording with faults: runs and successes by arm."""
    rows = []
    for arm in arms:
        agents = arm.recorded.counts.values()
        totals = (sum(row[name] for row in agents) for name in ("runs", "success", "ambiguous"))
        rows.append((arm.name, *map(str, totals)))
    failed = [job for arm in arms for job in arm.recorded.failed]
    clean, *faulty = (sum(row["success"] for row in a.recorded.counts.values()) for a in arms)
    summary = [_finding([*arms[0].recorded.counts.values()], "the arm without faults")]
    if faulty:
        fewest, most = min(faulty), max(faulty)
        span = f"{fewest:,}" if fewest == most else f"{fewest:,} to {most:,}"
        summary.append(f"With a fault {span} succeeded, against {clean:,} without.")
    summary += _again(failed)
    head = ("arm", "runs", "success", "ambiguous")
    rest = f"compare them with  trajudge proxy results {quote(str(out))}"
    return first_screen(summary, [Table("Runs by arm", head, rows, names=1)], rest=rest)


def failure_lines(failed: Sequence[FailedJob]) -> list[str]:
    """Say which jobs gave no run, and why, in a few lines."""
    reasons = [f"failed: {run_name(job)}: {one_line(reason)}" for job, reason in failed]
    return first_warnings(reasons, screen_width(), rest="the same command tries all again")


def _again(failed: Sequence[FailedJob]) -> list[str]:
    runs = count_of(len(failed), "run")
    return [f"{runs} failed: the same command tries again"] if failed else []
