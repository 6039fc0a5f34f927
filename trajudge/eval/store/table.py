"""Judgments as a table: columns of numbers in memory, records decoded when they are asked for.

Keys, statuses, verdicts, scores and calls are columns (some hundred bytes a judgment); texts stay
in ``judgments.jsonl``, where an offset finds their line. Columns of large files are kept in side
files of the user's cache.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
import weakref
import zlib
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, cached_property
from hashlib import sha256
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any, NamedTuple, Protocol, TypeVar, overload

import msgspec
import numpy as np
from msgspec import UNSET, UnsetType
from numpy.typing import NDArray
from pydantic import ValidationError

from trajudge.eval.rungs import furthest_rung
from trajudge.judges.model import SECOND_ASKED, USAGE_FIELDS, Call, Judgment, Status
from trajudge.stats.intervals import Bools, Floats, Ints
from trajudge.trajectories.model import Record, TrajectoryKey, canonical_task_id
from trajudge.trajectories.store import KeyFields
from trajudge.util.errors import UserError
from trajudge.util.files import open_regular, read_regular, utf8, write_bytes
from trajudge.util.machine import cache_folder, collection_paused
from trajudge.util.validation import first_error

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


_HEX_DIGITS = 15  # a signed column of 64 bits holds them


def request_number(request: str) -> int:
    """Return a number of 60 bits that tells a request from others, the same in every process."""
    try:
        return int(request[:_HEX_DIGITS], 16)
    except ValueError:  # written by hand, for the engine's are hexadecimal
        return int(sha256(request.encode("utf-8", "replace")).hexdigest()[:_HEX_DIGITS], 16)


def place_of_call(key: KeyLike, sample: int, request: str) -> int:
    """Return the number of a judgment's calls to one request, good in this process: of 64 bits, so
    that two of a million calls share one in one run of ten million."""
    return hash((key.benchmark, key.agent, key.task_id, key.attempt, sample, request))


NO_REQUEST = request_number("")

"""Of a call whose request is not known, as of published judgments."""


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


_Optimality = Annotated[int, msgspec.Meta(ge=1, le=4)]

_Score = Annotated[float, msgspec.Meta(ge=0, le=1)]

_Index = Annotated[int, msgspec.Meta(ge=0)]


class JudgmentFields(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """The fields of Judgment. UNSET: an added field that the line leaves out."""

    key: KeyFields
    judge: str
    status: Status
    sample: int = 0
    success: bool | None = None
    side_effect: bool | None = None
    repetition: bool | None = None
    optimality: _Optimality | None = None
    score: _Score | None = None
    scores: dict[str, float] = {}
    reasoning: str = ""
    fallback: str = ""
    detail: str = ""
    calls: tuple[CallFields, ...] = ()
    record: dict[str, Any] | None = None
    process: bool | UnsetType | None = UNSET
    failure_step: _Index | UnsetType | None = UNSET
    failure_type: str | UnsetType | None = UNSET


_DECODER = msgspec.json.Decoder(JudgmentFields)


def decode_fields(line: bytes) -> JudgmentFields | Judgment:
    """Decode a line: its fields, or the whole record where only validation takes the line. Raises
    ValidationError."""
    try:
        fields = _DECODER.decode(line)
    except msgspec.MsgspecError:
        return Judgment.model_validate_json(line)
    return fields if fields.key.attempt >= 0 else Judgment.model_validate_json(line)


class JournalLine(NamedTuple):
    """``number`` counts from 1; ``offset`` is the place of the first byte of ``content``, which
    ends with its newline."""

    number: int
    offset: int
    content: bytes


def whole_lines(path: Path, offset: int = 0) -> Iterator[JournalLine]:
    """Yield the lines of a file of ours from ``offset`` on, one at a time. A last line without its
    newline was torn by a kill and is left out. Raises UserError if the file cannot be read, or is
    UTF-16."""
    try:
        with open_regular(path, sparse=False) as file:
            file.seek(offset)
            for number, content in enumerate(file, start=1):
                text = content if offset else utf8(content, path)
                if not text.endswith(b"\n"):
                    return
                offset += len(content)
                yield JournalLine(number, offset - len(text), text)
    except OSError as error:
        raise unreadable(path, error) from error


def unreadable(path: Path, error: OSError) -> UserError:
    """Say why a file of a run cannot be read."""
    return UserError(f"{path}: cannot be read ({error.strerror}); give the folder of a run")


def bad_line(path: Path, number: int, error: ValidationError) -> UserError:
    """Say what is wrong with a line of ours."""
    return UserError(
        f"{path}, line {number}: {first_error(error, 'the line')}: mend the line or remove it"
    )


R = TypeVar("R", bound=Record)


class OpenedFile:
    """A file of records that stays readable as it is when another takes its name."""

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


UNKNOWN = -1

STATUSES = tuple(Status)

VERDICTS = ("success", "side_effect", "repetition", "process")

STATUS_CODE = {status: code for code, status in enumerate(STATUSES)}

_NO_SCORE = float("nan")

_TOKENS = attrgetter(*USAGE_FIELDS)

_NO_TOKENS = (0,) * len(USAGE_FIELDS)  # not reported, as no prompt has none


@dataclass(frozen=True, eq=False)
class CallColumns:
    """Calls in the order of their judgments, (C,).

    ``judgment`` is the row of the call's judgment, ``stage`` indexes ``stages``. ``cost`` is nan
    where the price is not known; ``usage`` are tokens by field, (len(USAGE_FIELDS), C). ``request``
    is ``request_number``. ``seconds`` are those of all sessions, and ``cached`` calls were answered
    without being paid in any of them, as far as the run's ledger tells
    (``eval.store.table``); ``place`` is a number by which its lines are found.
    """

    stages: tuple[str, ...]
    judgment: Ints
    stage: Ints
    cost: Floats
    seconds: Floats
    usage: Ints
    request: Ints
    cached: Bools
    place: Ints

    def of(self, rows: Ints) -> CallColumns:
        """Keep the calls of some of the judgments, which ``rows`` puts into a new order."""
        first = np.searchsorted(self.judgment, rows)
        counts = np.searchsorted(self.judgment, rows, side="right") - first
        row = np.repeat(np.arange(len(rows)), counts)
        ends = np.cumsum(counts)
        chosen = np.arange(len(row)) - np.repeat(ends - counts, counts) + first[row]
        return CallColumns(
            self.stages,
            row,
            self.stage[chosen],
            self.cost[chosen],
            self.seconds[chosen],
            self.usage[:, chosen],
            self.request[chosen],
            self.cached[chosen],
            self.place[chosen],
        )

    def __len__(self) -> int:
        return len(self.stage)


@dataclass(frozen=True, eq=False)
class JudgmentColumns:
    """Judgments, (N,), in any order.

    ``judge`` indexes ``judges``, ``status`` STATUSES, ``rung`` ``eval.rungs.RUNGS``. ``verdicts``
    are 1, 0 or UNKNOWN, (len(VERDICTS), N); ``score`` is nan where there is none. ``second_asked``
    is what a cascade says of its second member, nan of other judges. ``offset`` and ``length`` are
    those of the judgment's line, both 0 of judgments that were read from no file.
    """

    keys: KeyColumns
    judges: tuple[str, ...]
    judge: Ints
    sample: Ints
    status: NDArray[np.int8]
    rung: NDArray[np.int8]
    verdicts: NDArray[np.int8]
    score: Floats
    second_asked: Floats
    offset: Ints
    length: Ints
    calls: CallColumns

    @classmethod
    def of(cls, judgments: Iterable[Judgment]) -> JudgmentColumns:
        """Turn judgments in memory into columns."""
        builder = JudgmentColumnsBuilder()
        for judgment in judgments:
            builder.add(judgment)
        return builder.build()

    def at(self, rows: Ints | Bools) -> JudgmentColumns:
        """Keep the judgments at these rows (places or a mask), in that order."""
        chosen = places_of(rows)
        if np.array_equal(chosen, np.arange(len(self))):
            return self
        return JudgmentColumns(
            self.keys.at(chosen),
            self.judges,
            self.judge[chosen],
            self.sample[chosen],
            self.status[chosen],
            self.rung[chosen],
            self.verdicts[:, chosen],
            self.score[chosen],
            self.second_asked[chosen],
            self.offset[chosen],
            self.length[chosen],
            self.calls.of(chosen),
        )

    def verdict(self, name: str) -> NDArray[np.int8]:
        """Return one of the verdicts: 1, 0 or UNKNOWN, (N,)."""
        column: NDArray[np.int8] = self.verdicts[VERDICTS.index(name)]
        return column

    def ok(self) -> Bools:
        """Tell which judgments ended well, (N,)."""
        return np.asarray(self.status == STATUS_CODE[Status.OK])

    def __len__(self) -> int:
        return len(self.status)


class JudgmentColumnsBuilder:
    """Takes judgments one by one, as records or as the fields of a line."""

    def __init__(self) -> None:
        self._keys = KeyColumnsBuilder()
        self._judges: dict[str, int] = {}
        self._stages: dict[str, int] = {}
        self._judge, self._sample = array("i"), array("i")
        self._status, self._rung = array("b"), array("b")
        self._verdicts = array("b")
        self._score, self._second_asked = array("d"), array("d")
        self._offset, self._length = array("q"), array("q")
        self._of_judgment, self._stage = array("q"), array("i")
        self._cost, self._seconds = array("d"), array("d")
        self._usage, self._place = array("q"), array("q")
        self._request, self._cached = array("q"), array("b")

    def add(self, judgment: Judgment | JudgmentFields, offset: int = 0, length: int = 0) -> None:
        """Append a judgment, whose line of ``length`` bytes stands at ``offset``."""
        for call in judgment.calls:
            self._add_call(call)
            self._place.append(place_of_call(judgment.key, judgment.sample, call.request))
        self._keys.add(judgment.key)
        self._judge.append(self._judges.setdefault(judgment.judge, len(self._judges)))
        self._sample.append(judgment.sample)
        self._status.append(STATUS_CODE[judgment.status])
        self._rung.append(furthest_rung(judgment.calls))
        process = judgment.process
        for verdict in (
            judgment.success,
            judgment.side_effect,
            judgment.repetition,
            process if isinstance(process, bool) else None,
        ):
            self._verdicts.append(UNKNOWN if verdict is None else verdict)
        self._score.append(_NO_SCORE if judgment.score is None else judgment.score)
        scores = judgment.scores
        self._second_asked.append(scores.get(SECOND_ASKED, _NO_SCORE) if scores else _NO_SCORE)
        self._offset.append(offset)
        self._length.append(length)

    def _add_call(self, call: Call | CallFields) -> None:
        self._of_judgment.append(len(self._status))
        self._stage.append(self._stages.setdefault(call.stage, len(self._stages)))
        self._cost.append(_NO_SCORE if call.cost is None else call.cost)
        self._seconds.append(call.seconds)
        self._request.append(request_number(call.request))
        self._cached.append(call.cached)
        self._usage.extend(_NO_TOKENS if call.usage is None else _TOKENS(call.usage))

    def build(self) -> JudgmentColumns:
        """Return the columns; nothing is added afterwards."""
        calls = CallColumns(
            tuple(self._stages),
            judgment=column_of(self._of_judgment),
            stage=column_of(self._stage),
            cost=column_of(self._cost),
            seconds=column_of(self._seconds),
            usage=column_of(self._usage).reshape(-1, len(USAGE_FIELDS)).T,
            request=column_of(self._request),
            cached=column_of(self._cached).astype(bool),
            place=column_of(self._place),
        )
        return JudgmentColumns(
            self._keys.build(),
            tuple(self._judges),
            judge=column_of(self._judge),
            sample=column_of(self._sample),
            status=column_of(self._status),
            rung=column_of(self._rung),
            verdicts=column_of(self._verdicts).reshape(-1, len(VERDICTS)).T,
            score=column_of(self._score),
            second_asked=column_of(self._second_asked),
            offset=column_of(self._offset),
            length=column_of(self._length),
            calls=calls,
        )


def behind_each_other(parts: Sequence[JudgmentColumns]) -> JudgmentColumns:
    """Put judgments behind each other; judges of one name are one. Offsets are those of their own
    files."""
    if len(parts) == 1:
        return parts[0]
    judges = tuple(dict.fromkeys(name for part in parts for name in part.judges))
    stages = tuple(dict.fromkeys(name for part in parts for name in part.calls.stages))
    starts = np.cumsum([0, *(len(part) for part in parts)])[:-1].tolist()

    def whole(name: str) -> Any:
        return np.concatenate([getattr(part, name) for part in parts], axis=-1)

    def of_calls(name: str) -> Any:
        return np.concatenate([getattr(part.calls, name) for part in parts], axis=-1)

    calls = CallColumns(
        stages,
        np.concatenate([p.calls.judgment + s for p, s in zip(parts, starts, strict=True)]),
        np.concatenate([_renumbered(p.calls.stages, stages)[p.calls.stage] for p in parts]),
        of_calls("cost"),
        of_calls("seconds"),
        of_calls("usage"),
        of_calls("request"),
        of_calls("cached"),
        of_calls("place"),
    )
    return replace(
        parts[0],
        keys=joined([part.keys for part in parts]),
        judges=judges,
        judge=np.concatenate([_renumbered(p.judges, judges)[p.judge] for p in parts]),
        calls=calls,
        **{name: whole(name) for name in _PLAIN},
    )


_PLAIN = (
    *("sample", "status", "rung", "verdicts"),
    *("score", "second_asked", "offset", "length"),
)


def places_of(rows: Ints | Bools) -> Ints:
    """Return the places that a mask marks; places as they are."""
    return np.flatnonzero(rows) if rows.dtype == bool else np.asarray(rows, dtype=np.int64)


def _renumbered(names: Sequence[str], among: Sequence[str]) -> Ints:
    return np.array([among.index(name) for name in names], dtype=np.int64)


def last_of_each(columns: JudgmentColumns) -> Ints:
    """Return the rows (in order) after which no other judgment has their judge, trajectory and
    sample."""
    _, place = distinct(columns.keys)
    order = np.lexsort((columns.sample, place, columns.judge))
    of_one = np.ones(max(len(order) - 1, 0), dtype=bool)
    for column in (columns.judge, place, columns.sample):
        of_one &= np.diff(column[order]) == 0
    return np.sort(order[~np.append(of_one, False)] if len(order) else order)


PAYMENTS = "payments.jsonl"


class LedgerFields(msgspec.Struct, gc=False):
    """What is needed of a line of the ledger."""

    key: KeyFields
    sample: int
    request: str
    seconds: float
    cached: bool = False


class _Ledger(NamedTuple):
    """The ledger's lines, added up by the place of their call."""

    places: Ints
    seconds: Floats
    cached: Bools


