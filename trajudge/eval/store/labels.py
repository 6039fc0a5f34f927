"""Labels and official rewards as columns, and mappings over those of a run's files."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, TypeVar, overload

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from trajudge.annotations import store
from trajudge.annotations.model import Annotation, Labels, Role, primary_labels
from trajudge.annotations.store import annotation_line
from trajudge.eval.store.table import (
    KEY_TYPES,
    UNKNOWN,
    VERDICTS,
    JournalLine,
    KeyColumns,
    KeyColumnsBuilder,
    NamedColumns,
    OpenedFile,
    SavedTable,
    check_lengths,
    column_of,
    distinct,
    joined,
    kept_or_read,
    key_columns,
    key_names,
    keys_of,
    places_among,
    sorted_places,
    whole_lines,
)
from trajudge.stats.intervals import Bools, Floats, Ints
from trajudge.trajectories.model import TrajectoryKey, canonical_task_id, compacted
from trajudge.trajectories.store import KeyFields
from trajudge.util.errors import UserError
from trajudge.util.terminal import count_of

V = TypeVar("V")

ROWS_AT_ONCE = 4096  # of columns as Python's own numbers, which take several times the memory

Rewards = Mapping[TrajectoryKey, float | None]


@dataclass(frozen=True, eq=False)
class LabelColumns:
    """Labels of distinct trajectories, (L,): ``verdicts`` are 1, 0 or UNKNOWN, (len(VERDICTS), L);
    ``inclusion`` is the probability with which each was drawn, nan where it has none."""

    keys: KeyColumns
    verdicts: NDArray[np.int8]
    inclusion: Floats

    @classmethod
    def of(cls, labels: Labels) -> LabelColumns:
        """Turn labels into columns; those of files have them."""
        if isinstance(labels, RunLabels):
            return labels.columns
        codes = np.array(
            [[_code(getattr(a, name)) for name in VERDICTS] for a in labels.values()],
            dtype=np.int8,
        )
        drawn = [a.inclusion_probability for a in labels.values()]
        inclusion = np.array([np.nan if p is None else p for p in drawn], dtype=float)
        return cls(KeyColumns.of(labels), codes.reshape(-1, len(VERDICTS)).T, inclusion)

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


SPLITS = (None, "dev", "test")


class LabelLines(NamedTuple):
    """Lines of labels, (L,): where they stand in their file, ``split`` as an index of SPLITS, and
    whether ``annotations.store`` would write the same line."""

    offset: Ints
    length: Ints
    split: NDArray[np.int8]
    as_written: Bools


def _code(value: bool | None) -> int:
    return UNKNOWN if value is None else int(value)


def _at(lines: LabelLines, places: Ints) -> LabelLines:
    """Keep the lines at these places, in that order."""
    split, written = lines.split[places], lines.as_written[places]
    return LabelLines(lines.offset[places], lines.length[places], split, written)


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


class RunLabels(_ByKey[Annotation]):
    """The labels of a file, one a trajectory; a record is decoded when it is asked for.

    ``are_all``: the file has no annotation beside them.
    """

    def __init__(
        self, columns: LabelColumns, file: OpenedFile, lines: LabelLines, *, are_all: bool = True
    ) -> None:
        super().__init__(columns.keys)
        self.columns = columns
        self.are_all = are_all
        self._file = file
        self.lines = lines

    def __getitem__(self, key: TrajectoryKey) -> Annotation:
        return self.at(self._places[key])

    def at(self, place: int) -> Annotation:
        """Decode the label at this place of the file's order. Raises UserError for a file that was
        changed."""
        line = int(self.lines.offset[place]), int(self.lines.length[place])
        label = self._file.record(Annotation, *line)
        compacted(label.key)
        return compacted(label)

    def of(self, keys: KeyColumns) -> RunLabels:
        """Keep those of distinct ``keys``, in their order."""
        places = places_among(keys, self.columns.keys)
        places = places[places >= 0]
        mine = self.columns
        columns = LabelColumns(
            mine.keys.at(places), mine.verdicts[:, places], mine.inclusion[places]
        )
        return RunLabels(columns, self._file, _at(self.lines, places))

    def splits(self) -> dict[tuple[str, str], str]:
        """Return dev or test by benchmark and task id, where a label has one."""
        keys, lines = self.columns.keys, self.lines
        return {
            (keys.benchmarks[keys.benchmark[place]], keys.tasks[keys.task[place]]): split
            for place in np.flatnonzero(lines.split).tolist()
            if (split := SPLITS[lines.split[place]])
        }

    def sorted_lines(self) -> Iterator[bytes]:
        """Yield the lines of their records in the order of the keys, newlines included."""
        order = sorted_places(self.columns.keys)
        for start in range(0, len(order), ROWS_AT_ONCE):
            some = order[start : start + ROWS_AT_ONCE]
            lines = _at(self.lines, some)
            columns = (some, lines.offset, lines.length, lines.as_written)
            for place, offset, length, is_as_written in zip(
                *(column.tolist() for column in columns), strict=True
            ):
                if is_as_written:
                    yield self._file.line(offset, length)
                else:
                    yield annotation_line(self.at(place))


class StoredAnnotations(Sequence[Annotation]):
    """The annotations of a file that holds labels alone, in its order; a record is decoded when it
    is asked for."""

    def __init__(self, labels: RunLabels) -> None:
        self.labels = labels

    @overload
    def __getitem__(self, place: int) -> Annotation: ...
    @overload
    def __getitem__(self, place: slice) -> list[Annotation]: ...
    def __getitem__(self, place: int | slice) -> Annotation | list[Annotation]:
        rows = range(len(self))[place]
        return self.labels.at(rows) if isinstance(rows, int) else [*map(self.labels.at, rows)]

    def __len__(self) -> int:
        return len(self.labels)


def labels_of(annotations: Iterable[Annotation]) -> Labels:
    """Return the label of every trajectory (``primary_labels``); those of a file stay there."""
    if isinstance(annotations, StoredAnnotations):
        return annotations.labels
    return primary_labels(annotations)


def splits_of(labels: Labels) -> dict[tuple[str, str], str]:
    """Return dev or test by benchmark and task id, where a label has one."""
    if isinstance(labels, RunLabels):
        return labels.splits()
    return {(k.benchmark, k.task_id): label.split for k, label in labels.items() if label.split}


class RunRewards(_ByKey[float | None]):
    """The official rewards of a file, one a trajectory."""

    def __init__(self, columns: RewardColumns) -> None:
        super().__init__(columns.keys)
        self.columns = columns

    def __getitem__(self, key: TrajectoryKey) -> float | None:
        reward = float(self.columns.reward[self._places[key]])
        return None if np.isnan(reward) else reward


_LINES = {"offset": "i8", "length": "i8", "split": "i1", "as_written": "i1"}

_REWARD = {"reward": "f8"}


class SavedLabels:
    """The labels of a file."""

    def __init__(self, path: Path) -> None:
        types = KEY_TYPES | {"verdicts": "i1", "inclusion": "f8"} | _LINES
        self._path = path
        self._table = SavedTable.of_files(".labels.msgpack", [path], types, VERDICTS)

    def load(self) -> RunLabels | None:
        """Return what was kept; None where nothing was, or the file has changed since."""
        table = self._table.load()
        if table is None:
            return None
        try:
            file, keys = OpenedFile(self._path), keys_of(table)
            verdicts = table.columns["verdicts"].reshape(len(VERDICTS), -1)
            lines = [table.columns[name] for name in _LINES]
            inclusion = table.columns["inclusion"]
            check_lengths([verdicts, inclusion, *lines], len(keys))
        except (ValueError, UserError):
            return None
        offset, length, split, written = lines
        lines_of = LabelLines(offset, length, split, written.astype(bool))
        are_all = table.names[-1] == ()
        return RunLabels(LabelColumns(keys, verdicts, inclusion), file, lines_of, are_all=are_all)

    def keep(self, labels: RunLabels) -> None:
        """Keep them."""
        keys = labels.columns.keys
        columns = {**key_columns(keys), "verdicts": labels.columns.verdicts}
        columns["inclusion"] = labels.columns.inclusion
        columns |= labels.lines._asdict()
        others = () if labels.are_all else ("others",)
        self._table.keep(NamedColumns((*key_names(keys), others), columns))


class SavedRewards:
    """The official rewards of a run's file."""

    def __init__(self, path: Path) -> None:
        self._table = SavedTable.of_files(".rewards.msgpack", [path], KEY_TYPES | _REWARD)

    def load(self) -> RunRewards | None:
        """Return what was kept; None where nothing was, or the file has changed since."""
        table = self._table.load()
        try:
            if table is None:
                return None
            keys, reward = keys_of(table), table.columns["reward"]
            check_lengths([reward], len(keys))
        except ValueError:
            return None
        return RunRewards(RewardColumns(keys, reward))

    def keep(self, rewards: RunRewards) -> None:
        """Keep them."""
        keys = rewards.columns.keys
        columns = {**key_columns(keys), "reward": rewards.columns.reward}
        self._table.keep(NamedColumns(key_names(keys), columns))


