"""Runs that broke off or ran out of budget: whether a published verdict on them counts.

Fara's authors leave a run that broke off out of their rates, and count one over its budget as a
failure whatever a judge says of it. A success rate is comparable with theirs under both policies,
a judge is compared with experts under none.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from trajudge.annotations.published import PublishedVerdict
from trajudge.eval.data.inputs import DataSource
from trajudge.trajectories.model import Record, Trajectory, TrajectoryKey
from trajudge.trajectories.needs import NO_NEEDS

_NOTE = "counted as a failure: over its budget"


class EndingPolicies(Record):
    """``aborted``: whether the runs that broke off are kept. ``over_budget``: whether a verdict on
    a run without an answer is kept, or a failure in any case."""

    aborted: Literal["keep", "exclude"] = "keep"
    over_budget: Literal["keep", "failure"] = "keep"

    @property
    def is_default(self) -> bool:
        """Whether every verdict counts as it was published."""
        return self == EndingPolicies()


def apply_policies(
    verdicts: Iterable[PublishedVerdict], source: DataSource, policies: EndingPolicies
) -> list[PublishedVerdict]:
    """Return the verdicts that count, as they count. Reads the runs' text if a policy needs it."""
    if policies.is_default:
        return list(verdicts)
    aborted, over_budget = _endings(source)
    kept = []
    for verdict in verdicts:
        if policies.aborted == "exclude" and verdict.key in aborted:
            continue
        counted = verdict
        if policies.over_budget == "failure" and verdict.key in over_budget:
            changed = {"status": "ok", "success": False, "detail": "", "reasoning": _NOTE}
            counted = verdict.model_copy(update=changed)
        kept.append(counted)
    return kept


def _endings(source: DataSource) -> tuple[set[TrajectoryKey], set[TrajectoryKey]]:
    """Return the keys of the runs that broke off, and of those over their budget: without an answer
    though they did not break off."""
    runs = [run for run in source.read(needs=NO_NEEDS) if isinstance(run, Trajectory)]
    aborted = {run.key for run in runs if run.metadata.get("aborted") is True}
    return aborted, {run.key for run in runs if run.answer is None} - aborted