_CALL_LEDGER_DECODER = msgspec.json.Decoder(LedgerFields)


def with_ledger(judgments: JudgmentColumns, ledger: Path) -> JudgmentColumns:
    """Add what the calls took in all sessions: of a request that a judgment made twice, which was
    answered once, the first has it all. A call is cached if every session had its answer from the
    cache and the payments beside the ledger do not hold its request. Without a ledger: 0 seconds,
    and nothing is cached.

    A line that a kill tore is left out; raises UserError for a bad one elsewhere.
    """
    calls = judgments.calls
    lines = _read(ledger) if ledger.is_file() else None
    if lines is None or not len(lines.places):
        zeros = np.zeros(len(calls))
        return replace(judgments, calls=replace(calls, seconds=zeros, cached=zeros.astype(bool)))
    row = np.minimum(np.searchsorted(lines.places, calls.place), len(lines.places) - 1)
    is_told = lines.places[row] == calls.place
    seconds = np.where(is_told, lines.seconds[row], 0.0)
    order = np.lexsort((np.arange(len(calls)), calls.place))
    again = (np.diff(calls.place[order]) == 0) & (np.diff(calls.judgment[order]) == 0)
    seconds[order[1:][again]] = 0.0
    cached = is_told & lines.cached[row]
    if cached.any():  # a session may have paid for a call and ended before its judgment
        cached &= ~np.isin(calls.request, _paid(ledger.with_name(PAYMENTS)))
    return replace(judgments, calls=replace(calls, seconds=seconds, cached=cached))


