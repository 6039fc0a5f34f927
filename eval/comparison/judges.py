"""Judges against each other, on the trajectories that both judged, label by label.

Precision, recall and F1 by their difference, with an interval over tasks; accuracy by McNemar's
exact test. Holm's correction is over all pairs: of one metric, one label and one benchmark (or all
of them).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product
from typing import NamedTuple

import numpy as np

from trajudge.eval.comparison.paired import COMPARED, paired_differences
from trajudge.eval.scoring.groups import Group, groups
from trajudge.eval.scoring.intervals import Bootstrap, trajectories_of
from trajudge.eval.scoring.observations import Observations, Verdicts
from trajudge.eval.scoring.records import (
    ALL_AGENTS,
    ALPHA,
    LABELS,
    OVERALL,
    Comparison,
    Difference,
    Discordance,
    Label,
    Missing,
    Ranking,
    Rate,
)
from trajudge.eval.stats.interval import Bools, Floats
from trajudge.eval.stats.judging.comparison import holm, mcnemar, probability_of_improvement
from trajudge.eval.stats.judging.confusion import METRICS, confusion_columns


class _Arena(NamedTuple):
    """Where judges are compared: their observations of one label, in one benchmark or all."""

    benchmark: str
    label: Label
    judges: Mapping[str, Observations]

    @property
    def name(self) -> dict[str, str]:
        return {"benchmark": self.benchmark, "label": self.label}


def compare(
    said: Mapping[str, Verdicts],
    missing: Missing,
    bootstrap: Bootstrap,
    *,
    by_benchmark: bool = False,
) -> Comparison:
    """All pairs of judges that were asked for a label, over all benchmarks, and where
    ``by_benchmark`` also in each; nothing where there is only one, or no resample."""
    if len(said) < 2 or not bootstrap.resamples:
        return Comparison()
    differences: list[Difference] = []
    discordances: list[Discordance] = []
    rankings: list[Ranking] = []
    for arena in _arenas(said, missing, by_benchmark):
        pairs = [_Pair(arena, a, b) for a, b in combinations(sorted(arena.judges), 2)]
        found = _differences(arena, pairs)
        differences += found
        discordances += _discordances(arena, pairs)
        rankings += [_ranking(metric, arena, found) for metric in COMPARED]
    return Comparison(
        differences=tuple(differences),
        discordances=tuple(discordances),
        rankings=tuple(rankings),
    )


def _arenas(said: Mapping[str, Verdicts], missing: Missing, by_benchmark: bool) -> Iterator[_Arena]:
    """Overall first, label by label; where two judges or more were asked on labelled
    trajectories."""
    reference = next(iter(said.values())).reference
    places = [group for group in groups(reference) if group.agent == ALL_AGENTS]
    single = places[:-1] if by_benchmark and len(places) > 2 else []
    for group, label in product([Group(OVERALL, ALL_AGENTS), *single], LABELS):
        members = group.members(reference)
        judges = {
            name: _seen(verdicts, label, missing, members)
            for name, verdicts in said.items()
            if label in verdicts.asked()
        }
        if (group.benchmark, label) != (OVERALL, "success"):
            judges = {name: seen for name, seen in judges.items() if len(seen)}
        if len(judges) > 1:
            yield _Arena(group.benchmark, label, judges)


def _seen(verdicts: Verdicts, label: Label, missing: Missing, members: Bools) -> Observations:
    seen = verdicts.observe(label, missing)
    counted = seen.answered if missing == "exclude" else np.ones(len(seen), dtype=bool)
    return seen.where(counted & members[seen.place])


class _Pair:
    """Two judges' observations of the same trajectories, in one order."""

    def __init__(self, arena: _Arena, first: str, second: str) -> None:
        self.first, self.second = first, second
        one, other = arena.judges[first], arena.judges[second]
        _, here, there = np.intersect1d(
            one.place, other.place, assume_unique=True, return_indices=True
        )
        self.one, self.other = one.at(here), other.at(there)


def _differences(arena: _Arena, pairs: list[_Pair]) -> list[Difference]:
    """Metric by metric, pairs in order; pairs on the same trajectories are computed together."""
    together: dict[bytes, list[_Pair]] = defaultdict(list)
    for pair in pairs:
        together[trajectories_of(pair.one)].append(pair)
    found: dict[tuple[str, str, str], Difference] = {}
    for members in together.values():
        if len(members[0].one):
            same = list(_shared_differences(arena, members))
        else:
            same = [_nothing(arena, *where) for where in product(members, COMPARED)]
        found |= {(d.metric, d.first, d.second): d for d in same}
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


def _nothing(arena: _Arena, pair: _Pair, metric: Rate) -> Difference:
    nothing = dict.fromkeys(("difference", "low", "high", "p", "p_holm"))
    names = {"metric": metric, "first": pair.first, "second": pair.second, "n": 0}
    note = "no trajectory was judged by both"
    return Difference.model_validate({**arena.name, **names, **nothing, "note": note})


def _shared_differences(arena: _Arena, pairs: list[_Pair]) -> Iterator[Difference]:
    """Differences of pairs of judges on the same trajectories."""
    judges = {pair.first: pair.one for pair in pairs} | {p.second: p.other for p in pairs}
    place = {name: index for index, name in enumerate(judges)}
    order = [(place[pair.first], place[pair.second]) for pair in pairs]
    for metric, found in paired_differences([*judges.values()], order).items():
        for pair, paired in zip(pairs, found, strict=True):
            yield Difference(
                benchmark=arena.benchmark,
                label=arena.label,
                metric=metric,
                first=pair.first,
                second=pair.second,
                n=len(pair.one),
                p_holm=None,
                **paired._asdict(),
            )


def _discordances(arena: _Arena, pairs: Sequence[_Pair]) -> list[Discordance]:
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
            benchmark=arena.benchmark,
            label=arena.label,
            first=pair.first,
            second=pair.second,
            n=len(pair.one),
            only_first_right=test.only_first,
            only_second_right=test.only_second,
            p=test.p_value,
            p_holm=float(p),
            **_improvement(pair),
        )
        for pair, test, p in zip(pairs, tests, p_holm, strict=True)
    ]


def _improvement(pair: _Pair) -> dict[str, float | None]:
    """P(first > second) of being right, and its limits."""
    names = ("improvement", "improvement_low", "improvement_high")
    if not len(pair.one):
        return dict.fromkeys(names)
    one, other = (seen.verdict == seen.truth.astype(np.int8) for seen in (pair.one, pair.other))
    found = probability_of_improvement(one, other, pair.one.task, pair.one.benchmark)
    ends = np.stack([found.estimate, found.low, found.high])[:, 0]
    return dict(zip(names, map(_defined, ends.tolist()), strict=True))


def _ranking(metric: Rate, arena: _Arena, differences: Sequence[Difference]) -> Ranking:
    apart = {
        (d.first, d.second)
        for d in differences
        if d.metric == metric and d.p_holm is not None and d.p_holm <= ALPHA
    }
    values = {name: _value(metric, seen) for name, seen in arena.judges.items()}
    order = sorted(values, key=lambda name: (np.isnan(values[name]), -values[name], name))
    return Ranking(
        benchmark=arena.benchmark,
        label=arena.label,
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
