"""Logs of inspect_ai as files: what a log says of itself, and its samples one at a time.

An ``.eval`` file is a zip archive: ``header.json`` (a running or crashed log has only
``_journal/start.json``) and one member a sample. A ``.json`` log holds the same in one object.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

from trajudge.trajectories.loaders.common import detection
from trajudge.trajectories.loaders.common.archives import Archive, ArchiveLimits, open_archive
from trajudge.trajectories.loaders.common.lazy_json import NULL, check_structures
from trajudge.trajectories.loaders.files import Damaged, decode, readable, reason
from trajudge.trajectories.util import python_json
from trajudge.trajectories.util.safe_files import DataFolder, UnsafeFile

T = TypeVar("T")
# A log is read member by member: its size as a whole is bounded by that of its file alone. A sample
# of 100 screenshots takes 100 MiB.
LIMITS = ArchiveLimits(members=100_000, member=128 * 2**20, grows=True)
_HEADERS = ("header.json", "_journal/start.json")
_SAMPLES = "samples/"
_JSON_MARK = re.compile(rb'^\s*\{\s*"version"\s*:\s*\d+\s*,(?s:.{0,200})"eval"\s*:\s*\{')


class Sample(msgspec.Struct):
    """One sample of one epoch; ``events`` repeat all of it and are passed over. What may be large
    is decoded when it is read."""

    id: Any
    epoch: Any = 1
    input: msgspec.Raw = NULL
    choices: msgspec.Raw = NULL
    messages: msgspec.Raw = NULL
    output: msgspec.Raw = NULL
    scores: msgspec.Raw = NULL
    attachments: msgspec.Raw = NULL
    error: Any = None
    limit: Any = None
    model_usage: Any = None
    total_time: Any = None
    working_time: Any = None

    def value(self, name: str) -> Any:
        """Decode a field that may be large. Raises Damaged, ValueError, RecursionError."""
        content = bytes(getattr(self, name))
        check_structures(content)
        return python_json.decode(content, _ANY)


class LogHeader(msgspec.Struct):
    """What a log says of the evaluation: ``eval`` and the ``plan`` of solvers."""

    eval: dict[str, Any]
    plan: Any = None


class _JsonLog(LogHeader):
    samples: list[msgspec.Raw] | None = None


class EvalLog(NamedTuple):
    """A log's file and header."""

    file: Path
    header: LogHeader

    def field(self, name: str) -> str:
        """Return a text of ``eval``, empty if there is none."""
        value = self.header.eval.get(name)
        return readable(value) if isinstance(value, str) else ""


_ANY: msgspec.json.Decoder[Any] = msgspec.json.Decoder()
_SAMPLE = msgspec.json.Decoder(Sample)
_HEADER = msgspec.json.Decoder(LogHeader)


def is_log(file: Path, root: DataFolder) -> bool:
    """Tell whether the file is a log: an archive with a header, or JSON that begins like one."""
    if file.suffix == ".json":
        return _JSON_MARK.match(detection.head(file)) is not None
    try:
        with open_archive(file, root, LIMITS) as archive:
            return any(name in archive for name in _HEADERS)
    except (Damaged, UnsafeFile, OSError):
        return False


def read_header(file: Path, root: DataFolder) -> EvalLog:
    """Read what a log says of the evaluation. Raises Damaged."""
    if file.suffix == ".json":
        return EvalLog(file, decode(root, file, LogHeader))
    try:
        with open_archive(file, root, LIMITS) as archive:
            for name in _HEADERS:
                if name in archive:
                    return EvalLog(file, _decoded(archive.read(name), _HEADER, name))
    except UnsafeFile as error:
        raise Damaged(str(error)) from None
    except OSError as error:
        raise Damaged(f"{readable(file.name)} cannot be read: {error.strerror}") from None
    raise Damaged(f"{readable(file.name)} has neither {' nor '.join(_HEADERS)}")


def read_samples(log: EvalLog, root: DataFolder) -> Iterator[Sample | Damaged]:
    """Yield the samples of a log, one in memory at a time; Damaged for one that cannot be read."""
    if log.file.suffix == ".json":
        try:
            raw = decode(root, log.file, _JsonLog).samples or []
        except Damaged as error:
            yield error
            return
        for number, one in enumerate(raw, 1):
            try:
                yield _decoded(bytes(one), _SAMPLE, f"sample {number}")
            except Damaged as error:
                yield error
        return
    try:
        with open_archive(log.file, root, LIMITS) as archive:
            for name in filter(_is_sample, archive):
                yield _member(archive, name)
    except (Damaged, UnsafeFile, OSError) as error:
        yield Damaged(reason(error))


def _is_sample(name: str) -> bool:
    return name.startswith(_SAMPLES) and name.endswith(".json")


def _member(archive: Archive, name: str) -> Sample | Damaged:
    try:
        return _decoded(archive.read(name), _SAMPLE, readable(name))
    except Damaged as error:
        return error


def _decoded(content: bytes, decoder: msgspec.json.Decoder[T], place: str) -> T:
    """Decode JSON. Raises Damaged."""
    try:
        return python_json.decode(content, decoder)
    except (ValueError, RecursionError) as error:
        raise Damaged(f"{place} is not the JSON expected: {reason(error)}") from None
