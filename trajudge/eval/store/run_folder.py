"""The folder of a run, and how its files are read and written.

| file | what it holds |
|---|---|
| ``manifest.json`` | the settings, and what was really sent (``eval.store.manifest``) |
| ``judgments.jsonl`` | a line a judgment as soon as it is made (``eval.store.table``) |
| ``calls.jsonl`` | a line a model call of every session: the ledger |
| ``payments.jsonl`` | what was paid for every attempt (``judges.engine.budget``) |
| ``records/`` | what verdicts rest on, of judges that keep it, a file a judgment |
| ``labels.jsonl``, ``rewards.jsonl`` | what the judge is scored against (``eval.store.labels``) |
| ``goals.jsonl`` | digests of the tasks' goals (``eval.store.task_goals``) |
| ``unreadable.jsonl`` | records of the data that could not be read |
| ``run.log``, ``run.lock`` | what judging logs; which process is at work |

A run that was killed and resumed ends with the same ``judgments.jsonl`` as one that was not: what
tells of the execution alone, seconds and cache hits, stands in the ledger.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import socket
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import datetime
from hashlib import sha256
from io import FileIO
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote

import numpy as np
import orjson
from pydantic import JsonValue, ValidationError

from trajudge.annotations import store
from trajudge.annotations.model import Label, Labels, SampleFrame, primary_labels
from trajudge.eval.store.labels import (
    RewardColumns,
    RunLabels,
    read_label_columns,
    read_reward_columns,
)
from trajudge.eval.store.table import (
    PAYMENTS,
    JudgmentTable,
    KeyColumns,
    OpenedFile,
    bad_line,
    last_of_each,
    places_among,
    read_run_judgments,
    unreadable,
    whole_lines,
)
from trajudge.judges.engine.budget import read_payments
from trajudge.judges.model import Judgment
from trajudge.stats.intervals import Ints
from trajudge.trajectories.model import Record, TrajectoryKey, Unreadable
from trajudge.util.errors import UserError
from trajudge.util.files import (
    lock,
    make_folder,
    read_regular,
    read_utf8,
    remove,
    replacing,
    without_surrogates,
    write_bytes,
)
from trajudge.util.machine import collection_paused
from trajudge.util.masking import masked
from trajudge.util.terminal import count_of, one_line

MANIFEST = "manifest.json"

JUDGMENTS = "judgments.jsonl"

CALLS = "calls.jsonl"

RECORDS = "records"

LABELS = "labels.jsonl"

REWARDS = "rewards.jsonl"

UNREADABLE = "unreadable.jsonl"

COST = "cost.json"

LOG = "run.log"

LOCK = "run.lock"

_OF_CALL = ("stage", "request", "rung", "finish", "cost")

_OF_EXECUTION = frozenset(("seconds", "cached"))

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

_NO_LOCKS = {errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}

# A file system takes names of 255 bytes; a longer one ends with a hash.
_LONGEST_NAME = 200

_LOGGERS = ("trajudge.eval", "trajudge.judges", "trajudge.trajectories")


R = TypeVar("R", bound=Record)


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


def write_lines(path: Path, lines: Iterable[bytes]) -> None:
    """Write a file of a run, whole or not at all, a line at a time. Raises UserError on a full
    disk; the file then stays as it was."""
    with writing(path.parent), replacing(path, durable=False) as file:
        file.writelines(lines)


def write_manifest(folder: Path, manifest: Mapping[str, JsonValue]) -> None:
    """Write ``manifest.json``."""
    content = orjson.dumps(dict(manifest), option=orjson.OPT_INDENT_2)
    write_lines(folder / MANIFEST, [content + b"\n"])


def check_run_folder(folder: Path) -> None:
    """Raise UserError for what is not the folder of a run."""
    if not (folder / MANIFEST).is_file():
        why = f"it has no {MANIFEST}" if folder.exists() else "there is no such folder"
        raise UserError(f"{folder}: is not the folder of a run: {why}")


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read the settings that the run was made with. Raises UserError for another folder."""
    check_run_folder(folder)
    path = folder / MANIFEST
    try:
        manifest = orjson.loads(read_utf8(path))
    except OSError as error:
        raise unreadable(path, error) from error
    except orjson.JSONDecodeError as error:
        raise UserError(f"{path}: is not JSON ({error}); give the folder of a run") from error
    if not isinstance(manifest, dict):
        raise UserError(f"{path}: holds no JSON object; give the folder of a run")
    return manifest


