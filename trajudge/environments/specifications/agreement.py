"""How far rules agree with the state: rates of a rule family by kind of check, with intervals.

Runs of one case share its data and its wording, so intervals are clustered by case, within
applications. Runs whose truth is open to argument are left out, and counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from trajudge.environments.specifications.comparing import KINDS, MODES, RunComparison
from trajudge.rules.values import Mode
from trajudge.rules.verdict import Outcome
from trajudge.stats.intervals import rates_by_cluster

Test = Callable[[RunComparison], bool]


class RateOf(NamedTuple):
    """``hits`` of ``trials`` with a 95 % interval; None where there is nothing to count."""

    hits: int
    trials: int
    low: float | None
    high: float | None

    def __str__(self) -> str:
        """Give the percentage with its limits."""
        if not self.trials:
            return "-"
        share = f"{100 * self.hits / self.trials:.2f}"
        if self.low is None or self.high is None:
            return share
        return f"{share} [{100 * self.low:.2f}, {100 * self.high:.2f}]"


class Agreement(NamedTuple):
    """One kind of check in one reading. ``runs`` have a known truth; ``left_out`` have not. Of
    them ``unknown`` are those of which the rule says nothing. ``false_accepts`` are of the runs
    that failed, ``false_rejects`` and ``recall`` of those that succeeded, ``precision`` of those
    that the rule accepts."""

    kind: str
    mode: Mode
    runs: int
    left_out: int
    unknown: int
    false_accepts: RateOf
    false_rejects: RateOf
    precision: RateOf
    recall: RateOf


def agreements(comparisons: Iterable[RunComparison]) -> list[Agreement]:
    """Count every kind of check in every reading that there are comparisons of."""
    kept = list(comparisons)
    return [
        _agreement(kind, mode, some)
        for kind in KINDS
        for mode in MODES
        if (some := [one for one in kept if (one.kind, one.mode) == (kind, mode)])
    ]


def _agreement(kind: str, mode: Mode, some: Sequence[RunComparison]) -> Agreement:
    known = [one for one in some if one.truth is not None]
    failed = [one for one in known if one.truth is False]
    succeeded = [one for one in known if one.truth]
    accepted = [one for one in known if _accepts(one)]
    return Agreement(
        kind,
        mode,
        runs=len(known),
        left_out=len(some) - len(known),
        unknown=sum(one.outcome is Outcome.UNKNOWN for one in known),
        false_accepts=rate(failed, _accepts),
        false_rejects=rate(succeeded, lambda one: one.outcome is Outcome.FAIL),
        precision=rate(accepted, lambda one: bool(one.truth)),
        recall=rate(succeeded, _accepts),
    )


def _accepts(one: RunComparison) -> bool:
    return one.outcome is Outcome.PASS


def rate(some: Sequence[RunComparison], test: Test) -> RateOf:
    """Return the share of comparisons that pass the test, clustered by case within application."""
    hits = np.array([test(one) for one in some], dtype=float)
    if not some:
        return RateOf(0, 0, None, None)
    places = {case: at for at, case in enumerate(dict.fromkeys(one.run.case.id for one in some))}
    rates = rates_by_cluster(
        hits[:, None],
        np.ones((len(some), 1)),
        np.array([places[one.run.case.id] for one in some]),
        np.array([one.run.case.config.app for one in some]),
    ).interval
    low, high = float(rates.low[0]), float(rates.high[0])
    bounded = not np.isnan(low)
    return RateOf(int(hits.sum()), len(some), *((low, high) if bounded else (None, None)))
