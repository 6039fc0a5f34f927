"""Lines of ``labels.jsonl`` and ``rewards.jsonl``, read into columns without making records.

The typed decoders take a part of what pydantic takes, and give the same values for it. A file that
holds anything else is left to the readers of records, which take it or say what is wrong with it.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Annotated, Literal, TypeVar

import msgspec
import numpy as np
from msgspec import Meta

from trajudge.annotations import store
from trajudge.annotations.model import Role
from trajudge.eval.data.index.columns import UNKNOWN, VERDICTS
from trajudge.eval.data.index.keys import KeyColumns, KeyColumnsBuilder, column_of, distinct
from trajudge.eval.data.index.labels import (
    SPLITS,
    LabelColumns,
    LabelLines,
    RewardColumns,
    RunLabels,
    RunRewards,
)
from trajudge.eval.data.index.lines import JournalLine, whole_lines
from trajudge.eval.data.index.opened_file import OpenedFile
from trajudge.eval.data.index.saved_labels import SavedLabels, SavedRewards
from trajudge.eval.data.index.saved_tables import kept_or_read
from trajudge.trajectories.model import canonical_task_id
from trajudge.trajectories.stored_lines import KeyFields
from trajudge.trajectories.util.errors import UserError

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
_REWARD = msgspec.json.Decoder(RewardFields)


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
        for _, reward in _decoded(path, whole_lines(path), _REWARD.decode):
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
