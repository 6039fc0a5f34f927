"""Success rates from verdicts and labels, as a table."""

from __future__ import annotations

from trajudge.eval.reporting.formatting import (
    UNDEFINED,
    agent_name,
    benchmark_name,
    percent,
    with_limits,
)
from trajudge.eval.scoring.records import ALL_AGENTS, EstimatedRate, ScoreReport
from trajudge.trajectories.util.tables import Table

_TITLE = "Success rates from verdicts on all runs and labels of some (tasks labelled at random)"
_HEAD = (
    *("benchmark", "agent", "judge", "estimate [95 %]", "labels alone [95 %]", "judge alone"),
    *("labelled", "unlabelled", "effective labels"),
)


def estimated_rate_tables(scores: ScoreReport) -> list[Table]:
    """Lay out the estimates; no table where every run is labelled, or none."""
    rows = [_row(rate) for rate in scores.estimated_rates]
    return [Table(_TITLE, _HEAD, rows, names=3)] if rows else []


def without_estimate(scores: ScoreReport) -> list[str]:
    """Say where all agents together have no estimate, and why."""
    missing: dict[tuple[str, str], list[str]] = {}
    for rate in scores.estimated_rates:
        if rate.estimate is None and rate.agent == ALL_AGENTS:
            missing.setdefault((benchmark_name(rate.benchmark), rate.note), []).append(rate.judge)
    return [
        f"Success rates, {place}: no estimate by {', '.join(judges)}: {note}"
        for (place, note), judges in missing.items()
    ]


def _row(rate: EstimatedRate) -> tuple[str, ...]:
    effective = rate.effective_labels
    return (
        benchmark_name(rate.benchmark),
        agent_name(rate.agent),
        rate.judge,
        with_limits(rate.estimate, rate.intervals.get("estimate")),
        with_limits(rate.expert_only, rate.intervals.get("expert_only")),
        percent(rate.judge_only),
        str(rate.labelled),
        str(rate.unlabelled),
        UNDEFINED if effective is None else f"{effective:.0f}",
    )
