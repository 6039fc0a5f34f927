"""Who of two judges was right on the same trajectories, as counts, and whether it may be chance."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trajudge.eval.scoring.observations import Observations, Predictions
from trajudge.eval.scoring.records import Label, Missing
from trajudge.eval.stats.interval import Bools
from trajudge.eval.stats.judging.comparison import TaskRuns, mcnemar, mcnemar_by_task


class PairedCounts(NamedTuple):
    """Trajectories by who was right; ``p`` is McNemar's exact two-sided p, by tasks, None where
    the two are right and wrong on the same ones, and for labels that were drawn with unequal
    probabilities. ``failed_first`` and ``failed_second`` of them
    have a judgment without an answer."""

    both_right: int
    only_first: int
    only_second: int
    both_wrong: int
    p: float | None
    failed_first: int
    failed_second: int

    @property
    def n(self) -> int:
        """Trajectories counted."""
        return self.both_right + self.only_first + self.only_second + self.both_wrong


def compared_observations(
    predictions: Predictions, label: Label, missing: Missing, members: Bools | None = None
) -> Observations:
    """Observe a judge that is held against others, of the trajectories ``members`` (T,) of its
    reference, all without it: a failed judgment counts as ``missing`` says, or is left out."""
    observations = predictions.observe(label, missing)
    counted = np.ones(len(observations), dtype=bool)
    if missing == "exclude":
        counted &= observations.answered
    if members is not None:
        counted &= members[observations.index]
    return observations.where(counted)


def on_the_same(first: Observations, second: Observations) -> tuple[Observations, Observations]:
    """Keep the trajectories of one reference that both hold, in one order."""
    if first.trajectories == second.trajectories:
        return first, second
    _, here, there = np.intersect1d(
        first.index, second.index, assume_unique=True, return_indices=True
    )
    return first.at(here), second.at(there)


def paired_counts(first: Observations, second: Observations) -> PairedCounts:
    """Count over the same trajectories, in one order, whether the two judges were right."""
    test, p = mcnemar(first.right, second.right), None
    if test.only_first + test.only_second and not first.reference.is_weighted:
        tasks = TaskRuns.of(first.task, first.benchmark)
        p = mcnemar_by_task(first.right, second.right, tasks)
    return PairedCounts(
        both_right=int((first.right & second.right).sum()),
        only_first=test.only_first,
        only_second=test.only_second,
        both_wrong=int((~first.right & ~second.right).sum()),
        p=p,
        failed_first=int((~first.answered).sum()),
        failed_second=int((~second.answered).sum()),
    )
