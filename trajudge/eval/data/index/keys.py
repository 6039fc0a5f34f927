"""Keys of trajectories as columns of numbers: a million of them take tens of megabytes."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from trajudge.eval.stats.interval import Bools, Ints
from trajudge.trajectories.model import TrajectoryKey, canonical_task_id

Codes = NDArray[np.int32]


class KeyLike(Protocol):
    """A TrajectoryKey, or its fields as they stand in a file."""

    @property
    def benchmark(self) -> str: ...
    @property
    def agent(self) -> str: ...
    @property
    def task_id(self) -> str: ...
    @property
    def attempt(self) -> int: ...


@dataclass(frozen=True, eq=False)
class KeyColumns:
    """Keys of trajectories, (N,), in any order, with repeats.

    ``benchmark``, ``agent`` and ``task`` index the names in ``benchmarks``, ``agents`` and
    ``tasks``, which are distinct and sorted: the order of the numbers is the order of the keys.
    """

    benchmarks: tuple[str, ...]
    agents: tuple[str, ...]
    tasks: tuple[str, ...]
    benchmark: Codes
    agent: Codes
    task: Codes
    attempt: Ints

    @classmethod
    def of(cls, keys: Iterable[KeyLike]) -> KeyColumns:
        """Turn keys into columns."""
        builder = KeyColumnsBuilder()
        for key in keys:
            builder.add(key)
        return builder.build()

    def at(self, places: Any) -> KeyColumns:
        """Keep those at these places (an index or a mask), in that order."""
        chosen = (column[places] for column in self._codes)
        return KeyColumns(self.benchmarks, self.agents, self.tasks, *chosen)

    def key(self, place: int) -> TrajectoryKey:
        """Make the key at this place."""
        return TrajectoryKey.of_checked(
            self.benchmarks[self.benchmark[place]],
            self.agents[self.agent[place]],
            self.tasks[self.task[place]],
            int(self.attempt[place]),
        )

    @property
    def _codes(self) -> tuple[Codes, Codes, Codes, Ints]:
        return self.benchmark, self.agent, self.task, self.attempt

    def __iter__(self) -> Iterator[TrajectoryKey]:
        return map(self.key, range(len(self)))

    def __len__(self) -> int:
        return len(self.benchmark)


class _Numbers(dict[str, int]):
    """Names with their numbers, in the order in which they came."""

    def __missing__(self, name: str) -> int:
        number = self[name] = len(self)
        return number


class KeyColumnsBuilder:
    """Takes keys one by one."""

    def __init__(self) -> None:
        self._names = _Numbers(), _Numbers(), _Numbers()
        self._codes = tuple(array(code) for code in "iiiq")
        self._append = tuple(codes.append for codes in self._codes)

    def add(self, key: KeyLike) -> None:
        """Append a key; its task's id is made canonical."""
        benchmarks, agents, tasks = self._names
        first, second, third, last = self._append
        benchmark, task = key.benchmark, key.task_id
        if type(key) is not TrajectoryKey:
            task = canonical_task_id(benchmark, task)
        first(benchmarks[benchmark])
        second(agents[key.agent])
        third(tasks[task])
        last(key.attempt)

    def build(self) -> KeyColumns:
        """Return the columns; nothing is added afterwards."""
        ordered = [tuple(sorted(known)) for known in self._names]
        benchmark, agent, task = (
            _translation(list(known), names)[column_of(codes)]
            for known, names, codes in zip(self._names, ordered, self._codes, strict=False)
        )
        benchmarks, agents, tasks = ordered
        attempt = column_of(self._codes[3])
        return KeyColumns(benchmarks, agents, tasks, benchmark, agent, task, attempt)


def joined(parts: Sequence[KeyColumns]) -> KeyColumns:
    """Put keys behind each other, (N1 + N2 + ...,)."""
    if len(parts) == 1:
        return parts[0]
    benchmarks, benchmark = _joined([(part.benchmarks, part.benchmark) for part in parts])
    agents, agent = _joined([(part.agents, part.agent) for part in parts])
    tasks, task = _joined([(part.tasks, part.task) for part in parts])
    attempt = np.concatenate([part.attempt for part in parts])
    return KeyColumns(benchmarks, agents, tasks, benchmark, agent, task, attempt)


