"""The project's annotation format: JSON Lines.

The first line is ``{"format": "trajudge-annotations", "version": 1}``; for drawn labels it has the
SampleFrame as ``frame``. Each further line is a Label.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from pathlib import Path

import orjson
from pydantic import ValidationError

from trajudge.annotations.model import Label, SampleFrame
from trajudge.trajectories.model import compacted, defaults_of
from trajudge.util.errors import UserError
from trajudge.util.files import UnsafeFile, open_regular, read_regular, utf8, write_bytes
from trajudge.util.machine import collection_paused
from trajudge.util.validation import first_error

KIND = "trajudge"
VERSION = 1

_FORMAT = "trajudge-annotations"
_MAX_BYTES = 2**30
_MAX_HEADER = 2**16

# What few sources of labels fill: lines leave it out at its default.
_DEFAULTS = defaults_of(Label)
_MORE_FIELDS = [*_DEFAULTS][[*_DEFAULTS].index("split") + 1 :]


def detect(path: Path) -> bool:
    """Return True if ``path`` is a file that begins with this format's header."""
    try:
        with open_regular(path) as file:
            return _FORMAT.encode() in file.readline(200)
    except (OSError, UnsafeFile):
        return False


def write(path: Path, annotations: Iterable[Label], frame: SampleFrame | None = None) -> None:
    """Write all annotations in the given order; the file is replaced atomically."""
    lines = (annotation_line(annotation) for annotation in annotations)
    write_bytes(path, b"".join((header_line(frame), *lines)))


def header_line(frame: SampleFrame | None = None) -> bytes:
    """Return the first line of a file, newline included."""
    header = {"format": _FORMAT, "version": VERSION}
    if frame is not None:
        header["frame"] = frame.model_dump()
    return orjson.dumps(header, option=orjson.OPT_APPEND_NEWLINE)


def read_frame(path: Path) -> SampleFrame | None:
    """Read the frame in a file's first line; None if it has none, or is of another format.
    Raises UserError for an invalid one."""
    try:
        with open_regular(path) as file:
            header = orjson.loads(file.readline(_MAX_HEADER))
    except (OSError, UnsafeFile, orjson.JSONDecodeError):
        return None
    frame = header.get("frame") if isinstance(header, dict) else None
    if frame is None or header.get("format") != _FORMAT:
        return None
    try:
        return SampleFrame.model_validate(frame)
    except ValidationError as error:
        raise UserError(f"{path}, line 1: {first_error(error, 'the frame')}") from error


def annotation_line(annotation: Label) -> bytes:
    """Encode an annotation as a line of the file, newline included."""
    absent = {name for name in _MORE_FIELDS if getattr(annotation, name) == _DEFAULTS[name]}
    return annotation.model_dump_json(exclude=absent).encode() + b"\n"


def load(path: Path) -> list[Label]:
    """Read a file of ``write``. Raises UserError with file and line."""
    try:
        lines = io.BytesIO(utf8(read_regular(path, _MAX_BYTES), path))
    except UnsafeFile as error:
        raise UserError(f"{path}: {error}; give the path of a file of annotations") from error
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}); give a path to it") from error
    _check_header(path, lines.readline())
    with collection_paused():
        return list(_annotations(path, lines))


def _annotations(path: Path, lines: Iterable[bytes]) -> Iterator[Label]:
    for number, line in enumerate(lines, start=2):
        if not line.strip():  # editors leave one at the end
            continue
        try:
            annotation = compacted(Label.model_validate_json(line))
        except ValidationError as error:
            why = first_error(error, "the line")
            raise UserError(f"{path}, line {number}: {why}") from error
        compacted(annotation.key)
        yield annotation


def is_header(line: bytes) -> bool:
    """Return True if the line is the header of a supported file."""
    try:
        _check_header(Path(), line)
    except UserError:
        return False
    return True


def _check_header(path: Path, line: bytes) -> None:
    try:
        header = orjson.loads(line)
    except orjson.JSONDecodeError:
        header = None
    if not isinstance(header, dict) or header.get("format") != _FORMAT:
        raise UserError(
            f"{path}, line 1: is not the header of a {_FORMAT} file: begin it with the line  "
            f"{header_line().decode().strip()}"
        )
    if header.get("version") != VERSION:
        raise UserError(
            f"{path}: is of version {header.get('version')!r}, and this trajudge reads version "
            f"{VERSION}: upgrade trajudge"
        )