def judgment_line(judgment: Judgment) -> bytes:
    """Encode a judgment as a line of ``judgments.jsonl``, newline included."""
    fields: dict[str, Any] = {**vars(judgment), "key": vars(judgment.key)}
    del fields["record"]
    fields["calls"] = [
        {name: value for name, value in vars(call).items() if name not in _OF_EXECUTION}
        | {"usage": call.usage and vars(call.usage)}
        for call in judgment.calls
    ]
    try:
        return orjson.dumps(fields, option=orjson.OPT_APPEND_NEWLINE)
    except orjson.JSONEncodeError:
        return orjson.dumps(without_surrogates(fields), option=orjson.OPT_APPEND_NEWLINE)


def ledger_lines(judgment: Judgment) -> Sequence[bytes]:
    """Encode one line per call of the judgment, newlines included."""
    return [
        orjson.dumps(
            {
                "key": vars(judgment.key),
                "sample": judgment.sample,
                **{name: getattr(call, name) for name in _OF_CALL},
                "seconds": call.seconds,
                "cached": call.cached,
                "usage": call.usage and vars(call.usage),
            },
            option=orjson.OPT_APPEND_NEWLINE,
        )
        for call in judgment.calls
    ]


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
    """Encode a line; nan is null."""
    key = {"benchmark": benchmark, "agent": agent, "task_id": task, "attempt": attempt}
    line = {"key": key, "official_reward": reward}
    return orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE)


def read_rewards(folder: Path) -> Mapping[TrajectoryKey, float | None]:
    """Read the official reward of every trajectory of the run; the last counts where a trajectory
    has several."""
    with collection_paused():
        return read_reward_columns(folder / REWARDS)


def write_labels(
    folder: Path, labels: Iterable[Label] | RunLabels, frame: SampleFrame | None = None
) -> None:
    """Write ``labels.jsonl``, sorted by key; ``frame`` is what they were drawn from."""
    if isinstance(labels, RunLabels):
        write_lines(folder / LABELS, chain([store.header_line(frame)], labels.sorted_lines()))
        return
    with writing(folder):
        store.write(folder / LABELS, sorted(labels, key=lambda label: label.key.order), frame)


def read_labels(folder: Path) -> Labels:
    """Read the labels that the run was scored against."""
    with collection_paused():
        if labels := read_label_columns(folder / LABELS):
            return labels
    return primary_labels(store.load(folder / LABELS))


class UnreadableRecord(Record):
    """A line of ``unreadable.jsonl``: a record whose key is not known, so that no judgment tells of
    it; that of a trajectory with a key is a skipped one."""

    source: str
    reason: str


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


def _records(path: Path, record: type[R]) -> list[R]:
    records = []
    with collection_paused():
        for line in whole_lines(path):
            try:
                records.append(record.model_validate_json(line.content))
            except ValidationError as error:
                raise bad_line(path, line.number, error) from error
    return records


def copy_run(folder: Path, target: Path) -> None:
    """Copy what judgments are scored with, and what could not be read, into another folder."""
    manifest = read_manifest(folder)
    if (start := start_of(folder, manifest)) is not None:
        manifest["started_in"] = relative_folder(start, target)
    with writing(target):
        make_folder(target, "--out")
        write_manifest(target, manifest)
        for name in (LABELS, REWARDS, UNREADABLE):
            if (folder / name).is_file():
                write_bytes(target / name, read_regular(folder / name))


def relative_folder(folder: Path, run: Path) -> str:
    """Return the way from a run's folder to another one, which holds where both are moved."""
    return Path(os.path.relpath(folder.resolve(), run.resolve())).as_posix()


def start_of(run: Path, manifest: Mapping[str, Any]) -> Path | None:
    """Return the folder that a run was started in, None where its manifest does not say so."""
    way = manifest.get("started_in")
    return (run.resolve() / way).resolve() if isinstance(way, str) else None