def _read(ledger: Path) -> _Ledger:
    noted, seconds, paid = array("q"), array("d"), array("d")
    for line in whole_lines(ledger):
        try:
            entry = _CALL_LEDGER_DECODER.decode(line.content)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise UserError(f"{ledger}, line {line.number}: {error}") from error
        noted.append(place_of_call(entry.key, entry.sample, entry.request))
        seconds.append(entry.seconds)
        paid.append(not entry.cached)
    places, which = np.unique(column_of(noted), return_inverse=True)
    added = np.bincount(which, weights=column_of(seconds), minlength=len(places))
    times_paid = np.bincount(which, weights=column_of(paid), minlength=len(places))
    return _Ledger(places, added.astype(float), times_paid == 0)


def _paid(payments: Path) -> Ints:
    """Return the numbers of the requests for which something was paid, or nobody knows what."""
    from trajudge.judges.engine.budget import read_attempts  # noqa: PLC0415 - scores need no engine

    paid = {request for request, cost in read_attempts(payments).values() if cost != 0}
    return np.array([*map(request_number, paid)], dtype=np.int64)


# File systems date a change to the tick of a clock: a file that changed this short before it was
# read may change again without a new date, so what was read of it is not kept. Nanoseconds.
SETTLED = 2_000_000_000

