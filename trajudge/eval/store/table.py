"""Judgments as one table: columns of numbers in memory, records decoded when they are asked for.

Keys, statuses, verdicts, scores and calls are columns (some two hundred bytes a judgment); texts
stay where they were read. Run folders, published judgments and judgments in memory are read into
this table, and everything that scores, compares or shows judgments reads its columns.
"""

from __future__ import annotations

import os
import weakref
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from hashlib import sha256
from itertools import accumulate
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple, Protocol, TypeVar, overload
from unicodedata import combining, normalize

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import ValidationError

from trajudge.eval.rungs import furthest_rungs
from trajudge.judges.model import SECOND_ASKED, USAGE_FIELDS, Judgment, Status
from trajudge.stats.intervals import Bools, Floats, Ints
from trajudge.trajectories.model import Record, TrajectoryKey, canonical_task_id
from trajudge.trajectories.store import KeyFields
from trajudge.util.errors import UserError
from trajudge.util.files import open_regular, utf8
from trajudge.util.machine import collection_paused
from trajudge.util.validation import first_error

Codes = NDArray[np.int32]

UNKNOWN = -1

STATUSES = tuple(Status)

STATUS_CODE = {status: code for code, status in enumerate(STATUSES)}

VERDICTS = ("success", "side_effect", "repetition", "process")

PAYMENTS = "payments.jsonl"

_BATCH = 1024  # rows that are turned into Python's own numbers, or from them, at a time


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


class _Numbers(dict[str, int]):
    """Names with their numbers, in the order in which they came."""

    def __missing__(self, name: str) -> int:
        number = self[name] = len(self)
        return number


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
        builder.extend(keys)
        return builder.build()

    def at(self, rows: Any) -> KeyColumns:
        """Keep those at these rows (an index or a mask), in that order."""
        chosen = (column[rows] for column in self._codes)
        return KeyColumns(self.benchmarks, self.agents, self.tasks, *chosen)

    def key(self, row: int) -> TrajectoryKey:
        """Make the key at this row."""
        return TrajectoryKey.of_checked(
            self.benchmarks[self.benchmark[row]],
            self.agents[self.agent[row]],
            self.tasks[self.task[row]],
            int(self.attempt[row]),
        )

    @property
    def _codes(self) -> tuple[Codes, Codes, Codes, Ints]:
        return self.benchmark, self.agent, self.task, self.attempt

    def __iter__(self) -> Iterator[TrajectoryKey]:
        return map(self.key, range(len(self)))

    def __len__(self) -> int:
        return len(self.benchmark)


class KeyColumnsBuilder:
    """Takes keys, some at a time or one by one."""

    def __init__(self) -> None:
        self._names = _Numbers(), _Numbers(), _Numbers()
        self._codes = tuple(array(code) for code in "iiiq")
        self._append = tuple(codes.append for codes in self._codes)

    def add(self, key: KeyLike) -> None:
        """Append a key."""
        self.extend((key,))

    def extend(self, keys: Iterable[KeyLike]) -> None:
        """Append keys; their tasks' ids are made canonical."""
        benchmarks, agents, tasks = self._names
        first, second, third, last = self._append
        for key in keys:
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
            _renumbered(list(known), names)[column_of(codes)]
            for known, names, codes in zip(self._names, ordered, self._codes, strict=False)
        )
        benchmarks, agents, tasks = ordered
        attempt = column_of(self._codes[3])
        return KeyColumns(benchmarks, agents, tasks, benchmark, agent, task, attempt)


def joined(parts: Sequence[KeyColumns]) -> KeyColumns:
    """Concatenate keys, (N1 + N2 + ...,)."""
    if len(parts) == 1:
        return parts[0]
    benchmarks, benchmark = _joined([(part.benchmarks, part.benchmark) for part in parts])
    agents, agent = _joined([(part.agents, part.agent) for part in parts])
    tasks, task = _joined([(part.tasks, part.task) for part in parts])
    attempt = np.concatenate([part.attempt for part in parts])
    return KeyColumns(benchmarks, agents, tasks, benchmark, agent, task, attempt)


