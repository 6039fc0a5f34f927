"""What a run cost, and which groups of trajectories cost most or are judged worst."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from trajudge.app.runs.overview import table_link
from trajudge.app.server.workspace import OpenedRun
from trajudge.eval.store.filters import JudgmentView
from trajudge.eval.store.table import UNKNOWN
from trajudge.stats.intervals import Bools, Floats

_SHOWN = 5


class Distribution(NamedTuple):
    """Costs in dollars or seconds of a judge's judgments; ``unknown`` have no figure."""

    judge: str
    known: int
    unknown: int
    total: float
    median: float
    p95: float
    most: float


class Group(NamedTuple):
    """A benchmark and agent, its number of judgments and what they sum up to."""

    benchmark: str
    agent: str
    judgments: int
    value: float
    link: str


class Spending(NamedTuple):
    """What was spent, by judge, and the groups at the top."""

    cost: list[Distribution]
    seconds: list[Distribution]
    dearest: list[Group]
    worst: list[Group]


def spending_of(run: OpenedRun) -> Spending:
    """Read what a run spent. Raises UserError as its view."""
    view = run.view()
    answered = (view.success != UNKNOWN) & (view.expert[view.trajectory] >= 0)
    every, wrong = np.ones(len(view.judgments), dtype=bool), (view.wrong > 0).astype(float)
    return Spending(
        _distributions(view, view.cost),
        _distributions(view, view.seconds),
        _groups(view, every, np.nan_to_num(view.cost), run.name, ()),
        _groups(view, answered, wrong, run.name, (("wrong", ":", "any"),)),
    )


def _distributions(view: JudgmentView, values: Floats) -> list[Distribution]:
    judges = sorted(view.judgments.judges)
    return [_distribution(name, values[view.judgments.of_judge(name)]) for name in judges]


def _distribution(judge: str, values: Floats) -> Distribution:
    known = values[~np.isnan(values)]
    if not len(known):
        return Distribution(judge, 0, len(values), 0.0, 0.0, 0.0, 0.0)
    median, p95 = np.quantile(known, [0.5, 0.95]).tolist()
    unknown = len(values) - len(known)
    return Distribution(
        judge, len(known), unknown, float(known.sum()), median, p95, float(known.max())
    )


def _groups(
    view: JudgmentView,
    counted: Bools,
    values: Floats,
    run: str,
    terms: Sequence[tuple[str, str, str]],
) -> list[Group]:
    """List the benchmarks and agents with the largest sums of values, (N,)."""
    keys = view.keys
    pair = (keys.benchmark.astype(np.int64) * len(keys.agents) + keys.agent)[view.trajectory]
    known, which = np.unique(pair[counted], return_inverse=True)
    sizes, sums = np.bincount(which), np.bincount(which, weights=values[counted])
    groups = []
    for place in np.argsort(-sums, kind="stable")[:_SHOWN].tolist():
        benchmark, agent = divmod(int(known[place]), len(keys.agents))
        names = keys.benchmarks[benchmark], keys.agents[agent]
        link = table_link(run, ("benchmark", ":", names[0]), ("agent", ":", names[1]), *terms)
        if sums[place] > 0:
            groups.append(Group(*names, int(sizes[place]), float(sums[place]), link))
    return groups