UNUSED = 90 * 24 * 3600  # seconds

_SIDE_FILE = re.compile(
    r"[0-9a-f]{32}\.(?:(?:index|columns|published|labels|rewards|keys)\.msgpack|run-index\.sqlite(?:-wal|-shm)?)"
)

FileIdentity = tuple[int, int, int, int]

"""Size, nanoseconds of the change and of the status change, number; all 0: there is no file."""


def place_in_cache(path: Path, name: str) -> Path | None:
    """Return where the side file ``name`` of a path is: where the cached replies are
    (``TRAJUDGE_CACHE`` names their file), else ``~/.cache/trajudge``. None for a user without a
    home."""
    name = hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:32] + name
    if replies := os.environ.get("TRAJUDGE_CACHE"):
        folder = Path(replies).expanduser().absolute().parent
    else:
        try:
            folder = cache_folder()
        except RuntimeError:
            return None
    forget_unused(folder)
    return folder / name


@cache
def forget_unused(folder: Path) -> None:
    """Remove side files that were not used for long; what is left behind does no harm. Once in a
    process."""
    oldest = time.time() - UNUSED
    with suppress(OSError):
        for entry in os.scandir(folder):
            if _SIDE_FILE.fullmatch(entry.name):
                status = entry.stat(follow_symlinks=False)
                if max(status.st_atime, status.st_mtime) < oldest:
                    Path(entry.path).unlink()


