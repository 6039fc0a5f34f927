"""The files of a run's folder: enough to score it again without a call and without the data.

``manifest.json`` (a JSON object), ``judgments.jsonl`` (a Judgment a line), ``labels.jsonl`` (our
annotation format, the run's trajectories only), ``rewards.jsonl`` (key and official reward),
``unreadable.jsonl`` (what the data held beside its trajectories and no loader could read),
``cost.json`` (what this execution paid), and ``records/``, a JSON file for each judgment of a judge
that keeps what its verdict rests on.
"""

from __future__ import annotations

import errno
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import orjson
from pydantic import FiniteFloat, JsonValue, ValidationError
from pydantic_core import PydanticSerializationError

from trajudge.annotations import store
from trajudge.annotations.model import Annotation, Labels, primary_labels
from trajudge.eval.data.index.label_lines import read_label_columns, read_reward_columns
from trajudge.eval.data.index.labels import RewardColumns, RunLabels
from trajudge.eval.data.index.lines import bad_line, unreadable, whole_lines
from trajudge.judges.model import Judgment
from trajudge.trajectories.added import absent_fields
from trajudge.trajectories.model import Record, TrajectoryKey, Unreadable, compacted
from trajudge.trajectories.util.atomic import make_folder, replacing, write_bytes
from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.gc_pause import collection_paused
from trajudge.trajectories.util.safe_files import read_utf8
from trajudge.trajectories.util.surrogates import without_surrogates
from trajudge.trajectories.util.terminal import count_of

MANIFEST = "manifest.json"
JUDGMENTS = "judgments.jsonl"
LABELS = "labels.jsonl"
REWARDS = "rewards.jsonl"
UNREADABLE = "unreadable.jsonl"
COST = "cost.json"
RECORDS = "records"

# Of this execution, not of the judgment: a run that was interrupted ends with the same bytes.
_OF_EXECUTION = frozenset(("seconds", "cached"))
_EXECUTION: Any = {"calls": {"__all__": set(_OF_EXECUTION)}, "record": True}
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# A file system takes names of 255 bytes; a longer one ends with a hash.
_LONGEST_NAME = 200


R = TypeVar("R", bound=Record)


class OfficialReward(Record):
    """A line of ``rewards.jsonl``."""

    key: TrajectoryKey
    official_reward: FiniteFloat | None = None


