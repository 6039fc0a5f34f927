"""Which trajectories a run judges: filters, splits, and a limit that may be stratified."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from trajudge.trajectories.model import TrajectoryKey
from trajudge.trajectories.util.errors import UserError


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
    keys: Iterable[TrajectoryKey],
    filters: Filters,
    *,
    splits: Mapping[tuple[str, str], str],
    benchmark_of: Callable[[TrajectoryKey], str],
    rng: np.random.Generator,
) -> list[TrajectoryKey]:
    """Return the keys to judge, in the order in which they came, without repeats.

    ``splits`` maps (benchmark, task id) to dev or test. Raises UserError for a benchmark, agent
    or task that the data does not have, and if nothing is left.
    """
    distinct = list(dict.fromkeys(keys))
    if not distinct:
        raise UserError("--data: holds no trajectory that can be read: name another folder")
    names = (name for key in distinct for name in _names(key, benchmark_of))
    _known("benchmark", filters.benchmarks, names)
    _known("agent", filters.agents, (key.agent for key in distinct))
    _known("task", filters.tasks, (key.task_id for key in distinct))
    wanted = [
        key
        for key in distinct
        if (not filters.benchmarks or _names(key, benchmark_of) & set(filters.benchmarks))
        and (not filters.agents or key.agent in filters.agents)
        and (not filters.tasks or key.task_id in filters.tasks)
        and (filters.split == "all" or splits.get((key.benchmark, key.task_id)) == filters.split)
    ]
    if not wanted:
        raise UserError(
            f"no trajectory is left of {len(distinct)} with --split {filters.split} and the "
            "filters given: loosen one of --split, --benchmark, --agent, --task"
        )
    if filters.limit is None or filters.limit >= len(wanted):
        return wanted
    if filters.stratified:
        return _stratified(wanted, filters.limit, benchmark_of, rng)
    return wanted[: filters.limit]


def _names(key: TrajectoryKey, benchmark_of: Callable[[TrajectoryKey], str]) -> set[str]:
    """Return the benchmark's names: WorkArena++ is a part of workarena too."""
    return {key.benchmark, benchmark_of(key)}


def _known(what: str, asked: Collection[str], has: Iterable[str]) -> None:
    if not asked:
        return
    known = set(has)
    for name in asked:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1, cutoff=0.4)
            offered = f"did you mean {close[0]!r}?" if close else f"it has {_some(sorted(known))}"
            raise UserError(f"--{what} {name}: the data has no such {what}: {offered}")


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


def _stratified(
    keys: Sequence[TrajectoryKey],
    limit: int,
    benchmark_of: Callable[[TrajectoryKey], str],
    rng: np.random.Generator,
) -> list[TrajectoryKey]:
    """Draw ``limit`` keys, each stratum's share rounded by largest remainder, drawn without
    return."""
    strata: dict[tuple[str, str], list[int]] = {}
    for position, key in enumerate(keys):
        strata.setdefault((benchmark_of(key), key.agent), []).append(position)
    groups = [strata[name] for name in sorted(strata)]
    exact = np.array([len(group) for group in groups]) * limit / len(keys)
    shares = np.floor(exact).astype(int)
    for largest in np.argsort(-(exact - shares), kind="stable")[: limit - shares.sum()]:
        shares[largest] += 1
    drawn = [
        position
        for group, share in zip(groups, shares, strict=True)
        for position in rng.choice(group, size=share, replace=False)
    ]
    return [keys[position] for position in sorted(drawn)]