def identity_of(path: Path) -> FileIdentity:
    """Return what a file is known by."""
    try:
        status = path.stat()
    except OSError:  # whoever reads it says why
        return 0, 0, 0, 0
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino


def is_settled(identity: FileIdentity) -> bool:
    """Tell whether the file changed so long ago that another change would have another date."""
    return max(identity[1:3]) <= time.time_ns() - SETTLED


# A smaller file is read as quickly as its columns are looked up. Bytes.
LARGE = 2**22

_MAGIC = b"TJC2"

_HEAD = 8  # bytes of magic and checksum

KEY_TYPES = {"benchmark": "i4", "agent": "i4", "task": "i4", "attempt": "i8"}

Names = tuple[str, ...]

T = TypeVar("T")


class NamedColumns(NamedTuple):
    """Columns by name, and the lists of names that they index."""

    names: tuple[Names, ...]
    columns: dict[str, NDArray[Any]]


class _Saved(msgspec.Struct, array_like=True):
    """The bytes of columns by name, and what they are of."""

    identity: tuple[FileIdentity, ...]
    about: Names
    names: tuple[Names, ...]
    columns: dict[str, memoryview]


_SAVED_TABLES_DECODER = msgspec.msgpack.Decoder(_Saved)


class SavedTable:
    """A side file at ``place`` (None: nowhere) of what ``identity`` and ``about`` name, of which
    ``about`` says what the columns' rows and numbers mean. ``types`` are those of the columns, of
    numpy's, without the order of bytes. Nothing is kept unless it is ``settled``."""

    def __init__(
        self,
        place: Path | None,
        types: Mapping[str, str],
        about: Names,
        identity: tuple[FileIdentity, ...] = (),
        *,
        settled: bool = True,
    ) -> None:
        self.place = place
        self._types, self._about = types, about
        self._identity, self._settled = identity, settled

    @classmethod
    def of_files(
        cls,
        name: str,
        files: Sequence[Path],
        types: Mapping[str, str],
        about: Names = (),
        *,
        written_here: bool = False,
    ) -> SavedTable:
        """Return the side file ``name`` of ``files``, as these are now: what is read of them
        afterwards is kept for files like these. ``written_here``: by this process, which no other
        writes beside; else files that have changed just now are not kept."""
        identity = tuple(map(identity_of, files))
        place = place_in_cache(files[0], name) if identity[0][0] >= LARGE else None
        settled = written_here or all(map(is_settled, identity))
        return cls(place, types, about, identity, settled=settled)

    def load(self) -> NamedColumns | None:
        """Return what was kept; None where nothing was, or the files have changed since."""
        try:
            if self.place is None or not self.place.is_file():
                return None
            content = memoryview(read_regular(self.place))
            checksum = int.from_bytes(content[4:_HEAD], "big")
            if content[:4] != _MAGIC or zlib.crc32(content[_HEAD:]) != checksum:
                return None
            saved = _SAVED_TABLES_DECODER.decode(content[_HEAD:])
            if (saved.identity, saved.about) != (self._identity, self._about):
                return None
            columns = {
                name: np.frombuffer(saved.columns[name], dtype=f"<{kind}")
                for name, kind in self._types.items()
            }
            return NamedColumns(saved.names, columns)
        except (OSError, ValueError, KeyError):
            return None

    def keep(self, table: NamedColumns) -> None:
        """Keep the columns."""
        if self.place is None or not self._settled:
            return
        columns = {
            name: np.asarray(table.columns[name], dtype=f"<{kind}").ravel().view(np.uint8).data
            for name, kind in self._types.items()
        }
        content = bytearray(_HEAD)
        saved = _Saved(self._identity, self._about, table.names, columns)
        msgspec.msgpack.Encoder().encode_into(saved, content, _HEAD)
        checksum = zlib.crc32(memoryview(content)[_HEAD:])
        content[:_HEAD] = _MAGIC + checksum.to_bytes(4, "big")
        with suppress(OSError):
            self.place.parent.mkdir(parents=True, exist_ok=True)
            write_bytes(self.place, content)


