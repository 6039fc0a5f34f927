"""Reports in which most judges failed."""

from __future__ import annotations

from functools import cache

from tests.eval.cases import failed, key, label, said
from trajudge.eval.scoring.compute import score
from trajudge.eval.scoring.records import ScoreReport
from trajudge.judges.model import Status
from trajudge.trajectories.model import TrajectoryKey


@cache
def mostly_failed(failing: int, working: int) -> ScoreReport:
    """A grid with judges of which none answered, by name before those that did."""
    labels = {key(n): label(n, n % 2 == 0) for n in range(12)}
    rewards: dict[TrajectoryKey, float | None] = dict.fromkeys(labels, 1.0)
    judgments = [
        *(failed(n, Status.REFUSED, judge=f"a-{j:02}") for j in range(failing) for n in range(12)),
        *(said(n, n % 3 != j, judge=f"z-{j}") for j in range(working) for n in range(12)),
        *(said(n, False, judge="never") for n in range(12)),
    ]
    return score(judgments, labels, rewards=rewards)