def _joined(parts: Sequence[tuple[tuple[str, ...], Codes]]) -> tuple[tuple[str, ...], Codes]:
    ordered = tuple(sorted(set[str]().union(*(names for names, _ in parts))))
    codes = [_renumbered(names, ordered)[code] for names, code in parts]
    return ordered, np.concatenate(codes)


def _renumbered(names: Sequence[str], among: Sequence[str]) -> Codes:
    """Return the place of each of ``names`` in ``among``, which holds them all."""
    place = {name: number for number, name in enumerate(among)}
    return np.array([place[name] for name in names], dtype=np.int32)


def sorted_places(keys: KeyColumns) -> Ints:
    """Return the rows of the keys in their order (``TrajectoryKey.order``), (N,)."""
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


def are_equal(one: KeyColumns, other: KeyColumns) -> bool:
    """Return True if they are the same distinct keys in the same order."""
    return np.array_equal(places_among(one, other), np.arange(len(other)))


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


def column_of(values: array[Any]) -> NDArray[Any]:
    """Return an array as a column of numpy's, without a copy."""
    return np.frombuffer(values, dtype=values.typecode) if values else np.empty(0, values.typecode)


def marked(size: int, places: Ints | Codes) -> Bools:
    """Mark ``places`` among so many."""
    chosen = np.zeros(size, dtype=bool)
    chosen[places] = True
    return chosen


NO_REQUEST = -1

"""Of a call whose request is not known, as of published judgments."""

_HEX_DIGITS = 15  # a signed column of 64 bits holds them


def request_number(request: str) -> int:
    """Return a number of 60 bits that stands for a request, the same in every process."""
    if not request:
        return NO_REQUEST
    try:
        return int(request[:_HEX_DIGITS], 16)
    except ValueError:  # written by hand, for the engine's are hexadecimal
        return int(sha256(request.encode("utf-8", "replace")).hexdigest()[:_HEX_DIGITS], 16)