class JudgmentJournal:
    """The judgments of a run's folder: those from before, and those that are added. Nothing of
    these stays in memory: they are read from their file when they are asked for."""

    def __init__(self, folder: Path) -> None:
        """Open the journal. Raises UserError for an unwritable folder or a damaged line."""
        self._folder = folder
        try:
            self._files = {name: _open_to_append(folder / name) for name in (JUDGMENTS, CALLS)}
        except OSError as error:
            raise UserError(f"{folder}: cannot be written ({error.strerror})") from error
        self._lines: JudgmentTable | None = self._read()

    def __enter__(self) -> JudgmentJournal:
        return self

    def __exit__(self, *error: object) -> None:
        with writing(self._folder), ExitStack() as files:
            for file in self._files.values():
                files.callback(file.close)

    def judgments(self) -> JudgmentTable:
        """Return the judgments so far, the last of each trajectory and sample, in the order of
        their lines, with the seconds of their calls in all sessions."""
        if self._lines is None:
            self._lines = self._read()
        return self._lines.at(last_of_each(self._lines))

    def add(self, judgment: Judgment) -> None:
        """Write one judgment; it has left this process when this returns. Raises UserError on a
        full disk: nothing of the line is then in the file."""
        self._lines = None
        write_record(self._folder, judgment)
        line = judgment_line(judgment)
        with writing(self._folder):
            _append(self._files[JUDGMENTS], line)
            _append(self._files[CALLS], b"".join(ledger_lines(judgment)))

    def finish(self, keys: KeyColumns) -> JudgmentTable:
        """Rewrite ``judgments.jsonl`` in the order of ``keys`` (then by sample), and return the
        judgments with the seconds of their calls.

        Raises UserError on a full disk; the file then stays as it was.
        """
        judgments = self.judgments()
        order = _order(judgments, keys, self._folder)
        path = self._folder / JUDGMENTS
        if len(judgments) < self._count() or (np.diff(order) < 0).any():
            file, judgments = OpenedFile(path), judgments.at(order)
            lines = zip(judgments.offset.tolist(), judgments.length.tolist(), strict=True)
            write_lines(path, (file.line(*line) for line in lines))
            ends = np.cumsum(judgments.length, dtype=np.int64)
            rewritten = (OpenedFile(path),)
            judgments = replace(judgments, offset=ends - judgments.length, sources=rewritten)
        return judgments

    def _read(self) -> JudgmentTable:
        return read_run_judgments(self._folder / JUDGMENTS, self._folder / CALLS)

    def _count(self) -> int:
        return 0 if self._lines is None else len(self._lines)


def _order(judgments: JudgmentTable, keys: KeyColumns, folder: Path) -> Ints:
    """Return the rows in the order of ``keys``, then by sample. Raises UserError for a judgment of
    another trajectory."""
    mine = places_among(judgments.keys, keys)
    if (mine < 0).any():
        other = judgments.keys.key(int(np.argmin(mine)))
        raise UserError(
            f"{folder}: holds a judgment of {other}, which the data no longer has: choose another "
            "--out"
        )
    return np.lexsort((judgments.sample, mine))


def _append(file: FileIO, content: bytes) -> None:
    """Write all of it at the end, in one system call as a rule, or nothing. Raises OSError."""
    written = 0
    try:
        while written < len(content):
            written += file.write(content[written:])
    except OSError:
        file.truncate(file.seek(0, 2) - written)
        raise


def _open_to_append(path: Path) -> FileIO:
    """At the end of the last whole line: a kill may have torn the one after it. Nothing is held
    back: a buffer would be emptied after every line, which takes three system calls for one."""
    file = path.open("ab+", buffering=0)
    size = file.seek(0, 2)
    position = size
    while position:
        start = max(0, position - 65_536)
        file.seek(start)
        newline = file.read(position - start).rfind(b"\n")
        if newline >= 0:
            position = start + newline + 1
            break
        position = start
    if position != size:
        file.truncate(position)
    file.seek(0, 2)
    return file


class RunDollars(NamedTuple):
    """US dollars by request that a run spent in all of its sessions: ``noted`` of its attempts, and
    ``stated`` by its judgments, also of what was not noted here: a batch is noted by the run that
    it was made for."""

    noted: Mapping[str, float]
    stated: dict[str, float]