class SideFile(Protocol[T]):
    """What is kept of a file, and how."""

    def load(self) -> T | None: ...
    def keep(self, what: T, /) -> None: ...


def kept_or_read(saved: SideFile[T], read: Callable[[], T | None]) -> T | None:
    """Return what a side file keeps; else what ``read`` returns, which is kept unless None."""
    known = saved.load()
    if known is None and (known := read()) is not None:
        saved.keep(known)
    return known


def key_columns(keys: KeyColumns) -> dict[str, NDArray[Any]]:
    """Return the columns of keys by name."""
    return {name: getattr(keys, name) for name in KEY_TYPES}


def key_names(keys: KeyColumns) -> tuple[Names, Names, Names]:
    """Return the names that columns of keys index, as ``keys_of`` takes them."""
    return keys.benchmarks, keys.agents, keys.tasks


def keys_of(table: NamedColumns) -> KeyColumns:
    """Return the keys of a table with the columns KEY_TYPES. Raises ValueError for unequal
    lengths."""
    benchmarks, agents, tasks, *_ = table.names
    benchmark, agent, task, attempt = (table.columns[name] for name in KEY_TYPES)
    check_lengths([benchmark, agent, task], len(attempt))
    return KeyColumns(benchmarks, agents, tasks, benchmark, agent, task, attempt)


def check_lengths(columns: Iterable[NDArray[Any]], length: int) -> None:
    """Raise ValueError unless all columns have this length (their last axis)."""
    if {column.shape[-1] for column in columns} != {length}:
        raise ValueError("columns of unequal length")


NAME = ".columns.msgpack"

_JUDGMENTS = {
    **{"judge": "i4", "sample": "i4", "status": "i1", "rung": "i1", "verdicts": "i1"},
    **{"score": "f8", "second_asked": "f8", "offset": "i8", "length": "i8"},
}

_CALLS = {
    **{"judgment": "i8", "stage": "i4", "cost": "f8", "seconds": "f8", "usage": "i8"},
    **{"request": "i8", "cached": "b1"},
}

_OF_CALLS = "call."

TYPES = KEY_TYPES | _JUDGMENTS | {_OF_CALLS + name: kind for name, kind in _CALLS.items()}

ABOUT = (*VERDICTS, *USAGE_FIELDS)


class SavedColumns:
    """The side file of a run's judgments and their ledger, as these are when it is made.
    ``written_here`` as of ``SavedTable``."""

    def __init__(self, judgments: Path, ledger: Path, *, written_here: bool = False) -> None:
        files = (judgments, ledger, ledger.with_name(PAYMENTS))
        self._table = SavedTable.of_files(NAME, files, TYPES, ABOUT, written_here=written_here)

    @property
    def is_kept(self) -> bool:
        """Whether there is a side file."""
        return self._table.place is not None and self._table.place.is_file()

    def load(self) -> JudgmentColumns | None:
        """Return the columns of all lines in their order, with what the ledger tells of their
        calls; None where they were not kept or the files have changed since. Their calls have no
        ``place``."""
        table = self._table.load()
        try:
            return None if table is None else columns_from(table)
        except ValueError:
            return None

    def keep(self, columns: JudgmentColumns) -> None:
        """Keep the columns of all lines, with what the ledger tells of their calls."""
        self._table.keep(table_of(columns))


def table_of(columns: JudgmentColumns) -> NamedColumns:
    """Return the columns by name, those in TYPES, and the names that they index."""
    keys, calls = columns.keys, columns.calls
    kept = key_columns(keys) | {name: getattr(columns, name) for name in _JUDGMENTS}
    kept |= {_OF_CALLS + name: getattr(calls, name) for name in _CALLS}
    return NamedColumns((*key_names(keys), columns.judges, calls.stages), kept)


