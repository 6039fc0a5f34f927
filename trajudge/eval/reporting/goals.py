"""What equal goals under several task ids do to an interval."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from trajudge.eval.data.task_goals import TaskGoals, shared_goals, shared_sentence, task_units
from trajudge.eval.reporting.formatting import percent
from trajudge.eval.scoring.records import ALL_AGENTS, OVERALL, Score, ScoreReport


def goal_notes(
    report: ScoreReport, goals: TaskGoals, by_goal: Callable[[], ScoreReport]
) -> Iterator[str]:
    """Say which task ids of a report share a goal, with the interval of the first judge's precision
    by task ids and as ``by_goal``, which scores the same again, has it by goals."""
    if not (sentence := shared_sentence(shared_goals(goals))):
        return
    with task_units(goals, "goal"):
        one, other = _precision(report), _precision(by_goal())
    if one is None or other is None or one.tasks == other.tasks:
        return
    yield (
        f"warning: {sentence}: {one.judge}: precision {_shown(one)} counts {one.tasks:,} tasks, "
        f"{_shown(other)} {other.tasks:,} goals: count goals with --task-id goal"
    )


def _precision(report: ScoreReport) -> Score | None:
    rows = [each for each in report.scores if not each.baseline and each.agent == ALL_AGENTS]
    whole = [each for each in rows if each.benchmark == OVERALL and each.precision is not None]
    return whole[0] if whole else None


def _shown(score: Score) -> str:
    limits = score.intervals.get("precision")
    ends = f" [{percent(limits[0])}, {percent(limits[1])}]" if limits else ""
    return f"{percent(score.precision)}{ends}"
