"""Labels and official rewards as columns; mappings over those of a run's files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from trajudge.annotations.model import Annotation, Labels, primary_labels
from trajudge.annotations.store import annotation_line
from trajudge.eval.data.index.columns import UNKNOWN, VERDICTS
from trajudge.eval.data.index.keys import KeyColumns, places_among, sorted_places
from trajudge.eval.data.index.opened_file import OpenedFile
from trajudge.eval.stats.interval import Bools, Floats, Ints
from trajudge.trajectories.model import TrajectoryKey, compacted
from trajudge.trajectories.util.errors import UserError

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