def columns_from(table: NamedColumns) -> JudgmentColumns:
    """Make the columns of a table as ``table_of`` returns it. Their calls have no ``place``. Raises
    ValueError for unequal lengths."""
    _, _, _, judges, stages, *_ = table.names
    judgment: dict[str, Any] = {name: table.columns[name] for name in _JUDGMENTS}
    call: dict[str, Any] = {name: table.columns[_OF_CALLS + name] for name in _CALLS}
    judgment["verdicts"] = judgment["verdicts"].reshape(len(VERDICTS), -1)
    call["usage"] = call["usage"].reshape(len(USAGE_FIELDS), -1)
    keys, called = keys_of(table), len(call["judgment"])
    check_lengths(judgment.values(), len(keys))
    check_lengths(call.values(), called)
    calls = CallColumns(stages, place=np.zeros(called, dtype=np.int64), **call)
    return JudgmentColumns(keys, judges, calls=calls, **judgment)


# Judgments of so many bytes of their file are kept as records once they were all asked for.
KEPT_BYTES = 2**23

ROWS_AT_ONCE = 4096  # of columns as Python's own numbers, which take several times the memory


class RunJudgments(Sequence[Judgment]):
    """Judgments of runs' files, those of ``columns`` in their order; ``file`` (N,) is the one of
    ``files`` that a judgment's line stands in.

    A record is decoded when it is asked for, from the file as it was opened, with what the ledger
    tells of its calls in all sessions and the judge's name of the columns; records of small files
    are kept.
    """

    def __init__(self, files: Sequence[OpenedFile], columns: JudgmentColumns, file: Ints) -> None:
        self._columns: JudgmentColumns | None = columns
        self._files = tuple(files)
        self._file = file
        self._kept: list[Judgment] | None = None
        self._read_again: Callable[[], JudgmentColumns] | None = None

    @classmethod
    def of_file(
        cls,
        path: Path,
        columns: JudgmentColumns,
        read_again: Callable[[], JudgmentColumns] | None = None,
    ) -> RunJudgments:
        """Open the one file that holds them all; ``read_again`` returns the columns once more.
        Raises UserError if it cannot be read."""
        made = cls([OpenedFile(path)], columns, np.zeros(len(columns), dtype=np.int32))
        made._read_again = read_again
        return made

    @property
    def columns(self) -> JudgmentColumns:
        """The judgments as columns. Raises UserError where they were let go and the file was
        changed since."""
        if self._columns is None:
            columns = self._read_again() if self._read_again else None
            if columns is None or len(columns) != len(self):
                raise UserError(
                    f"{self._files[0].path}: was changed while it was read: read it again"
                )
            self._columns = columns
        return self._columns

    def let_go(self) -> None:
        """Free the memory of the columns where they can be read again from the user's cache."""
        if self._read_again is not None:
            self._columns = None

    @overload
    def __getitem__(self, place: int) -> Judgment: ...
    @overload
    def __getitem__(self, place: slice) -> list[Judgment]: ...
    def __getitem__(self, place: int | slice) -> Judgment | list[Judgment]:
        if self._kept is not None:
            return self._kept[place]
        rows = range(len(self))[place]
        if isinstance(rows, int):
            return self._judgment(rows)
        return [*map(self._judgment, rows)]

    def __iter__(self) -> Iterator[Judgment]:
        if self._kept is None and int(self.columns.length.sum()) <= KEPT_BYTES:
            with collection_paused():
                self._kept = [*map(self._judgment, range(len(self)))]
        return map(self._judgment, range(len(self))) if self._kept is None else iter(self._kept)

    def __len__(self) -> int:
        return len(self._file)

    def at(self, rows: Ints | Bools) -> RunJudgments:
        """Keep the judgments at these rows (places or a mask), in that order."""
        chosen = places_of(rows)
        return RunJudgments(self._files, self.columns.at(chosen), self._file[chosen])

    def lines(self) -> Iterator[bytes]:
        """Yield the lines as they stand in the files, newlines included."""
        columns = self.columns
        for start in range(0, len(self), ROWS_AT_ONCE):
            some = slice(start, start + ROWS_AT_ONCE)
            places = (self._file[some], columns.offset[some], columns.length[some])
            for file, offset, length in zip(*(part.tolist() for part in places), strict=True):
                yield self._files[file].line(offset, length)

    def in_file(self, path: Path) -> RunJudgments:
        """Find them in a file that holds exactly their lines, in their order."""
        length = self.columns.length
        columns = replace(self.columns, offset=np.cumsum(length) - length)
        return RunJudgments.of_file(path, columns)

    def renamed(self, names: Mapping[str, str]) -> RunJudgments:
        """Give judges other names."""
        judges = tuple(names.get(judge, judge) for judge in self.columns.judges)
        if judges == self.columns.judges:
            return self
        return RunJudgments(self._files, replace(self.columns, judges=judges), self._file)

    def behind(self, others: Sequence[RunJudgments]) -> RunJudgments:
        """Put these behind ``others``."""
        parts = [*others, self]
        if len(parts) == 1:
            return self
        starts = np.cumsum([0, *(len(part._files) for part in parts)])[:-1]
        return RunJudgments(
            [file for part in parts for file in part._files],
            behind_each_other([part.columns for part in parts]),
            np.concatenate([p._file + start for p, start in zip(parts, starts, strict=True)]),
        )

    def _judgment(self, row: int) -> Judgment:
        columns = self.columns
        line = int(columns.offset[row]), int(columns.length[row])
        judgment = self._files[int(self._file[row])].record(Judgment, *line)
        # The record is new, and nobody else holds it yet.
        vars(judgment)["judge"] = columns.judges[int(columns.judge[row])]
        first = self._first_call[row]
        mine = slice(first, first + len(judgment.calls))
        took, cached = columns.calls.seconds[mine].tolist(), columns.calls.cached[mine].tolist()
        for call, seconds, was_cached in zip(judgment.calls, took, cached, strict=True):
            vars(call).update(seconds=seconds, cached=was_cached)
        return judgment

    @cached_property
    def _first_call(self) -> Ints:
        return np.searchsorted(self.columns.calls.judgment, np.arange(len(self)))


