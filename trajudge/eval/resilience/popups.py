"""Whether agents get past a popup because they see it: accessibility as a factor.

The published study's popup had a close control without a role, so that what it measured of agents
was also the popup's own fault.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from trajudge.eval.resilience.measures import (
    CONFIDENCE,
    IntervalEstimate,
    estimate_of,
    rate,
    with_width,
)
from trajudge.eval.resilience.records import FaultExperiment, MetFault
from trajudge.eval.stats.intervals.cluster_bootstrap import sum_clusters
from trajudge.eval.stats.intervals.clustered_differences import difference_limits

LEVELS = ("full", "none")


@dataclass(frozen=True)
class PopupFactor:
    """Popups of both accessibilities in an agent's runs (``agent`` "": all agents): how many fired,
    the share recovered from, and by how much a popup with full accessibility is recovered from more
    often."""

    agent: str
    fired: dict[str, int]
    recovery: dict[str, IntervalEstimate]
    dismissed: dict[str, int]
    difference: IntervalEstimate


class _Meeting(NamedTuple):
    """A task, an accessibility, and the popup that was met."""

    task: str
    level: str
    met: MetFault


def popup_factor(experiment: FaultExperiment) -> list[PopupFactor]:
    """Compare popups with and without accessibility; nothing where a plan has only one kind."""
    agents = experiment.agents
    rows = []
    for agent in ["", *agents] if len(agents) > 1 else agents:
        found = list(_meetings(experiment, agent))
        if all(any(level == wanted for _, level, _ in found) for wanted in LEVELS):
            rows.append(_factor(agent, found))
    return rows


def _meetings(experiment: FaultExperiment, agent: str) -> Iterator[_Meeting]:
    for arm in experiment.faulted:
        levels = {fault.id: fault.accessibility for fault in arm.faults if fault.kind == "popup"}
        for run in arm.runs:
            if agent in ("", run.key.agent):
                for met in run.faults:
                    if met.fault in levels and met.fired:
                        yield _Meeting(run.key.task, levels[met.fault], met)


def _factor(agent: str, found: Sequence[_Meeting]) -> PopupFactor:
    tasks = [task for task, _, _ in found]
    fired, past = np.zeros((len(found), 2)), np.zeros((len(found), 2))
    for row, (_, level, met) in enumerate(found):
        fired[row, LEVELS.index(level)] = met.fired
        past[row, LEVELS.index(level)] = met.recovered
    clusters = sum_clusters(np.concatenate([past, fired], axis=1), tasks)
    sums = clusters.sums.T
    apart = IntervalEstimate(None, None, None)
    if len(clusters.sums) > 1:
        limits = difference_limits(sums[:2], sums[2:], clusters.stratum_sizes, CONFIDENCE)
        apart = with_width(estimate_of(limits), sums[:2], sums[2:])
    return PopupFactor(
        agent=agent,
        fired={level: int(fired[:, at].sum()) for at, level in enumerate(LEVELS)},
        recovery={level: rate(past[:, at], tasks, fired[:, at]) for at, level in enumerate(LEVELS)},
        dismissed={
            wanted: sum(met.means.count("dismissed") for _, level, met in found if level == wanted)
            for wanted in LEVELS
        },
        difference=apart,
    )
