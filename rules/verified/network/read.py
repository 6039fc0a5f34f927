"""Traces from HAR files, Playwright traces and plain lists; typed, partial decoding.

Of a HAR file of 25 MB most is the text of pages. It is passed over, not decoded: msgspec reads the
method, address and status of each event, and keeps the rest as it stands until a check asks.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
from msgspec import Struct

from trajudge.rules.reading import read_bytes
from trajudge.rules.verified.network.events import MAX_BODY, Entry, Event, Resources, Trace
from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.safe_files import DataFolder, UnsafeFile, open_regular

MAX_NETWORK_BYTES = 512 * 2**20
_RESOURCE = re.compile(r"[\w.-]{1,200}")


class _Log(Struct):
    entries: tuple[Entry, ...]


class _Har(Struct):
    log: _Log


class _Line(Struct):
    type: str = ""
    snapshot: msgspec.Raw = msgspec.Raw(b"null")


_HAR = msgspec.json.Decoder(_Har)
_LINE = msgspec.json.Decoder(_Line)
_ENTRY = msgspec.json.Decoder(Entry)
_LIST = msgspec.json.Decoder(list[msgspec.Raw])


def load_trace(path: Path) -> Trace:
    """Return the trace in a HAR file (.har, .json), a Playwright trace (.zip, its folder, its
    ``trace.network``) or a JSON list of either's entries.

    Raises UserError, one sentence, for a file that is absent, cut off, malformed or none of these.
    """
    if path.is_dir():
        return _from_folder(path)
    if _is_zip(path):
        return _from_zip(path)
    data = read_bytes(path)
    start = data[:200].lstrip()
    try:
        if start.startswith(b"["):
            return trace_of(_entries(_LIST.decode(data)), str(path))
        if start.startswith(b'{"type"') or path.suffix == ".network":
            return trace_of(_snapshots(data.splitlines(), path), str(path))
        return trace_of(_HAR.decode(data).log.entries, str(path))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _malformed(path, error, len(data)) from error


def _is_zip(path: Path) -> bool:
    try:
        with open_regular(path) as file:
            return zipfile.is_zipfile(file)
    except (OSError, UnsafeFile):
        return False  # whoever reads it says what is wrong


def _malformed(path: Path, error: Exception, size: int) -> UserError:
    if "truncated" in str(error):
        return UserError(
            f"{path}: cut off after {size} bytes: record the trace again and close the browser "
            "context before reading it"
        )
    return UserError(f"{path}: no HAR file or Playwright trace: {error or 'nested too deeply'}")


def trace_of(
    entries: Iterable[Entry], source: str = "trace", resources: Resources | None = None
) -> Trace:
    """Return the trace of decoded entries."""
    return Trace(tuple(Event(entry, resources) for entry in entries), source)


def trace_of_list(items: Iterable[dict[str, Any]], source: str = "trace") -> Trace:
    """Return the trace of a plain list of HAR entries or of Playwright's resource snapshots.

    Raises UserError for an item that is neither.
    """
    try:
        return trace_of(_entries(msgspec.Raw(msgspec.json.encode(item)) for item in items), source)
    except (msgspec.DecodeError, RecursionError, TypeError, ValueError) as error:
        raise UserError(f"{source}: an item is no HAR entry: {error}") from error


def _entries(items: Iterable[msgspec.Raw]) -> Iterator[Entry]:
    for item in items:
        line = _LINE.decode(item)
        if line.type == "resource-snapshot":
            yield _ENTRY.decode(line.snapshot)
        elif not line.type:
            yield _ENTRY.decode(item)


def _snapshots(lines: Iterable[bytes], source: Path) -> Iterator[Entry]:
    for line in lines:
        if line.strip():
            yield from _entries((msgspec.Raw(line),))


def _from_folder(folder: Path) -> Trace:
    files, data = sorted(folder.glob("*.network")), DataFolder(folder)
    if not files:
        raise UserError(f"{folder}: holds no trace.network: name a Playwright trace or a HAR file")

    def stored(name: str) -> bytes | None:
        file = folder / "resources" / name
        if not _RESOURCE.fullmatch(name) or not data.has_file(file):
            return None
        return read_bytes(file, MAX_BODY)

    try:
        entries = [entry for file in files for entry in _snapshots(_lines(file, data), file)]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _malformed(folder, error, 0) from error
    return trace_of(entries, str(folder), stored)


def _lines(file: Path, data: DataFolder) -> list[bytes]:
    return read_bytes(file, MAX_NETWORK_BYTES, data).splitlines()


def _from_zip(path: Path) -> Trace:
    try:
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if name.endswith(".network")]
            if not names:
                raise UserError(f"{path}: holds no trace.network: name a Playwright trace")
            lines = [line for name in sorted(names) for line in _unpacked_lines(archive, name)]
        return trace_of(list(_snapshots(lines, path)), str(path), _stored_in(path))
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError) as error:
        raise UserError(f"{path}: a damaged Playwright trace: {error}: record it again") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _malformed(path, error, path.stat().st_size) from error


def _unpacked_lines(archive: zipfile.ZipFile, name: str) -> list[bytes]:
    with archive.open(name) as file:
        data = _bounded(file, MAX_NETWORK_BYTES)
    if data is None:
        raise UserError(
            f"{archive.filename}: {name} unpacks to more than {MAX_NETWORK_BYTES} bytes"
        )
    return data.splitlines()


def _bounded(file: BinaryIO | Any, limit: int) -> bytes | None:
    data: bytes = file.read(limit + 1)
    return data if len(data) <= limit else None


def _stored_in(path: Path) -> Resources:
    """Bodies are read when a check asks for one: most are never asked for."""

    def stored(name: str) -> bytes | None:
        try:
            with zipfile.ZipFile(path) as archive, archive.open(f"resources/{name}") as file:
                return _bounded(file, MAX_BODY)
        except (KeyError, zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError):
            return None

    return stored