def read_run_judgments(path: Path, ledger: Path) -> RunJudgments:
    """Read a run's judgments in file order, ``ledger`` for what their calls took. A last line
    without its newline was torn by a kill and is left out; a bad line elsewhere raises
    UserError. The columns of a large run are kept in the user's cache."""
    saved = SavedColumns(path, ledger)
    columns = saved.load()
    if columns is None:
        columns = _read_columns(path, ledger)
        saved.keep(columns)

    def read_again() -> JudgmentColumns:
        kept = saved.load()
        return _read_columns(path, ledger) if kept is None else kept

    return RunJudgments.of_file(path, columns, read_again if saved.is_kept else None)


def _read_columns(path: Path, ledger: Path) -> JudgmentColumns:
    builder = JudgmentColumnsBuilder()
    with collection_paused():
        for line in whole_lines(path):
            try:
                builder.add(decode_fields(line.content), line.offset, len(line.content))
            except ValidationError as error:
                raise bad_line(path, line.number, error) from error
        return with_ledger(builder.build(), ledger)


class PublishedJudgments(Sequence[Judgment]):
    """Judgments in columns whose records are ``read``, all of them, when one is asked for."""

    def __init__(self, columns: JudgmentColumns, read: Callable[[], Sequence[Judgment]]) -> None:
        self.columns = columns
        self._read = read

    @overload
    def __getitem__(self, place: int) -> Judgment: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Judgment]: ...
    def __getitem__(self, place: int | slice) -> Judgment | Sequence[Judgment]:
        return self._records[place]

    def __len__(self) -> int:
        return len(self.columns)

    def at(self, rows: Ints | Bools) -> PublishedJudgments:
        """Keep the judgments at these rows (places or a mask), in that order."""
        chosen = places_of(rows)
        return PublishedJudgments(
            self.columns.at(chosen), lambda: [self[place] for place in chosen.tolist()]
        )

    @cached_property
    def _records(self) -> Sequence[Judgment]:
        return self._read()


def columns_of(judgments: Iterable[Judgment]) -> JudgmentColumns:
    """Return the columns of judgments, which those of files have."""
    if isinstance(judgments, RunJudgments | PublishedJudgments):
        return judgments.columns
    return JudgmentColumns.of(judgments)


def keys_of_judgments(judgments: Iterable[Judgment]) -> Iterable[TrajectoryKey]:
    """Return the keys of judgments, with repeats; no record of a file is decoded for them."""
    if isinstance(judgments, RunJudgments | PublishedJudgments):
        return judgments.columns.keys
    return (judgment.key for judgment in judgments)


def let_go(judgments: Iterable[Judgment]) -> None:
    """Free what columns of judgments take, where they can be read again."""
    if isinstance(judgments, RunJudgments):
        judgments.let_go()
