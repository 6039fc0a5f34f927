"""Judges against each other, on the trajectories that both judged.

Precision, recall and F1 by a paired bootstrap over tasks; accuracy by McNemar's exact test. Holm's
correction is over all pairs, metric by metric.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import combinations, product
from math import ceil

import numpy as np

from eval.observations import Observations
from eval.scores import Comparison, Difference, Discordance, Missing, Ranking, Rate
from eval.stats.cluster_bootstrap import sum_clusters
from eval.stats.comparison import holm, mcnemar, paired_differences
from eval.stats.confusion import METRICS, confusion_columns, confusion_statistic
from eval.stats.interval import Floats, Interval
from eval.uncertainty import Bootstrap, trajectories_of

COMPARED: tuple[Rate, ...] = ("precision", "recall", "f1")
ALPHA = 0.05


def compare(
    judges: Mapping[str, Observations], missing: Missing, bootstrap: Bootstrap
) -> Comparison:
    """All pairs of judges; nothing where there is only one, or no resample."""
    if len(judges) < 2 or not bootstrap.resamples:
        return Comparison()
    pairs = [_Pair(a, b, judges, missing) for a, b in combinations(sorted(judges), 2)]
    # The smallest p-value of B resamples is 2 / (B + 1), which Holm multiplies by the pairs: with
    # too few resamples no two of many judges could be told apart, however they differ.
    enough = max(bootstrap.resamples, ceil(4 * len(pairs) / ALPHA))
    differences = _differences(pairs, replace(bootstrap, resamples=enough))
    return Comparison(
        differences=tuple(differences),
        discordances=tuple(_discordances(pairs)),
        rankings=tuple(_ranking(metric, judges, missing, differences) for metric in COMPARED),
    )


class _Pair:
    """Two judges' observations of the same trajectories, in one order."""

    def __init__(
        self, first: str, second: str, judges: Mapping[str, Observations], missing: Missing
    ) -> None:
        self.first, self.second = first, second
        one, other = (_counted(judges[name], missing) for name in (first, second))
        places, theirs = _places(one), _places(other)
        common = [key for key in places if key in theirs]
        self.one = one.at([places[key] for key in common])
        self.other = other.at([theirs[key] for key in common])


def _counted(seen: Observations, missing: Missing) -> Observations:
    return seen.where(seen.answered) if missing == "exclude" else seen


def _places(seen: Observations) -> dict[tuple[str, str, str, int], int]:
    """Trajectory -> position; attempts at one task by one agent are told apart."""
    rows = zip(
        seen.benchmark.tolist(),
        seen.agent.tolist(),
        seen.task.tolist(),
        seen.attempt.tolist(),
        strict=True,
    )
    return {row: index for index, row in enumerate(rows)}


def _differences(pairs: list[_Pair], bootstrap: Bootstrap) -> list[Difference]:
    """Metric by metric, pairs in order; pairs on the same trajectories share the resamples."""
    together: dict[bytes, list[_Pair]] = defaultdict(list)
    for pair in pairs:
        together[trajectories_of(pair.one)].append(pair)
    found: dict[tuple[str, str, str], Difference] = {}
    for members in together.values():
        same = _shared_differences(members, bootstrap) if len(members[0].one) else None
        for d in same or map(_nothing, product(members, COMPARED)):
            found[d.metric, d.first, d.second] = d
    return [
        found[metric, pair.first, pair.second].model_copy(update={"p_holm": _defined(p)})
        for metric in COMPARED
        for pair, p in zip(pairs, _holm(found, metric, pairs), strict=True)
    ]


def _holm(
    found: Mapping[tuple[str, str, str], Difference], metric: Rate, pairs: list[_Pair]
) -> Floats:
    values = [found[metric, pair.first, pair.second].p for pair in pairs]
    return holm([np.nan if p is None else p for p in values])


def _nothing(where: tuple[_Pair, Rate]) -> Difference:
    pair, metric = where
    nothing = dict.fromkeys(("difference", "low", "high", "p", "p_holm"))
    names = {"metric": metric, "first": pair.first, "second": pair.second, "n": 0}
    note = "no trajectory was judged by both"
    return Difference.model_validate({**names, **nothing, "note": note})


