"""Which trajectories a run judges: filters, splits, and a limit that may be stratified."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from trajudge.eval.data.index.keys import KeyColumns, first_of_each
from trajudge.eval.stats.interval import Bools, Ints
from trajudge.trajectories.model import TrajectoryKey
from trajudge.trajectories.util.errors import UserError, did_you_mean

T = TypeVar("T")


@dataclass(frozen=True)
class Filters:
    """What the user asked for; an empty collection asks for everything.

    ``limit`` at most so many; ``stratified`` spreads them over (benchmark, agent) in proportion.
    """

    benchmarks: Collection[str] = ()
    agents: Collection[str] = ()
    tasks: Collection[str] = ()
    split: str = "all"
    limit: int | None = None
    stratified: bool = False


def select(
    keys: KeyColumns,
    filters: Filters,
    *,
    splits: Mapping[tuple[str, str], str],
    benchmark_of: Callable[[TrajectoryKey], str],
    rng: np.random.Generator,
) -> KeyColumns:
    """Return the keys to judge, in the order in which they came, without repeats.

    ``splits`` maps (benchmark, task id) to dev or test. Raises UserError for a benchmark, agent
    or task that the data does not have, and if nothing is left.
    """
    found = keys.at(first_of_each(keys))
    wanted = _asked_for(found, filters, benchmark_of)
    if filters.split != "all":
        told = _by_task(found, lambda key: splits.get((key.benchmark, key.task_id)))
        wanted &= [split == filters.split for split in told]
    left = found.at(wanted)
    if not len(left):
        raise UserError(
            f"no trajectory is left of {len(found)} with --split {filters.split} and the "
            "filters given: loosen one of --split, --benchmark, --agent, --task"
        )
    if filters.limit is None or filters.limit >= len(left):
        return left
    if filters.stratified:
        return left.at(_stratified(left, filters.limit, benchmark_of, rng))
    return left.at(np.arange(filters.limit))


def without_split(
    keys: KeyColumns,
    filters: Filters,
    *,
    splits: Mapping[tuple[str, str], str],
    benchmark_of: Callable[[TrajectoryKey], str],
) -> KeyColumns:
    """Return the keys that a split leaves out because no label names the split of their task."""
    if filters.split == "all":
        return keys.at(np.empty(0, dtype=np.int64))
    found = keys.at(first_of_each(keys))
    told = _by_task(found, lambda key: splits.get((key.benchmark, key.task_id)))
    lost = _asked_for(found, filters, benchmark_of)
    return found.at(lost & [split is None for split in told])


def _asked_for(
    found: KeyColumns, filters: Filters, benchmark_of: Callable[[TrajectoryKey], str]
) -> Bools:
    """Mark the keys of the benchmarks, agents and tasks that are named, (K,)."""
    wanted = np.ones(len(found), dtype=bool)
    if filters.benchmarks:
        named = _by_task(found, lambda key: {key.benchmark, benchmark_of(key)})
        _known("benchmark", filters.benchmarks, (name for names in named for name in names))
        wanted &= [not names.isdisjoint(filters.benchmarks) for names in named]
    if filters.agents:
        _known("agent", filters.agents, found.agents)
        wanted &= _marked(found.agents, filters.agents)[found.agent]
    if filters.tasks:
        _known("task", filters.tasks, found.tasks)
        wanted &= _marked(found.tasks, filters.tasks)[found.task]
    return wanted


def _by_task(keys: KeyColumns, told: Callable[[TrajectoryKey], T]) -> list[T]:
    """Return what is told of each of the keys, (K,), looked up once for every task of a
    benchmark."""
    pair = keys.benchmark.astype(np.int64) * len(keys.tasks) + keys.task
    _, first, which = np.unique(pair, return_index=True, return_inverse=True)
    values = [told(keys.key(place)) for place in first.tolist()]
    return [values[number] for number in which.tolist()]


def _marked(names: Sequence[str], wanted: Collection[str]) -> Bools:
    return np.array([name in wanted for name in names], dtype=bool)


def _known(what: str, asked: Collection[str], has: Iterable[str]) -> None:
    if not asked:
        return
    known = set(has)
    for name in asked:
        if name not in known:
            offered = did_you_mean(name, known) or f": it has {_some(sorted(known))}"
            raise UserError(f"--{what} {name}: the data has no such {what}{offered}")


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


def _stratified(
    keys: KeyColumns,
    limit: int,
    benchmark_of: Callable[[TrajectoryKey], str],
    rng: np.random.Generator,
) -> Ints:
    """Draw the places of ``limit`` keys, in order, each stratum's share rounded by largest
    remainder, drawn without return."""
    strata: dict[tuple[str, str], list[int]] = {}
    agents = (keys.agents[agent] for agent in keys.agent.tolist())
    for place, stratum in enumerate(zip(_by_task(keys, benchmark_of), agents, strict=True)):
        strata.setdefault(stratum, []).append(place)
    groups = [strata[name] for name in sorted(strata)]
    exact = np.array([len(group) for group in groups]) * limit / len(keys)
    shares = np.floor(exact).astype(int)
    for largest in np.argsort(-(exact - shares), kind="stable")[: limit - shares.sum()]:
        shares[largest] += 1
    drawn = [
        rng.choice(group, size=share, replace=False)
        for group, share in zip(groups, shares, strict=True)
    ]
    return np.sort(np.concatenate(drawn))