class UnreadableRecord(Record):
    """A line of ``unreadable.jsonl``: a record whose key is not known, so that no judgment tells of
    it; that of a trajectory with a key is a skipped one."""

    source: str
    reason: str


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Around every write below ``folder``: a full disk, or a folder that cannot be written, becomes
    UserError, one sentence."""
    try:
        yield
    except OSError as error:
        mend = "make room" if error.errno in _NO_ROOM else "make it a folder that can be written"
        raise UserError(
            f"{folder}: cannot be written ({error.strerror}): {mend} and start the same "
            "command again; nothing that was answered is lost"
        ) from error


def judgment_line(judgment: Judgment) -> bytes:
    """Encode a judgment as a line of ``judgments.jsonl``, newline included."""
    absent = absent_fields(judgment)
    try:  # as below, in a fraction of the time
        return orjson.dumps(_line_fields(judgment, absent), option=orjson.OPT_APPEND_NEWLINE)
    except orjson.JSONEncodeError:
        pass
    left_out = {**_EXECUTION, **dict.fromkeys(absent, True)}
    try:
        return judgment.model_dump_json(exclude=left_out).encode() + b"\n"
    except PydanticSerializationError:
        clean = Judgment.model_validate(without_surrogates(judgment.model_dump()))
        return clean.model_dump_json(exclude=left_out).encode() + b"\n"


def _line_fields(judgment: Judgment, absent: set[str]) -> dict[str, Any]:
    """Return what a line holds, as JSON values in the order of the fields."""
    fields: dict[str, Any] = {
        name: value
        for name, value in vars(judgment).items()
        if name != "record" and name not in absent
    }
    fields["key"] = vars(judgment.key)
    fields["calls"] = [
        {name: value for name, value in vars(call).items() if name not in _OF_EXECUTION}
        | {"usage": call.usage and vars(call.usage)}
        for call in judgment.calls
    ]
    return fields


def record_path(folder: Path, judgment: Judgment) -> Path:
    """Return where the record of a judgment is kept: named after its key and sample."""
    key = judgment.key
    parts = (key.benchmark, key.agent, key.task_id, str(key.attempt), str(judgment.sample))
    name = ",".join(quote(part, safe="") for part in parts)
    if len(name) > _LONGEST_NAME:
        name = f"{name[:_LONGEST_NAME]},{sha256(name.encode()).hexdigest()[:16]}"
    return folder / RECORDS / f"{name}.json"


def write_record(folder: Path, judgment: Judgment) -> None:
    """Write what the verdict rests on, if the judge keeps that. Raises UserError on a full disk."""
    if judgment.record is None:
        return
    path = record_path(folder, judgment)
    with writing(folder):
        path.parent.mkdir(exist_ok=True)
        write_bytes(path, json.dumps(judgment.record, indent=1).encode() + b"\n")


def write_judgments(folder: Path, judgments: Iterable[Judgment]) -> None:
    """Write ``judgments.jsonl`` anew, in the order given. Raises UserError on a full disk; the file
    then stays as it was."""
    write_lines(folder / JUDGMENTS, map(judgment_line, judgments))


def read_judgments(folder: Path) -> list[Judgment]:
    """Read all judgments of a run in file order. A last line without its newline was torn by a
    kill and is left out; a bad line elsewhere raises UserError."""
    return _records(folder / JUDGMENTS, Judgment)


def write_rewards(folder: Path, rewards: Mapping[TrajectoryKey, float | None]) -> None:
    """Write ``rewards.jsonl``, sorted by key."""
    rows = RewardColumns.of(rewards).sorted_rows()
    write_lines(folder / REWARDS, (_reward_line(*row) for row in rows))


def _reward_line(benchmark: str, agent: str, task: str, attempt: int, reward: float) -> bytes:
    """Encode an OfficialReward; nan is null."""
    key = {"benchmark": benchmark, "agent": agent, "task_id": task, "attempt": attempt}
    line = {"key": key, "official_reward": reward}
    return orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE)


def read_rewards(folder: Path) -> Mapping[TrajectoryKey, float | None]:
    """Read the official reward of every trajectory of the run; the last counts where a trajectory
    has several."""
    with collection_paused():
        if rewards := read_reward_columns(folder / REWARDS):
            return rewards
        lines = _each_record(folder / REWARDS, OfficialReward)
        return {compacted(line.key): line.official_reward for line in lines}


def write_labels(folder: Path, labels: Iterable[Annotation] | RunLabels) -> None:
    """Write ``labels.jsonl``, sorted by key."""
    if isinstance(labels, RunLabels):
        write_lines(folder / LABELS, chain([store.header_line()], labels.sorted_lines()))
        return
    with writing(folder):
        store.write(folder / LABELS, sorted(labels, key=lambda label: label.key.order))


def read_labels(folder: Path) -> Labels:
    """Read the labels that the run was scored against."""
    with collection_paused():
        if labels := read_label_columns(folder / LABELS):
            return labels
    return primary_labels(store.load(folder / LABELS))


def write_manifest(folder: Path, manifest: Mapping[str, JsonValue]) -> None:
    """Write ``manifest.json``."""
    content = orjson.dumps(dict(manifest), option=orjson.OPT_INDENT_2)
    write_lines(folder / MANIFEST, [content + b"\n"])


def copy_run(folder: Path, target: Path) -> None:
    """Copy what judgments are scored with, and what could not be read, into another folder."""
    with writing(target):
        make_folder(target, "--out")
        for name in (MANIFEST, LABELS, REWARDS, UNREADABLE):
            if (folder / name).is_file():
                write_bytes(target / name, (folder / name).read_bytes())


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read the settings that the run was made with."""
    path = folder / MANIFEST
    try:
        manifest = orjson.loads(_bytes(path))
    except orjson.JSONDecodeError as error:
        raise UserError(f"{path}: is not JSON ({error}); give the folder of a run") from error
    if not isinstance(manifest, dict):
        raise UserError(f"{path}: holds no JSON object; give the folder of a run")
    return manifest


def _records(path: Path, record: type[R]) -> list[R]:
    with collection_paused():
        return [*_each_record(path, record)]


def _each_record(path: Path, record: type[R]) -> Iterator[R]:
    for line in whole_lines(path):
        try:
            yield record.model_validate_json(line.content)
        except ValidationError as error:
            raise bad_line(path, line.number, error) from error


def _bytes(path: Path) -> bytes:
    try:
        return read_utf8(path)
    except OSError as error:
        raise unreadable(path, error) from error


def write_lines(path: Path, lines: Iterable[bytes]) -> None:
    """Write a file of a run, whole or not at all, a line at a time. Raises UserError on a full
    disk; the file then stays as it was."""
    with writing(path.parent), replacing(path, durable=False) as file:
        file.writelines(lines)


def write_unreadable(folder: Path, items: Sequence[Unreadable]) -> None:
    """Write what could not be read, a line each; without any there is no file. Raises UserError for
    a folder that cannot be written."""
    path = folder / UNREADABLE
    records = [UnreadableRecord(source=one.source, reason=one.reason) for one in items]
    if records:
        write_lines(path, (f"{one.model_dump_json()}\n".encode() for one in records))
        return
    with writing(folder):
        path.unlink(missing_ok=True)


def read_unreadable(folder: Path) -> list[UnreadableRecord]:
    """Read what could not be read when the run was judged. Raises UserError for a damaged file."""
    path = folder / UNREADABLE
    return _records(path, UnreadableRecord) if path.is_file() else []


def unreadable_note(folder: Path) -> list[str]:
    """Say how much of the data was not read when the run was judged: one sentence, or none."""
    try:
        records = read_unreadable(folder)
    except UserError as error:
        return [str(error)]
    return [f"{folder}: judged without {unreadable_said(records)}"] if records else []


def unreadable_said(items: Sequence[Unreadable | UnreadableRecord]) -> str:
    """Count what could not be read and name the first."""
    records = count_of(len(items), "record")
    return f"{records} that cannot be read; the first is {items[0].source}: {items[0].reason}"
