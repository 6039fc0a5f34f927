"""Labels and official rewards as columns, and mappings over those of a run's files."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal, TypeVar, overload

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from trajudge.annotations import store
from trajudge.annotations.model import Label, Labels, Role, primary_labels
from trajudge.eval.store.table import (
    UNKNOWN,
    VERDICTS,
    JournalLine,
    KeyColumns,
    KeyColumnsBuilder,
    OpenedFile,
    column_of,
    distinct,
    joined,
    places_among,
    sorted_places,
    whole_lines,
)
from trajudge.stats.intervals import Floats, Ints
from trajudge.trajectories.model import TrajectoryKey, compacted
from trajudge.trajectories.store import KeyFields
from trajudge.util.errors import UserError
from trajudge.util.terminal import count_of

V = TypeVar("V")

SPLITS = (None, "dev", "test")

ROWS_AT_ONCE = 4096  # of columns as Python's own numbers, which take several times the memory

Rewards = Mapping[TrajectoryKey, float | None]


@dataclass(frozen=True, eq=False)
class LabelColumns:
    """Labels of distinct trajectories, (L,): ``verdicts`` are 1, 0 or UNKNOWN, (len(VERDICTS), L);
    ``inclusion`` is the probability with which each was drawn, nan where it has none; ``split``
    indexes SPLITS."""

    keys: KeyColumns
    verdicts: NDArray[np.int8]
    inclusion: Floats
    split: NDArray[np.int8]

    @classmethod
    def of(cls, labels: Labels | LabelColumns) -> LabelColumns:
        """Turn labels into columns; those of files have them."""
        if isinstance(labels, LabelColumns):
            return labels
        if isinstance(labels, RunLabels):
            return labels.columns
        codes = np.array(
            [[_code(getattr(a, name)) for name in VERDICTS] for a in labels.values()],
            dtype=np.int8,
        )
        drawn = [a.inclusion_probability for a in labels.values()]
        inclusion = np.array([np.nan if p is None else p for p in drawn], dtype=float)
        split = np.array([SPLITS.index(a.split) for a in labels.values()], dtype=np.int8)
        return cls(KeyColumns.of(labels), codes.reshape(-1, len(VERDICTS)).T, inclusion, split)

    def at(self, rows: Ints) -> LabelColumns:
        """Keep the labels at these rows, in that order."""
        kept = self.verdicts[:, rows], self.inclusion[rows], self.split[rows]
        return LabelColumns(self.keys.at(rows), *kept)

    def weights(self) -> Floats:
        """Return one over the inclusion probabilities (L,), in proportion to their mean; 1 where
        these are all equal or unknown. Raises UserError where only some are known."""
        known = ~np.isnan(self.inclusion)
        if not known.any():
            return np.ones(len(known))
        if not known.all():
            raise UserError(
                f"{int(known.sum()):,} of {len(known):,} labels say with which probability their "
                "trajectory was drawn (inclusion_probability), the others do not: name labels of "
                "one draw with --annotations KIND:PATH"
            )
        if self.inclusion.max() <= EQUAL * self.inclusion.min():
            return np.ones(len(known))
        return np.asarray((1 / self.inclusion) / (1 / self.inclusion).mean())


EQUAL = 1.001  # inclusion probabilities within this ratio are equal but for rounding


def weights_of(labels: Labels) -> Mapping[TrajectoryKey, float] | None:
    """Return the weight of every label (``LabelColumns.weights``); None where all are equal. Raises
    UserError as that does."""
    columns = LabelColumns.of(labels)
    weights = columns.weights()
    if (weights == 1).all():
        return None
    return dict(zip(columns.keys, weights.tolist(), strict=True))


def refuse_unequal(labels: Labels, reader: str) -> None:
    """Raise UserError where some labels were more likely to be drawn than others, of a ``reader``
    that cannot weight them."""
    if weights_of(labels) is not None:
        raise UserError(
            f"{reader}: the labels were drawn with unequal probabilities, for which it has no "
            "weights: give labels of a random draw (label build --strategy random), or estimate "
            "from these with  trajudge label estimate QUEUE  or  trajudge score"
        )


@dataclass(frozen=True, eq=False)
class RewardColumns:
    """Official rewards of distinct trajectories, (R,), nan where unknown."""

    keys: KeyColumns
    reward: Floats

    @classmethod
    def of(cls, rewards: Rewards) -> RewardColumns:
        """Turn rewards into columns; those of files have them."""
        if isinstance(rewards, RunRewards):
            return rewards.columns
        values = [np.nan if reward is None else reward for reward in rewards.values()]
        return cls(KeyColumns.of(rewards), np.array(values, dtype=float))

    def sorted_rows(self) -> Iterator[tuple[str, str, str, int, float]]:
        """Yield a key's benchmark, agent, task and attempt, and its reward (nan: unknown), in the
        order of the keys."""
        keys, order = self.keys, sorted_places(self.keys)
        codes = (keys.benchmark, keys.agent, keys.task, keys.attempt, self.reward)
        for start in range(0, len(order), ROWS_AT_ONCE):
            some = order[start : start + ROWS_AT_ONCE]
            rows = zip(*(column[some].tolist() for column in codes), strict=True)
            for benchmark, agent, task, attempt, reward in rows:
                names = keys.benchmarks[benchmark], keys.agents[agent], keys.tasks[task]
                yield *names, attempt, reward

    def hold(self, others: RewardColumns) -> bool:
        """Tell whether each of ``others`` is here, with the same reward."""
        place = places_among(others.keys, self.keys)
        return bool((place >= 0).all()) and np.array_equal(
            self.reward[place], others.reward, equal_nan=True
        )


def _code(value: bool | None) -> int:
    return UNKNOWN if value is None else int(value)


class _ByKey(Mapping[TrajectoryKey, V]):
    """Values of distinct trajectories, looked up by keys that are made when the first is."""

    def __init__(self, keys: KeyColumns) -> None:
        self._keys = keys

    def __contains__(self, key: object) -> bool:
        return key in self._places

    def __iter__(self) -> Iterator[TrajectoryKey]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._keys)

    @cached_property
    def _places(self) -> dict[TrajectoryKey, int]:
        return {compacted(key): place for place, key in enumerate(self._keys)}


class RunLabels(_ByKey[Label]):
    """The labels of a file, one a trajectory, each in its line of ``length`` bytes at ``offset``,
    (L,); a record is decoded when it is asked for.

    ``are_all``: the file has no annotation beside them.
    """

    def __init__(
        self, columns: LabelColumns, file: OpenedFile, offset: Ints, length: Ints, *, are_all: bool
    ) -> None:
        super().__init__(columns.keys)
        self.columns = columns
        self.are_all = are_all
        self._file, self._offset, self._length = file, offset, length

    def __getitem__(self, key: TrajectoryKey) -> Label:
        return self.at(self._places[key])

    def at(self, row: int) -> Label:
        """Decode the label at this row of the file's order. Raises UserError for a file that was
        changed."""
        line = int(self._offset[row]), int(self._length[row])
        label = self._file.record(Label, *line)
        compacted(label.key)
        return compacted(label)

    def of(self, keys: KeyColumns) -> RunLabels:
        """Keep those of distinct ``keys``, in their order."""
        rows = places_among(keys, self.columns.keys)
        rows = rows[rows >= 0]
        lines = self._offset[rows], self._length[rows]
        return RunLabels(self.columns.at(rows), self._file, *lines, are_all=self.are_all)

    def sorted_lines(self) -> Iterator[bytes]:
        """Yield the lines of the file in the order of the keys, newlines included."""
        order = sorted_places(self.columns.keys)
        return map(self._file.line, self._offset[order].tolist(), self._length[order].tolist())


class StoredAnnotations(Sequence[Label]):
    """The annotations of a file that holds labels alone, in its order; a record is decoded when it
    is asked for."""

    def __init__(self, labels: RunLabels) -> None:
        self.labels = labels

    @overload
    def __getitem__(self, place: int) -> Label: ...
    @overload
    def __getitem__(self, place: slice) -> list[Label]: ...
    def __getitem__(self, place: int | slice) -> Label | list[Label]:
        rows = range(len(self))[place]
        return self.labels.at(rows) if isinstance(rows, int) else [*map(self.labels.at, rows)]

    def __len__(self) -> int:
        return len(self.labels)


def labels_of(annotations: Iterable[Label]) -> Labels:
    """Return the label of every trajectory (``primary_labels``); those of a file stay there."""
    if isinstance(annotations, StoredAnnotations):
        return annotations.labels
    return primary_labels(annotations)


def splits_of(labels: Labels) -> dict[tuple[str, str], str]:
    """Return dev or test by benchmark and task id, where a label has one."""
    columns = LabelColumns.of(labels)
    keys, split = columns.keys, columns.split
    return {
        (keys.benchmarks[keys.benchmark[row]], keys.tasks[keys.task[row]]): name
        for row in np.flatnonzero(split).tolist()
        if (name := SPLITS[split[row]])
    }


class RunRewards(_ByKey[float | None]):
    """The official rewards of a file, one a trajectory."""

    def __init__(self, columns: RewardColumns) -> None:
        super().__init__(columns.keys)
        self.columns = columns

    def __getitem__(self, key: TrajectoryKey) -> float | None:
        reward = float(self.columns.reward[self._places[key]])
        return None if np.isnan(reward) else reward


_Count = Annotated[int, Meta(ge=0)]

_Share = Annotated[float, Meta(ge=0, le=1)]


class EvidenceFields(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """The fields of EvidenceMark."""

    step: _Count
    kind: Literal["screenshot", "axtree", "action", "answer"]
    note: str = ""
    box: tuple[float, float, float, float] | None = None


class LabelFields(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """The fields of Label."""

    key: KeyFields
    raw_task_id: str
    annotator: str
    role: Role = Role.PRIMARY
    success: bool | None = None
    side_effect: bool | None = None
    repetition: bool | None = None
    optimality: Annotated[int, Meta(ge=1, le=4)] | None = None
    split: Literal["dev", "test"] | None = None
    process: bool | None = None
    process_score: _Share | None = None
    failure_step: _Count | None = None
    failure_type: str | None = None
    unsure_why: dict[str, str] = {}
    evidence: tuple[EvidenceFields, ...] = ()
    comment: str | None = None
    seconds: Annotated[float, Meta(ge=0)] | None = None
    confidence: Annotated[int, Meta(ge=1, le=3)] | None = None
    guideline_version: str | None = None
    blind: bool | None = None
    seen: tuple[str, ...] = ()
    inclusion_probability: Annotated[float, Meta(gt=0, le=1)] | None = None
    stratum: str | None = None


class RewardFields(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """The fields of Reward."""

    key: KeyFields
    official_reward: float | None = None


_LABEL_DECODER = msgspec.json.Decoder(LabelFields)

_REWARD_DECODER = msgspec.json.Decoder(RewardFields)


def read_label_columns(path: Path) -> RunLabels | None:
    """Read the primary labels of a file in trajudge's own format; None where only reading the
    records settles what it holds: another header, two primary labels of a trajectory, one that was
    adjudicated, a line that the decoder does not take."""
    keys, verdicts, inclusion = KeyColumnsBuilder(), array("b"), array("d")
    offset, length, split = array("q"), array("q"), array("b")
    are_all = True
    try:
        lines = whole_lines(path)
        header = next(lines, None)
        if header is None or not store.is_header(header.content):
            return None
        end = header.offset + len(header.content)
        for line, label in _decoded(path, lines, end):
            if label.role is Role.ADJUDICATED:
                return None
            if label.role is not Role.PRIMARY:
                are_all = False
                continue
            keys.add(label.key)
            for verdict in (label.success, label.side_effect, label.repetition, label.process):
                verdicts.append(UNKNOWN if verdict is None else verdict)
            drawn = label.inclusion_probability
            inclusion.append(np.nan if drawn is None else drawn)
            offset.append(line.offset)
            length.append(len(line.content))
            split.append(SPLITS.index(label.split))
        file = OpenedFile(path)
    except (ValueError, UserError):
        return None
    codes = column_of(verdicts).reshape(-1, len(VERDICTS)).T
    columns = LabelColumns(keys.build(), codes, column_of(inclusion), column_of(split))
    if len(distinct(columns.keys)[0]) < len(columns.keys):
        return None
    return RunLabels(columns, file, column_of(offset), column_of(length), are_all=are_all)


def read_reward_columns(path: Path) -> RunRewards:
    """Read the official rewards of a run; the last counts where a trajectory has several. Raises
    UserError for a line that cannot be read."""
    keys, rewards = KeyColumnsBuilder(), array("d")
    for line in whole_lines(path):
        try:
            reward = _REWARD_DECODER.decode(line.content)
        except msgspec.MsgspecError as error:
            raise UserError(f"{path}, line {line.number}: {error}: mend the line") from error
        keys.add(reward.key)
        value = reward.official_reward
        rewards.append(np.nan if value is None else value)
    columns = RewardColumns(keys.build(), column_of(rewards))
    _, place = distinct(columns.keys)
    last = len(place) - 1 - np.unique(place[::-1], return_index=True)[1]
    if len(last) < len(place):
        rows = np.sort(last)
        columns = RewardColumns(columns.keys.at(rows), columns.reward[rows])
    return RunRewards(columns)


def _decoded(
    path: Path, lines: Iterable[JournalLine], end: int
) -> Iterator[tuple[JournalLine, LabelFields]]:
    """Yield the lines with their fields. Raises ValueError for one that the decoder does not take,
    and where the file does not end with a whole line."""
    for line in lines:
        fields = _LABEL_DECODER.decode(line.content)
        if fields.key.attempt < 0:
            raise ValueError("the attempt is negative")
        end = line.offset + len(line.content)
        yield line, fields
    if end != path.stat().st_size:
        raise ValueError("the last line is not whole")


def refuse_conflicts(
    labels: Iterable[tuple[str, Labels]], questions: Sequence[str] = VERDICTS
) -> None:
    """Raise UserError where two of them, each by the name of its run, answer one of the questions
    differently for a trajectory: what is scored would depend on the order in which the runs are
    given. Labels none of which answers a question contradict no others' answers."""
    named = [(name, LabelColumns.of(some)) for name, some in labels if len(some)]
    if len(named) < 2:
        return
    keys = joined([each.keys for _, each in named])
    verdicts = np.concatenate([each.verdicts for _, each in named], axis=1)
    runs = np.repeat(np.arange(len(named)), [len(each.keys) for _, each in named])
    known, place = distinct(keys)
    first = np.zeros((len(questions), len(keys)), dtype=np.int64)  # the row of the first answer
    differs = np.zeros((len(questions), len(keys)), dtype=bool)
    for number, name in enumerate(questions):
        codes = verdicts[VERDICTS.index(name)]
        rows = np.flatnonzero(np.array([name in _answered(each) for _, each in named])[runs])
        first_of = np.empty(len(known), dtype=np.int64)
        first_of[place[rows[::-1]]] = rows[::-1]
        first[number, rows] = first_of[place[rows]]
        differs[number, rows] = codes[rows] != codes[first[number, rows]]
    other = np.flatnonzero(differs.any(axis=0))
    if not len(other):
        return
    row = int(other[0])
    one, two = (named[runs[at]][0] for at in (first[differs[:, row].argmax(), row], row))
    differing = count_of(len(np.unique(place[other])), "trajectory")
    which = [name for name, found in zip(questions, differs, strict=True) if found.any()]
    raise UserError(
        f"{one} and {two}: their labels of {keys.key(row)} differ (in all the runs those of "
        f"{differing}, in {_words(which)}): name the labels that count with --annotations FILE"
    )