class SavedKeys:
    """The keys of the trajectories in a file, in their order, with repeats."""

    def __init__(self, path: Path) -> None:
        self._table = SavedTable.of_files(".keys.msgpack", [path], KEY_TYPES)

    def load(self) -> KeyColumns | None:
        """Return what was kept; None where nothing was, or the file has changed since."""
        table = self._table.load()
        try:
            return None if table is None else keys_of(table)
        except ValueError:
            return None

    def keep(self, keys: KeyColumns) -> None:
        """Keep them."""
        self._table.keep(NamedColumns(key_names(keys), key_columns(keys)))


_Count = Annotated[int, Meta(ge=0)]

_Share = Annotated[float, Meta(ge=0, le=1)]


class EvidenceFields(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """The fields of EvidenceMark."""

    step: _Count
    kind: Literal["screenshot", "axtree", "action", "answer"]
    note: str = ""
    box: tuple[float, float, float, float] | None = None


class FirstLabelFields(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """The fields of Annotation that every line of it has, in their order."""

    key: KeyFields
    raw_task_id: str
    annotator: str
    role: Role = Role.PRIMARY
    success: bool | None = None
    side_effect: bool | None = None
    repetition: bool | None = None
    optimality: Annotated[int, Meta(ge=1, le=4)] | None = None
    split: Literal["dev", "test"] | None = None


class LabelFields(FirstLabelFields, forbid_unknown_fields=True, gc=False):
    """The fields of Annotation."""

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


_FIRST = msgspec.json.Decoder(FirstLabelFields)

_LABEL = msgspec.json.Decoder(LabelFields)

_ENCODER = msgspec.json.Encoder()

_REWARD_DECODER = msgspec.json.Decoder(RewardFields)


T = TypeVar("T", FirstLabelFields, RewardFields)


def read_label_columns(path: Path) -> RunLabels | None:
    """Read the primary labels of a file in trajudge's own format; None where only reading the
    records settles what it holds: another header, two primary labels of a trajectory, one that was
    adjudicated, a line that the decoder does not take. The columns of a large file are kept in the
    user's cache."""
    return kept_or_read(SavedLabels(path), lambda: _read_labels(path))


def _read_labels(path: Path) -> RunLabels | None:
    keys, verdicts = KeyColumnsBuilder(), array("b")
    offset, length, split, plain = array("q"), array("q"), array("b"), array("b")
    inclusion = array("d")
    are_all = True
    try:
        lines = whole_lines(path)
        header = next(lines, None)
        if header is None or not store.is_header(header.content):
            return None
        for line, label in _decoded(path, lines, _label, header.offset + len(header.content)):
            if label.role is Role.ADJUDICATED:
                return None
            if label.role is not Role.PRIMARY:
                are_all = False
                continue
            keys.add(label.key)
            process = label.process if isinstance(label, LabelFields) else None
            drawn = label.inclusion_probability if isinstance(label, LabelFields) else None
            inclusion.append(np.nan if drawn is None else drawn)
            for verdict in (label.success, label.side_effect, label.repetition, process):
                verdicts.append(UNKNOWN if verdict is None else verdict)
            offset.append(line.offset)
            length.append(len(line.content))
            split.append(SPLITS.index(label.split))
            plain.append(_is_as_written(line.content, label))
        file = OpenedFile(path)
    except (ValueError, UserError):
        return None
    codes = column_of(verdicts).reshape(-1, len(VERDICTS)).T
    columns = LabelColumns(keys.build(), codes, column_of(inclusion))
    if _has_repeats(columns.keys):
        return None
    written = column_of(plain).astype(bool)
    lines_of = LabelLines(column_of(offset), column_of(length), column_of(split), written)
    return RunLabels(columns, file, lines_of, are_all=are_all)


def _label(line: bytes) -> FirstLabelFields:
    """Decode a line; most have no more than the first fields. Raises ValueError."""
    try:
        return _FIRST.decode(line)
    except msgspec.ValidationError:
        return _LABEL.decode(line)


def _is_as_written(line: bytes, label: FirstLabelFields) -> bool:
    """Tell whether ``annotations.store`` would write the label as this line; False also where only
    writing it settles that."""
    key = label.key
    return (
        not isinstance(label, LabelFields)
        and b"\\" not in line
        and line == _ENCODER.encode(label) + b"\n"
        and canonical_task_id(key.benchmark, key.task_id) == key.task_id
    )


def read_reward_columns(path: Path) -> RunRewards | None:
    """Read the official rewards of a run; None as ``read_label_columns``, which keeps as well."""
    return kept_or_read(SavedRewards(path), lambda: _read_rewards(path))


def _read_rewards(path: Path) -> RunRewards | None:
    keys, rewards = KeyColumnsBuilder(), array("d")
    try:
        for _, reward in _decoded(path, whole_lines(path), _REWARD_DECODER.decode):
            keys.add(reward.key)
            value = reward.official_reward
            rewards.append(np.nan if value is None else value)
    except (ValueError, UserError):
        return None
    columns = RewardColumns(keys.build(), column_of(rewards))
    return None if _has_repeats(columns.keys) else RunRewards(columns)


def _decoded(
    path: Path, lines: Iterable[JournalLine], decode: Callable[[bytes], T], end: int = 0
) -> Iterator[tuple[JournalLine, T]]:
    """Yield the lines with their fields. Raises ValueError for one that the decoder does not take,
    and where the file does not end with a whole line."""
    for line in lines:
        fields = decode(line.content)
        if fields.key.attempt < 0:
            raise ValueError("the attempt is negative")
        end = line.offset + len(line.content)
        yield line, fields
    if end != path.stat().st_size:
        raise ValueError("the last line is not whole")


def _has_repeats(keys: KeyColumns) -> bool:
    return len(distinct(keys)[0]) < len(keys)


def refuse_conflicts(labels: Iterable[tuple[str, Labels]]) -> None:
    """Raise UserError where two of them, each by the name of its run, hold different labels of a
    trajectory: what is scored would depend on the order in which the runs are given."""
    named = [(name, LabelColumns.of(some)) for name, some in labels if len(some)]
    if len(named) < 2:
        return
    keys = joined([each.keys for _, each in named])
    verdicts = np.concatenate([each.verdicts for _, each in named], axis=1)
    known, place = distinct(keys)
    first = np.empty(len(known), dtype=np.int64)
    first[place[::-1]] = np.arange(len(keys))[::-1]
    other = np.flatnonzero((verdicts != verdicts[:, first[place]]).any(axis=0))
    if not len(other):
        return
    runs = np.repeat(np.arange(len(named)), [len(each.keys) for _, each in named])
    one, two = (named[runs[row]][0] for row in (first[place[other[0]]], other[0]))
    differing = count_of(len(np.unique(place[other])), "trajectory")
    raise UserError(
        f"{one} and {two}: their labels of {keys.key(int(other[0]))} differ (in all the runs those "
        f"of {differing}): name the labels that count with --annotations KIND:PATH"
    )
