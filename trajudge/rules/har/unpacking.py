"""Take traces out of what they are packed in: files, ``.gz``, archives, folders.

The files are untrusted. Nothing is unpacked to disk; bodies are read when a check asks for one, out
of the archive or the folder of the trace alone, and no more of them than a bound for each and for
all.
"""

from __future__ import annotations

import gzip
import lzma
import re
import zipfile
import zlib
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, Literal, NamedTuple

from trajudge.rules.har.records import MAX_BODY, Resources
from trajudge.rules.reading import MAX_BYTES, read_bytes, read_data
from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.safe_files import DataFolder, UnsafeFile, open_regular, utf8

MAX_UNPACKED = MAX_BYTES
MAX_BODIES = 256 * 2**20
"""Bytes of bodies kept beside a trace that are read in all: one small file may stand for many."""

_PLACE = re.compile(r"(?:resources/)?[\w.-]{1,200}")
_DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    OSError,
    RuntimeError,  # encrypted, or packed in a way that is not known
    ValueError,
)


class Unpacked(NamedTuple):
    """A trace as text: a HAR document, a list of entries, or Playwright's lines; and the bodies
    beside it."""

    form: Literal["har", "list", "lines"]
    texts: tuple[bytes, ...]
    resources: Resources


def unpack(path: Path) -> Unpacked:
    """Return the text of a trace, whatever it is packed in. Raises UserError."""
    if path.is_dir():
        return _from_folder(path)
    try:
        with open_regular(path) as file:
            start = file.read(4)
    except UnsafeFile as error:
        raise UserError(f"{path}: {error}: name a file that is read") from error
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}: name a readable file") from error
    if start.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _from_zip(path)
    packed = start.startswith(b"\x1f\x8b")
    data = _gunzipped(path) if packed else read_bytes(path)
    name = path.stem if packed else path.name
    return Unpacked(_form(data, name), (data,), _beside(path.parent))


def _form(data: bytes, name: str) -> Literal["har", "list", "lines"]:
    start = data[:200].lstrip()
    if start.startswith(b"["):
        return "list"
    lines = start.startswith(b'{"type"') or name.endswith(".network")
    return "lines" if lines else "har"


def _gunzipped(path: Path) -> bytes:
    try:
        with open_regular(path, MAX_BYTES) as file, gzip.open(file) as packed:
            data = _bounded(packed, MAX_UNPACKED)
    except _DAMAGED as error:
        raise UserError(f"{path}: a damaged .gz file: {error}: pack it again") from error
    if data is None:
        raise UserError(_too_large(path, path.stem))
    return utf8(data, path)


def _beside(folder: Path) -> Resources:
    """Bodies that a HAR file names stand beside it, in its own folder."""
    data = DataFolder(folder)

    def stored(place: str) -> bytes | None:
        file = folder / place
        return read_data(file, MAX_BODY, data) if data.has_file(file) else None

    return _limited(stored)


def _limited(stored: Resources) -> Resources:
    """Read only places inside of the trace, and no more in all than the bound."""
    left = MAX_BODIES

    def limited(place: str) -> bytes | None:
        nonlocal left
        if left <= 0 or not _PLACE.fullmatch(place):
            return None
        try:
            data = stored(place)
        except UserError:
            return None  # what a check asks for is unknown then
        left -= len(data or b"")
        return data

    return limited


def _from_folder(folder: Path) -> Unpacked:
    files, data = sorted(folder.glob("*.network")), DataFolder(folder)
    if not files:
        raise UserError(f"{folder}: holds no trace.network: name a Playwright trace or a HAR file")
    texts = tuple(read_bytes(file, MAX_UNPACKED, data) for file in files)
    return Unpacked("lines", texts, _beside(folder))


def _from_zip(path: Path) -> Unpacked:
    try:
        with open_regular(path, MAX_BYTES) as file, zipfile.ZipFile(file) as archive:
            names = sorted(archive.namelist())
            lines = [name for name in names if name.endswith(".network")]
            hars = [name for name in names if name.endswith(".har")]
            if not lines and len(hars) != 1:
                held = "several .har files" if hars else "no trace.network and no .har file"
                raise UserError(f"{path}: holds {held}: name a Playwright trace or a HAR file")
            texts = tuple(_member(archive, name, path) for name in lines or hars)
    except UnsafeFile as error:
        raise UserError(f"{path}: {error}: name a smaller file") from error
    except _DAMAGED as error:
        raise UserError(f"{path}: a damaged .zip file: {error}: record it again") from error
    folder = "" if lines else str(PurePosixPath(hars[0]).parent).removeprefix(".")
    form: Literal["har", "list", "lines"] = "lines" if lines else _form(texts[0], hars[0])
    return Unpacked(form, texts, _limited(_stored_in(path, folder)))


def _member(archive: zipfile.ZipFile, name: str, path: Path) -> bytes:
    with archive.open(name) as file:
        data = _bounded(file, MAX_UNPACKED)
    if data is None:
        raise UserError(_too_large(path, name))
    return utf8(data, path)


def _too_large(path: Path, name: str) -> str:
    return f"{path}: {name} unpacks to more than {MAX_UNPACKED / 2**20:g} MiB: trim the trace"


def _bounded(file: BinaryIO | Any, limit: int) -> bytes | None:
    data: bytes = file.read(limit + 1)
    return data if len(data) <= limit else None


def _stored_in(path: Path, folder: str) -> Resources:
    """Bodies are read when a check asks for one: most are never asked for."""

    def stored(place: str) -> bytes | None:
        name = f"{folder}/{place}" if folder else place
        try:
            with (
                open_regular(path, MAX_BYTES) as packed,
                zipfile.ZipFile(packed) as archive,
                archive.open(name) as file,
            ):
                return _bounded(file, MAX_BODY)
        except (KeyError, *_DAMAGED):
            return None

    return stored