def unanswered_notes(labels: Iterable[tuple[str, Labels]]) -> Iterator[str]:
    """Yield a sentence for each run, by its name, whose labels do not answer a question that
    another run's answer."""
    named = [(name, _answered(LabelColumns.of(some))) for name, some in labels if len(some)]
    asked = [name for name in VERDICTS if any(name in answers for _, answers in named)]
    for name, answers in named:
        if lacking := [question for question in asked if question not in answers]:
            yield (
                f"{name}: its labels lack {_words(lacking)}, which the labels of the other runs "
                "answer where they have the trajectory"
            )


def merged_labels(parts: Sequence[Labels]) -> Labels:
    """Bring labels together, of several of a trajectory the last; a question that none of its part
    answers is answered by those before. Those of a single part are kept as they are, in columns."""
    if len(parts) == 1:
        return parts[0]
    merged: dict[TrajectoryKey, Label] = {}
    for labels in parts:
        lacking = [name for name in VERDICTS if name not in _answered(LabelColumns.of(labels))]
        for key, label in labels.items():
            before = merged.get(key)
            known = {name: getattr(before, name, None) for name in lacking}
            is_more = any(value is not None for value in known.values())
            merged[key] = label.model_copy(update=known) if is_more else label
    return merged


def _answered(labels: LabelColumns) -> set[str]:
    """Return the questions that at least one label answers."""
    known = (labels.verdicts != UNKNOWN).any(axis=1)
    return {name for name, is_known in zip(VERDICTS, known, strict=True) if is_known}


def _words(questions: Iterable[str]) -> str:
    return " and ".join(name.replace("_", " ") for name in questions)
