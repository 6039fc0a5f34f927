"""Lines of ``labels.jsonl`` and ``rewards.jsonl``, read into columns without making records.

The typed decoders take a part of what pydantic takes, and give the same values for it. A file that
holds anything else is left to the readers of records, which take it or say what is wrong with it.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Literal, TypeVar

import msgspec
import numpy as np
from msgspec import Meta

from trajudge.annotations import store
from trajudge.annotations.model import Role
from trajudge.eval.data.index.columns import UNKNOWN, VERDICTS
from trajudge.eval.data.index.keys import KeyColumns, KeyColumnsBuilder, column_of, distinct
from trajudge.eval.data.index.labels import LabelColumns, RewardColumns, RunLabels, RunRewards
from trajudge.eval.data.index.lines import JournalLine, whole_lines
from trajudge.eval.data.index.opened_file import OpenedFile
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


class LabelFields(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """The fields of Annotation."""

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


class RewardFields(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """The fields of Reward."""

    key: KeyFields
    official_reward: float | None = None


_LABEL = msgspec.json.Decoder(LabelFields)
_REWARD = msgspec.json.Decoder(RewardFields)


T = TypeVar("T", LabelFields, RewardFields)


def read_label_columns(path: Path) -> RunLabels | None:
    """Read the primary labels of a file in trajudge's own format; None where only reading the
    records settles what it holds: another header, two primary labels of a trajectory, one that was
    adjudicated, a line that the decoder does not take."""
    keys, verdicts = KeyColumnsBuilder(), array("b")
    offset, length = array("q"), array("q")
    try:
        lines = whole_lines(path)
        header = next(lines, None)
        if header is None or not store.is_header(header.content):
            return None
        for line, label in _decoded(path, lines, _LABEL, len(header.content)):
            if label.role is Role.ADJUDICATED:
                return None
            if label.role is not Role.PRIMARY:
                continue
            keys.add(label.key)
            for verdict in (label.success, label.side_effect, label.repetition, label.process):
                verdicts.append(UNKNOWN if verdict is None else verdict)
            offset.append(line.offset)
            length.append(len(line.content))
        file = OpenedFile(path)
    except (ValueError, UserError):
        return None
    columns = LabelColumns(keys.build(), column_of(verdicts).reshape(-1, len(VERDICTS)).T)
    if _has_repeats(columns.keys):
        return None
    return RunLabels(columns, file, column_of(offset), column_of(length))


def read_reward_columns(path: Path) -> RunRewards | None:
    """Read the official rewards of a run; None as ``read_label_columns``."""
    keys, rewards = KeyColumnsBuilder(), array("d")
    try:
        for _, reward in _decoded(path, whole_lines(path), _REWARD):
            keys.add(reward.key)
            value = reward.official_reward
            rewards.append(np.nan if value is None else value)
    except (ValueError, UserError):
        return None
    columns = RewardColumns(keys.build(), column_of(rewards))
    return None if _has_repeats(columns.keys) else RunRewards(columns)


def _decoded(
    path: Path, lines: Iterable[JournalLine], decoder: msgspec.json.Decoder[T], end: int = 0
) -> Iterator[tuple[JournalLine, T]]:
    """Yield the lines with their fields. Raises ValueError for one that the decoder does not take,
    and where the file does not end with a whole line."""
    for line in lines:
        fields = decoder.decode(line.content)
        if fields.key.attempt < 0:
            raise ValueError("the attempt is negative")
        end = line.offset + len(line.content)
        yield line, fields
    if end != path.stat().st_size:
        raise ValueError("the last line is not whole")


def _has_repeats(keys: KeyColumns) -> bool:
    return len(distinct(keys)[0]) < len(keys)
