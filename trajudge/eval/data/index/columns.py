"""Judgments as columns of numbers: what scoring needs of a run, some hundred bytes a judgment.

Texts stay in the file, where ``offset`` finds their line.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trajudge.eval.data.index.call_numbers import place_of_call, request_number
from trajudge.eval.data.index.keys import (
    KeyColumns,
    KeyColumnsBuilder,
    column_of,
    distinct,
    joined,
)
from trajudge.eval.data.index.lines import CallFields, JudgmentFields
from trajudge.eval.rungs import furthest_rung
from trajudge.eval.stats.interval import Bools, Floats, Ints
from trajudge.judges.methods.composed import SECOND_ASKED
from trajudge.judges.model import USAGE_FIELDS, Call, Judgment, Status

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
    (``eval.data.index.call_ledger``); ``place`` is a number by which its lines are found.
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