def _joined(parts: Sequence[tuple[tuple[str, ...], Codes]]) -> tuple[tuple[str, ...], Codes]:
    ordered = tuple(sorted(set[str]().union(*(names for names, _ in parts))))
    codes = [_translation(names, ordered)[code] for names, code in parts]
    return ordered, np.concatenate(codes)


def sorted_places(keys: KeyColumns) -> Ints:
    """Return the places of the keys in their order (``TrajectoryKey.order``), (N,)."""
    return np.lexsort(keys._codes[::-1])


def distinct(keys: KeyColumns) -> tuple[KeyColumns, Codes]:
    """Return the distinct keys in their order, (T,), and the place of each of ``keys`` among them,
    (N,)."""
    order = sorted_places(keys)
    changes = np.zeros(len(keys), dtype=bool)
    for column in keys._codes:
        ordered = column[order]
        changes[1:] |= ordered[1:] != ordered[:-1]
    place = np.empty(len(keys), dtype=np.int32)
    place[order] = np.cumsum(changes, dtype=np.int32)
    changes[:1] = True
    return keys.at(order[changes]), place


def places_among(keys: KeyColumns, among: KeyColumns) -> Ints:
    """Find each of ``keys`` among distinct keys, (N,); -1 for one that is not there."""
    known, place = distinct(joined([among, keys]))
    number = np.full(len(known), -1, dtype=np.int64)
    number[place[: len(among)]] = np.arange(len(among))
    return np.asarray(number[place[len(among) :]])


def first_of_each(keys: KeyColumns) -> Ints:
    """Return the rows at which a key comes for the first time, in order."""
    return np.sort(np.unique(distinct(keys)[1], return_index=True)[1])


class KeyPlaces:
    """Finds keys among ``places`` of distinct ``keys``: eight bytes a key, where a dict of records
    takes four hundred."""

    def __init__(self, keys: KeyColumns, places: Ints) -> None:
        known, attempt = np.unique(keys.attempt, return_inverse=True)
        self._benchmarks, self._agents, self._tasks = (
            {name: number for number, name in enumerate(names)}
            for names in (keys.benchmarks, keys.agents, keys.tasks)
        )
        self._attempts = {value: number for number, value in enumerate(known.tolist())}
        agent, task = keys.agent.astype(np.int64), keys.task.astype(np.int64)
        codes = self._code(keys.benchmark.astype(np.int64), agent, task, attempt)[places]
        order = np.argsort(codes, kind="stable")
        self._codes = array("q", codes[order].tobytes())
        self._places = array("q", places[order].astype(np.int64).tobytes())

    def _code(self, benchmark: Any, agent: Any, task: Any, attempt: Any) -> Any:
        """Return one number for the four, of one key or of a column of them."""
        whole = (benchmark * len(self._agents) + agent) * len(self._tasks) + task
        return whole * len(self._attempts) + attempt

    def find(self, key: TrajectoryKey) -> int | None:
        """Return the key's place, None for one that is not there."""
        try:
            code = self._code(
                self._benchmarks[key.benchmark],
                self._agents[key.agent],
                self._tasks[key.task_id],
                self._attempts[key.attempt],
            )
        except KeyError:
            return None
        row = bisect_left(self._codes, code)
        found = row < len(self._codes) and self._codes[row] == code
        return self._places[row] if found else None

    def __contains__(self, key: TrajectoryKey) -> bool:
        return self.find(key) is not None

    def __len__(self) -> int:
        return len(self._places)


def are_equal(one: KeyColumns, other: KeyColumns) -> bool:
    """Tell whether they are the same distinct keys in the same order."""
    return np.array_equal(places_among(one, other), np.arange(len(other)))


def column_of(values: array[Any]) -> NDArray[Any]:
    """Return an array as a column of numpy's, without a copy."""
    return np.frombuffer(values, dtype=values.typecode) if values else np.empty(0, values.typecode)


def marked(size: int, places: Ints | Codes) -> Bools:
    """Mark ``places`` among so many."""
    chosen = np.zeros(size, dtype=bool)
    chosen[places] = True
    return chosen


def _translation(names: Sequence[str], ordered: Sequence[str]) -> Codes:
    """Return the place of each of ``names`` in ``ordered``, which holds them all."""
    place = {name: number for number, name in enumerate(ordered)}
    return np.array([place[name] for name in names], dtype=np.int32)