def _shared_differences(pairs: list[_Pair], bootstrap: Bootstrap) -> Iterator[Difference]:
    """Differences of pairs of judges on the same trajectories."""
    judges = {pair.first: pair.one for pair in pairs} | {p.second: p.other for p in pairs}
    place = {name: index for index, name in enumerate(judges)}
    seen = pairs[0].one
    columns = confusion_columns(
        np.column_stack([one.verdict == 1 for one in judges.values()]),
        seen.truth,
        np.column_stack([one.verdict >= 0 for one in judges.values()]),
    )
    order = list(product(range(len(COMPARED)), pairs))
    told = paired_differences(
        sum_clusters(columns, seen.task, seen.benchmark),
        confusion_statistic(*COMPARED),
        [(m * len(judges) + place[p.first], m * len(judges) + place[p.second]) for m, p in order],
        np.random.default_rng(bootstrap.seed),
        n_resamples=bootstrap.resamples,
    )
    interval = told.interval
    for i, (m, pair) in enumerate(order):
        yield Difference(
            metric=COMPARED[m],
            first=pair.first,
            second=pair.second,
            n=len(seen),
            difference=_defined(interval.estimate[i]),
            low=_defined(interval.low[i]),
            high=_defined(interval.high[i]),
            p=_defined(told.p_value[i]),
            p_holm=None,
            note=_note(interval, i) if np.isnan(told.p_value[i]) else "",
        )


def _note(interval: Interval, place: int) -> str:
    """Why there is no interval at ``place``."""
    if np.isnan(interval.estimate[place]):
        return "one of the two is undefined: a denominator is zero"
    return "; ".join(interval.notes)


def _discordances(pairs: list[_Pair]) -> list[Discordance]:
    tests = [
        mcnemar(
            pair.one.verdict == pair.one.truth.astype(np.int8),
            pair.other.verdict == pair.other.truth.astype(np.int8),
        )
        for pair in pairs
    ]
    p_holm = holm([test.p_value for test in tests])
    return [
        Discordance(
            first=pair.first,
            second=pair.second,
            n=len(pair.one),
            only_first_right=test.only_first,
            only_second_right=test.only_second,
            p=test.p_value,
            p_holm=float(p),
        )
        for pair, test, p in zip(pairs, tests, p_holm, strict=True)
    ]


def _ranking(
    metric: Rate,
    judges: Mapping[str, Observations],
    missing: Missing,
    differences: list[Difference],
) -> Ranking:
    apart = {
        (d.first, d.second)
        for d in differences
        if d.metric == metric and d.p_holm is not None and d.p_holm <= ALPHA
    }
    values = {name: _value(metric, _counted(seen, missing)) for name, seen in judges.items()}
    order = sorted(values, key=lambda name: (np.isnan(values[name]), -values[name], name))
    return Ranking(
        metric=metric,
        judges=tuple(order),
        ties=tuple(_ties(order, apart)),
        apart=tuple(sorted(apart)),
    )


def _value(metric: Rate, seen: Observations) -> float:
    said, truth, counted = seen.verdict == 1, seen.truth, seen.verdict >= 0
    columns = confusion_columns(said[:, None], truth, counted[:, None])
    with np.errstate(invalid="ignore"):
        return float(METRICS[metric](*columns.sum(axis=0)))


def _ties(order: list[str], apart: set[tuple[str, str]]) -> list[tuple[str, ...]]:
    """Longest runs of neighbours without a pair in ``apart``; two judges or more."""
    runs: list[tuple[str, ...]] = []
    reached = 0
    for start in range(len(order)):
        end = start + 1
        while end < len(order) and not any(
            (a, order[end]) in apart or (order[end], a) in apart for a in order[start:end]
        ):
            end += 1
        if end - start > 1 and end > reached:
            runs.append(tuple(order[start:end]))
            reached = end
    return runs


def _defined(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