def paid(judgments: Iterable[Judgment]) -> dict[str, float]:
    """Dollars by request, as far as prices are known: a request that several judgments have in
    common was paid once, and one that the cache answered was not paid."""
    calls = (call for judgment in judgments for call in judgment.calls)
    return {call.request: call.cost for call in calls if call.cost and not call.cached}


def spent_in(folder: Path, judgments: Iterable[Judgment]) -> RunDollars:
    """Read what a run has spent: of judgments, and of what never came to one."""
    return RunDollars(read_payments(folder / PAYMENTS), paid(judgments))


def dollars_in_all(runs: Sequence[RunDollars]) -> float:
    """Add up what runs spent. What several noted of a request, each has paid; what none of them
    noted was paid once, whichever judgments state it."""
    noted = in_all([run.noted for run in runs])
    stated = {request: dollars for run in runs for request, dollars in run.stated.items()}
    return sum(({**stated, **noted}).values())


def in_all(parts: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Add up dollars by request."""
    dollars: dict[str, float] = defaultdict(float)
    for part in parts:
        for request, cost in part.items():
            dollars[request] += cost
    return dict(dollars)


@contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Keep other processes out of the folder, which is made if it is not there.

    The lock of a process that died is taken over. Raises UserError if another process works there,
    naming it, and if the folder cannot be written.
    """
    path = folder / LOCK
    make_folder(folder, "--out")
    with writing(folder):
        descriptor = _locked(path)
    try:
        yield
    finally:
        if descriptor is not None:
            remove(path, descriptor)


def _locked(path: Path) -> int | None:
    """Lock the file, sign it and return its descriptor; None on a file system without locks."""
    try:
        descriptor = lock(path)
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
        sys.stderr.write(
            f"warning: {path.parent}: this file system has no locks ({error.strerror}): see that "
            "no other process judges into the same folder\n"
        )
        return None
    if descriptor is None:
        raise UserError(
            f"--out {path.parent}: {_owner(path)} is at work on this run: wait for it or end it, "
            "or choose another --out"
        )
    try:
        os.ftruncate(descriptor, 0)
        os.write(descriptor, _signature())
    except OSError:
        remove(path, descriptor)
        raise
    return descriptor


def _signature() -> bytes:
    since = datetime.now().astimezone().isoformat(timespec="seconds")
    owner = {"pid": os.getpid(), "host": socket.gethostname(), "since": since}
    return orjson.dumps(owner, option=orjson.OPT_APPEND_NEWLINE)


def _owner(path: Path) -> str:
    """Who holds the lock, as the file tells."""
    try:
        told: Any = orjson.loads(read_regular(path))
        named = f"process {told['pid']} on {told['host']}, since {told['since']},"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"
    return one_line(named)


@contextmanager
def run_log(folder: Path) -> Iterator[None]:
    """Append to ``run.log`` what judging logs, and the tracebacks of users' code.

    The file is made at the first line.

    No key gets into it, whatever an error message repeats.
    """
    handler = _Handler(folder / LOG, encoding="utf-8", delay=True)
    handler.setFormatter(_OneLine("%(asctime)s %(message)s"))
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    earlier = [logger.level for logger in loggers]
    for logger in loggers:
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        for logger, level in zip(loggers, earlier, strict=True):
            logger.removeHandler(handler)
            logger.setLevel(level)
        handler.close()


class _Handler(logging.FileHandler):
    def handleError(self, record: logging.LogRecord) -> None:
        """Pass over a line that cannot be written: a full disk is told where judgments are kept."""


class _OneLine(logging.Formatter):
    """A record on one line, a traceback below it with its own lines, indented; both without control
    characters and without secrets."""

    def format(self, record: logging.LogRecord) -> str:
        # The base class would take a traceback that another handler's formatter left on the record.
        text = one_line(self._message(record))
        if record.exc_info:
            lines = self.formatException(record.exc_info).splitlines()
            text = "\n    ".join([text, *map(one_line, lines)])
        return masked(text)

    def _message(self, record: logging.LogRecord) -> str:
        record.message = record.getMessage()
        record.asctime = self.formatTime(record)
        return self.formatMessage(record)