class UsageFields(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """The fields of Usage."""

    input: int = 0
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0
    reasoning: int = 0
    image: int = 0


class CallFields(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """The fields of Call."""

    stage: str
    request: str
    rung: str
    finish: str
    usage: UsageFields | None
    cost: float | None
    text: str
    seconds: float = 0.0
    cached: bool = False


class JudgmentFields(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """The fields of Judgment."""

    key: KeyFields
    judge: str
    status: Status
    sample: int = 0
    success: bool | None = None
    side_effect: bool | None = None
    repetition: bool | None = None
    optimality: Annotated[int, msgspec.Meta(ge=1, le=4)] | None = None
    score: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    scores: dict[str, float] = {}
    reasoning: str = ""
    fallback: str = ""
    detail: str = ""
    calls: tuple[CallFields, ...] = ()
    record: dict[str, Any] | None = None
    process: bool | None = None
    failure_step: Annotated[int, msgspec.Meta(ge=0)] | None = None
    failure_type: str | None = None

    def judgment(self) -> Judgment:
        """Make the record."""
        return Judgment.model_validate(msgspec.to_builtins(self))


_DECODER = msgspec.json.Decoder(JudgmentFields)


def decode_fields(line: bytes) -> JudgmentFields | Judgment:
    """Decode a line: its fields, or the record where only validation takes the line. Raises
    ValidationError."""
    try:
        judgment = _DECODER.decode(line)
    except msgspec.MsgspecError:
        return Judgment.model_validate_json(line)
    return judgment if judgment.key.attempt >= 0 else Judgment.model_validate_json(line)


Columns = TypeVar("Columns", "CallColumns", "JudgmentTable")


@dataclass(frozen=True, eq=False)
class CallColumns:
    """Calls in the order of their judgments, (C,).

    ``judgment`` is the row of the call's judgment, ``stage`` indexes ``stages``. ``cost`` is nan
    where the price is not known; ``usage`` are tokens by field, (len(USAGE_FIELDS), C). ``request``
    is ``request_number``. ``seconds`` are those of all sessions, and ``cached`` calls were answered
    without being paid in any of them, as far as the run's ledger tells.
    """

    stages: tuple[str, ...]
    judgment: Ints
    stage: Ints
    cost: Floats
    seconds: Floats
    usage: Ints
    request: Ints
    cached: Bools

    def of(self, rows: Ints) -> CallColumns:
        """Keep the calls of some of the judgments, which ``rows`` puts into a new order."""
        first = np.searchsorted(self.judgment, rows)
        counts = np.searchsorted(self.judgment, rows, side="right") - first
        row = np.repeat(np.arange(len(rows)), counts)
        ends = np.cumsum(counts)
        chosen = np.arange(len(row)) - np.repeat(ends - counts, counts) + first[row]
        return replace(_rows(self, chosen), judgment=row)

    def __len__(self) -> int:
        return len(self.stage)


class JudgmentSource(Protocol):
    """What gives the records of a table; ``is_fresh``: each anew, which nobody else holds."""

    is_fresh: ClassVar[bool]

    def judgment(self, offset: int, length: int) -> Judgment:
        """Return the record at this offset. Raises UserError where it was changed."""
        ...


@dataclass(frozen=True)
class _InMemory:
    """Records, or fields, by their number."""

    is_fresh: ClassVar = False
    judgments: Sequence[Judgment | JudgmentFields]

    def judgment(self, offset: int, _: int) -> Judgment:
        found = self.judgments[offset]
        return found if isinstance(found, Judgment) else found.judgment()


@dataclass(frozen=True, eq=False)
class JudgmentTable(Sequence[Judgment]):
    """Judgments, (N,), in any order. As a sequence it yields the records.

    ``judge`` indexes ``judges``, ``status`` STATUSES, ``rung`` ``eval.rungs.RUNGS``. ``verdicts``
    are 1, 0 or UNKNOWN, (len(VERDICTS), N); ``score`` is nan where there is none. ``second_asked``
    is what a cascade reports of its second member, nan of other judges; ``repaired`` verdicts were
    parsed by a fallback. A judgment's record is at ``offset`` in the one of ``sources`` that
    ``source`` indexes: in a file, bytes of a line of this ``length``.
    """

    keys: KeyColumns
    judges: tuple[str, ...]
    judge: Codes
    sample: Codes
    status: NDArray[np.int8]
    rung: NDArray[np.int8]
    verdicts: NDArray[np.int8]
    score: Floats
    second_asked: Floats
    repaired: Bools
    source: NDArray[np.int16]
    offset: Ints
    length: Codes
    calls: CallColumns
    sources: tuple[JudgmentSource, ...]

    @classmethod
    def of(cls, judgments: Iterable[Judgment]) -> JudgmentTable:
        """Return the table of judgments: themselves, if they are one."""
        if isinstance(judgments, JudgmentTable):
            return judgments
        return in_memory(tuple(judgments))

    def at(self, rows: Ints | Bools) -> JudgmentTable:
        """Keep the judgments at these rows (places or a mask), in that order."""
        chosen = np.flatnonzero(rows) if rows.dtype == bool else np.asarray(rows, dtype=np.int64)
        if np.array_equal(chosen, np.arange(len(self))):
            return self
        return replace(_rows(self, chosen), keys=self.keys.at(chosen), calls=self.calls.of(chosen))

    def verdict(self, name: str) -> NDArray[np.int8]:
        """Return one of the verdicts: 1, 0 or UNKNOWN, (N,)."""
        column: NDArray[np.int8] = self.verdicts[VERDICTS.index(name)]
        return column

    def ok(self) -> Bools:
        """Return which judgments ended well, (N,)."""
        return np.asarray(self.status == STATUS_CODE[Status.OK])

    def of_judge(self, name: str) -> Bools:
        """Return which judgments are a judge's, (N,)."""
        if name not in self.judges:
            return np.zeros(len(self), dtype=bool)
        return np.asarray(self.judge == self.judges.index(name))

    def renamed(self, names: Mapping[str, str]) -> JudgmentTable:
        """Give judges other names."""
        return replace(self, judges=tuple(names.get(judge, judge) for judge in self.judges))

    @overload
    def __getitem__(self, row: int) -> Judgment: ...
    @overload
    def __getitem__(self, row: slice) -> list[Judgment]: ...
    def __getitem__(self, row: int | slice) -> Judgment | list[Judgment]:
        rows = range(len(self))[row]
        return self._record(rows) if isinstance(rows, int) else [*map(self._record, rows)]

    def __iter__(self) -> Iterator[Judgment]:
        return map(self._record, range(len(self)))

    def __len__(self) -> int:
        return len(self.status)

    def _record(self, row: int) -> Judgment:
        """Return the record of a row, with the judge's name of the table and what the ledger tells
        of its calls."""
        source = self.sources[int(self.source[row])]
        judgment: Judgment = source.judgment(int(self.offset[row]), int(self.length[row]))
        judge = self.judges[self.judge[row]]
        first = self._first_call[row]
        mine = slice(first, first + len(judgment.calls))
        times = self.calls.seconds[mine].tolist(), self.calls.cached[mine].tolist()
        if source.is_fresh:
            vars(judgment)["judge"] = judge
            for call, seconds, cached in zip(judgment.calls, *times, strict=True):
                vars(call).update(seconds=seconds, cached=cached)
            return judgment
        if judgment.judge == judge:
            return judgment
        renamed: Judgment = judgment.model_copy(update={"judge": judge})
        return renamed

    @cached_property
    def _first_call(self) -> Ints:
        return np.searchsorted(self.calls.judgment, np.arange(len(self)))


def _row_columns(columns: CallColumns | JudgmentTable) -> dict[str, NDArray[Any]]:
    """Return the plain columns by name; their last axis is that of the rows."""
    named = {field.name: getattr(columns, field.name) for field in fields(columns)}
    return {name: column for name, column in named.items() if isinstance(column, np.ndarray)}


def _rows(columns: Columns, chosen: Ints) -> Columns:
    kept = {name: column[..., chosen] for name, column in _row_columns(columns).items()}
    return replace(columns, **kept)  # type: ignore[arg-type]  # names of its own fields


def concatenate(parts: Sequence[JudgmentTable]) -> JudgmentTable:
    """Concatenate judgments, (N1 + N2 + ...,); judges of one name are one."""
    if len(parts) < 2:
        return parts[0] if parts else in_memory(())
    judges = tuple(dict.fromkeys(name for part in parts for name in part.judges))
    stages = tuple(dict.fromkeys(name for part in parts for name in part.calls.stages))
    lengths, sources = ([len(part) for part in parts], [len(part.sources) for part in parts])
    moved = []
    for part, start, source in zip(parts, _starts(lengths), _starts(sources), strict=True):
        calls = replace(
            part.calls,
            judgment=part.calls.judgment + start,
            stage=_renumbered(part.calls.stages, stages)[part.calls.stage].astype(np.int64),
        )
        judge = _renumbered(part.judges, judges)[part.judge]
        moved.append(replace(part, judge=judge, calls=calls, source=part.source + np.int16(source)))
    return JudgmentTable(
        keys=joined([part.keys for part in parts]),
        judges=judges,
        calls=CallColumns(stages, **_concatenated([part.calls for part in moved])),
        sources=tuple(source for part in parts for source in part.sources),
        **_concatenated(moved),
    )


def _starts(lengths: Sequence[int]) -> list[int]:
    return [sum(lengths[:number]) for number in range(len(lengths))]


def _concatenated(parts: Sequence[CallColumns] | Sequence[JudgmentTable]) -> dict[str, Any]:
    each = [_row_columns(part) for part in parts]
    return {name: np.concatenate([one[name] for one in each], axis=-1) for name in each[0]}


def last_of_each(judgments: JudgmentTable) -> Ints:
    """Return the rows (in order) after which no other judgment has their judge, trajectory and
    sample."""
    _, place = distinct(judgments.keys)
    order = np.lexsort((judgments.sample, place, judgments.judge))
    of_one = np.ones(max(len(order) - 1, 0), dtype=bool)
    for column in (judgments.judge, place, judgments.sample):
        of_one &= np.diff(column[order]) == 0
    return np.sort(order[~np.append(of_one, False)] if len(order) else order)


_NO_NUMBER = float("nan")

_TOKENS = attrgetter(*USAGE_FIELDS)

_NO_TOKENS = (0,) * len(USAGE_FIELDS)  # not reported, as no prompt has none

_VERDICTS = attrgetter(*VERDICTS)

_KEY = attrgetter("key")

_CODE: dict[bool | None, int] = {True: 1, False: 0, None: UNKNOWN}

_KINDS = {
    **{"judge": "i4", "sample": "i4", "status": "i1", "rung": "i1", "score": "f8"},
    **{"second_asked": "f8", "repaired": "?", "offset": "i8", "length": "i4"},
}

_CALL_KINDS = {
    **{"judgment": "i8", "stage": "i8", "cost": "f8", "seconds": "f8"},
    **{"request": "i8", "cached": "?"},
}


class JudgmentTableBuilder:
    """Takes judgments, as records or as the fields of a line, some thousand at a time."""

    def __init__(self) -> None:
        self._keys = KeyColumnsBuilder()
        self._judges, self._stages = _Numbers(), _Numbers()
        self._parts: list[dict[str, NDArray[Any]]] = []
        self._calls: list[dict[str, NDArray[Any]]] = []
        self._count = 0

    def add(
        self,
        judgments: Sequence[Judgment | JudgmentFields],
        offset: ArrayLike,
        length: ArrayLike = 0,
    ) -> None:
        """Append judgments, (n,), whose lines of ``length`` bytes stand at ``offset``, (n,)."""
        self._keys.extend(map(_KEY, judgments))
        calls = [(row, call) for row, j in enumerate(judgments, self._count) for call in j.calls]
        judges, stages, codes, code = self._judges, self._stages, STATUS_CODE, _CODE
        columns: dict[str, Any] = {
            "judge": [judges[j.judge] for j in judgments],
            "sample": [j.sample for j in judgments],
            "status": [codes[j.status] for j in judgments],
            "rung": furthest_rungs(judgments),
            "score": [_NO_NUMBER if j.score is None else j.score for j in judgments],
            "second_asked": [
                j.scores.get(SECOND_ASKED, _NO_NUMBER) if j.scores else _NO_NUMBER
                for j in judgments
            ],
            "repaired": [bool(j.fallback) for j in judgments],
            "offset": offset,
            "length": np.broadcast_to(length, len(judgments)),
        }
        of_calls: dict[str, Any] = {
            "judgment": [row for row, _ in calls],
            "stage": [stages[call.stage] for _, call in calls],
            "cost": [_NO_NUMBER if call.cost is None else call.cost for _, call in calls],
            "seconds": [call.seconds for _, call in calls],
            "request": [request_number(call.request) for _, call in calls],
            "cached": [call.cached for _, call in calls],
        }
        made = {name: np.array(columns[name], dtype=kind) for name, kind in _KINDS.items()}
        verdicts = [code[verdict] for j in judgments for verdict in _VERDICTS(j)]
        made["verdicts"] = np.array(verdicts, dtype=np.int8).reshape(-1, len(VERDICTS)).T
        self._parts.append(made)
        made = {name: np.array(of_calls[name], dtype=kind) for name, kind in _CALL_KINDS.items()}
        usage = [_NO_TOKENS if call.usage is None else _TOKENS(call.usage) for _, call in calls]
        made["usage"] = np.array(usage, dtype=np.int64).reshape(-1, len(USAGE_FIELDS)).T
        self._calls.append(made)
        self._count += len(judgments)

    def build(self, source: JudgmentSource) -> JudgmentTable:
        """Return the table, whose records ``source`` gives; nothing is added afterwards."""
        if not self._parts:
            self.add((), ())
        parts, calls = self._parts, self._calls
        columns = {name: np.concatenate([p[name] for p in parts], axis=-1) for name in parts[0]}
        of_calls = {name: np.concatenate([p[name] for p in calls], axis=-1) for name in calls[0]}
        return JudgmentTable(
            keys=self._keys.build(),
            judges=tuple(self._judges),
            calls=CallColumns(tuple(self._stages), **of_calls),
            source=np.zeros(self._count, dtype=np.int16),
            sources=(source,),
            **columns,
        )


def in_memory(judgments: Sequence[Judgment | JudgmentFields]) -> JudgmentTable:
    """Make the table of judgments in memory."""
    builder = JudgmentTableBuilder()
    for start in range(0, len(judgments), _BATCH):
        some = judgments[start : start + _BATCH]
        builder.add(some, range(start, start + len(some)))
    return builder.build(_InMemory(judgments))


class JournalLine(NamedTuple):
    """``number`` counts from 1; ``offset`` is the place of the first byte of ``content``, which
    ends with its newline."""

    number: int
    offset: int
    content: bytes


_READ = 2**18  # bytes of lines that are read at a time: they stay in the processor's cache


class _Lines(NamedTuple):
    number: int
    offset: int
    contents: list[bytes]


def _read_lines(path: Path) -> Iterator[_Lines]:
    """Read the lines as ``whole_lines``, some at a time; ``number`` and ``offset`` are those of the
    first of them."""
    try:
        with open_regular(path, sparse=False) as file:
            number, offset = 1, 0
            while contents := file.readlines(_READ):
                if not offset:
                    content, contents[0] = contents[0], utf8(contents[0], path)
                    offset = len(content) - len(contents[0])
                if not contents[-1].endswith(b"\n"):
                    contents.pop()
                yield _Lines(number, offset, contents)
                number += len(contents)
                offset += sum(map(len, contents))
    except OSError as error:
        raise unreadable(path, error) from error


def whole_lines(path: Path) -> Iterator[JournalLine]:
    """Yield the lines of a file of ours, one at a time. A last line without its
    newline was torn by a kill and is left out. Raises UserError if the file cannot be read, or is
    UTF-16."""
    for number, at, contents in _read_lines(path):
        for place, content in enumerate(contents):
            yield JournalLine(number + place, at, content)
            at += len(content)  # noqa: PLW2901 - the offset of the next


def unreadable(path: Path, error: OSError) -> UserError:
    """Return the error for a file of a run that cannot be read."""
    return UserError(f"{path}: cannot be read ({error.strerror}); give the folder of a run")


def bad_line(path: Path, number: int, error: ValidationError) -> UserError:
    """Return the error for a line of ours that is not valid."""
    return UserError(
        f"{path}, line {number}: {first_error(error, 'the line')}: mend the line or remove it"
    )


R = TypeVar("R", bound=Record)


class OpenedFile:
    """A file of records that stays readable as it is when another takes its name."""

    is_fresh: ClassVar = True

    def __init__(self, path: Path) -> None:
        """Open it. Raises UserError if it cannot be read."""
        self.path = path
        try:
            self._file = open_regular(path)
        except OSError as error:
            raise unreadable(path, error) from error
        weakref.finalize(self, self._file.close)

    def line(self, offset: int, length: int) -> bytes:
        """Read ``length`` bytes at ``offset``."""
        return os.pread(self._file.fileno(), length, offset)

    def record(self, kind: type[R], offset: int, length: int) -> R:
        """Decode the line of ``length`` bytes at ``offset``. Raises UserError for one that was
        changed."""
        try:
            return kind.model_validate_json(self.line(offset, length))
        except ValidationError as error:
            raise UserError(f"{self.path}: was changed while it was read: read it again") from error

    def judgment(self, offset: int, length: int) -> Judgment:
        """Decode a judgment. Raises UserError for a line that was changed."""
        return self.record(Judgment, offset, length)


_MOST_WORDS = 16
_SAMPLE, _CHUNK = 2**18, 2**18  # bytes
_COMMON = 2  # times that a word stands in a text, on average, where it is common


class TextColumn:
    """Texts of a table's rows, (N,), in which a word is looked for whatever its case and accents;
    each is cut to so many characters."""

    def __init__(self, longest: int = 50_000) -> None:
        self._longest = longest
        self._content = bytearray()
        self._ends = array("q")
        self._words: dict[tuple[bytes, int], Bools] = {}  # of the last searches, and of how many

    def extend(self, texts: Iterable[str]) -> None:
        """Append the texts of the next rows."""
        for text in texts:
            self._content += searchable(text[: self._longest]).encode("utf-8", "replace") + b"\0"
            self._ends.append(len(self._content))

    def rows_with(self, word: str) -> Bools:
        """Return which texts hold a word, (N,)."""
        wanted = searchable(word).encode("utf-8", "replace")
        if not wanted:
            return np.ones(len(self._ends), dtype=bool)
        search = wanted, len(self._ends)
        rows = self._words.get(search)
        if rows is None:
            rows = self._find(wanted)
            if len(self._words) >= _MOST_WORDS:
                self._words.clear()
            self._words[search] = rows
        return rows

    def _find(self, wanted: bytes) -> Bools:
        """Return which texts hold it: of a common word the first of each text is looked up, of any
        other all places that have its two rarest bytes as far apart."""
        content, ends = self._content, column_of(self._ends)
        sampled = content[:_SAMPLE]
        if sampled.count(wanted) * len(content) > _COMMON * len(ends) * len(sampled):
            places, at = array("q"), 0
            while (at := content.find(wanted, at)) >= 0:
                places.append(at)
                at = content.find(b"\0", at)
            return marked(len(ends), np.searchsorted(ends, column_of(places), side="right"))
        rarest = sorted(range(len(wanted)), key=lambda at: sampled.count(wanted[at]))[:2]
        letters = np.frombuffer(content, dtype=np.uint8)
        starts = range(0, max(len(content) - len(wanted) + 1, 0), _CHUNK)
        found = []
        for start in starts:
            size = min(_CHUNK, len(content) - len(wanted) + 1 - start)
            first, last = (
                letters[start + at : start + at + size] == wanted[at]
                for at in (rarest[0], rarest[-1])
            )
            found.append(np.flatnonzero(first & last) + start)
        at_all = np.concatenate([np.empty(0, dtype=np.int64), *found])
        for at, letter in enumerate(wanted):
            at_all = at_all[letters[at_all + at] == letter]
        return marked(len(ends), np.searchsorted(ends, at_all, side="right"))

    def __len__(self) -> int:
        return len(self._ends)


def searchable(text: str) -> str:
    """Return a text without its case and accents."""
    text = text.replace("\0", " ").casefold()
    if text.isascii():
        return text
    return "".join(c for c in normalize("NFKD", text) if not combining(c))


def read_run_judgments(path: Path, ledger: Path, texts: TextColumn | None = None) -> JudgmentTable:
    """Read a run's judgments in file order, ``ledger`` for what their calls took; ``texts`` takes
    what the judges reasoned.

    A last line without its newline was torn by a kill and is left out; a bad line elsewhere raises
    UserError. Seconds are 0, and no call is cached, where the ledger does not tell of it.
    """
    file, builder, numbers = OpenedFile(path), JudgmentTableBuilder(), array("q")
    has_ledger = ledger.is_file()
    with collection_paused():
        for lines in _read_lines(path):
            judgments = _decoded(path, lines)
            lengths = [*map(len, lines.contents)]
            builder.add(judgments, [*accumulate(lengths[:-1], initial=lines.offset)], lengths)
            if has_ledger:
                numbers.extend(
                    _call_number(j.key, j.sample, c.request) for j in judgments for c in j.calls
                )
            if texts is not None:
                texts.extend(f"{one.reasoning} {one.detail}" for one in judgments)
        table = builder.build(file)
        if not has_ledger:
            return table
        return replace(table, calls=_with_ledger(table.calls, column_of(numbers), ledger))


def _decoded(path: Path, lines: _Lines) -> list[JudgmentFields | Judgment]:
    try:
        judgments: list[JudgmentFields | Judgment] = [*map(_DECODER.decode, lines.contents)]
        if all(one.key.attempt >= 0 for one in judgments):
            return judgments
    except msgspec.MsgspecError:
        pass
    return [_record_of(path, at, line) for at, line in enumerate(lines.contents, lines.number)]


def _record_of(path: Path, number: int, line: bytes) -> JudgmentFields | Judgment:
    try:
        return decode_fields(line)
    except ValidationError as error:
        raise bad_line(path, number, error) from error


class LedgerFields(msgspec.Struct, gc=False):
    """What is needed of a line of the ledger."""

    key: KeyFields
    sample: int
    request: str
    seconds: float
    cached: bool = False


_LEDGER_DECODER = msgspec.json.Decoder(LedgerFields)


def _call_number(key: KeyLike, sample: int, request: str) -> int:
    """Return a number for a judgment's calls to one request, good in this process: of 64 bits, so
    that two of a million calls share one in one run of ten million."""
    return hash((key.benchmark, key.agent, key.task_id, key.attempt, sample, request))


def _with_ledger(calls: CallColumns, numbers: Ints, ledger: Path) -> CallColumns:
    """Add what the calls, of these ``numbers`` (C,), took in all sessions: of a request that a
    judgment made twice, which was answered once, the first has it all. A call is cached if every
    session had its answer from the cache and the payments beside the ledger do not hold its
    request. Raises UserError for a bad line."""
    noted, seconds, paid = array("q"), array("d"), array("d")
    for lines in _read_lines(ledger):
        entries: list[LedgerFields] = []
        try:
            entries.extend(map(_LEDGER_DECODER.decode, lines.contents))
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            number = lines.number + len(entries)
            raise UserError(f"{ledger}, line {number}: {error}") from error
        noted.extend(_call_number(each.key, each.sample, each.request) for each in entries)
        seconds.extend(each.seconds for each in entries)
        paid.extend(not each.cached for each in entries)
    if not noted:
        return calls
    known, which = np.unique(column_of(noted), return_inverse=True)
    row = np.minimum(np.searchsorted(known, numbers), len(known) - 1)
    is_noted = known[row] == numbers
    took = np.where(is_noted, np.bincount(which, weights=column_of(seconds))[row], 0.0)
    order = np.lexsort((np.arange(len(calls)), numbers))
    again = (np.diff(numbers[order]) == 0) & (np.diff(calls.judgment[order]) == 0)
    took[order[1:][again]] = 0.0
    cached = is_noted & (np.bincount(which, weights=column_of(paid)) == 0)[row]
    if cached.any():  # a session may have paid for a call and ended before its judgment
        cached &= ~np.isin(calls.request, _paid(ledger.with_name(PAYMENTS)))
    return replace(calls, seconds=took, cached=cached)


def _paid(payments: Path) -> Ints:
    """Return the numbers of the requests for which something was paid, or nobody knows what."""
    from trajudge.judges.engine.budget import read_attempts  # noqa: PLC0415 - scores need no engine

    paid = {request for request, cost in read_attempts(payments).values() if cost != 0}
    return np.array([*map(request_number, paid)], dtype=np.int64)
