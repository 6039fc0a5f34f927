"""Files that appear under their name only when they are whole."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedWriter
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO, cast

from trajudge.trajectories.util.errors import UserError

BUFFER = 2**17  # bytes: of Python's own buffer, two lines of a judgment are too many


@contextmanager
def replacing(target: Path, *, durable: bool = True) -> Iterator[IO[bytes]]:
    """Open a temporary file beside ``target`` that takes its name if the block succeeds, with the
    permissions of an ordinary new file; ``durable``: also after the machine has lost its power.
    Raises OSError."""
    with NamedTemporaryFile(
        "wb", BUFFER, dir=target.parent, prefix=f".{target.name}.", delete=False
    ) as file:
        temporary = Path(file.name)
        try:
            yield cast(BufferedWriter, file)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    umask = os.umask(0)
    os.umask(umask)
    try:
        temporary.chmod(0o666 & ~umask)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _is_stream(path: Path) -> bool:
    """Tell whether the path is a device, a pipe, or what ``/dev/stdout`` stands for."""
    if not path.exists() or path.is_dir():
        return False
    return not path.is_file() or path.absolute().parts[1:2] in {("dev",), ("proc",)}


def write_bytes(path: Path, content: bytes | bytearray) -> None:
    """Write a file, replacing an earlier one; a killed process leaves the earlier one. Raises
    OSError."""
    with replacing(path, durable=False) as file:
        file.write(content)


def make_folder(folder: Path, option: str) -> None:
    """Make the folder that the user named with ``option``, and those above it. Raises UserError."""
    check_folder(folder, option)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"{option} {folder}: cannot be written ({error.strerror}): name another folder"
        ) from error


def check_folder(folder: Path, option: str) -> None:
    """Look at where a folder that the user named with ``option`` is to be written, before the work
    whose results it is to hold. Raises UserError."""
    if obstacle := _obstacle(folder):
        raise UserError(f"{option} {folder}: {obstacle}: name a folder")
    _check_writable(folder, f"{option} {folder}", "name another folder")


def check_file(path: Path, option: str) -> None:
    """Look at where a file is to be written, as ``check_folder`` does."""
    named = f"{option} {path}"
    if obstacle := _obstacle(path.parent):
        raise UserError(f"{named}: {obstacle}, not a folder: name another file")
    if path.is_dir():
        raise UserError(f"{named}: is a folder: name a file")
    if not _is_stream(path):
        _check_writable(path.parent, named, "name another file")


def _obstacle(folder: Path) -> str:
    """Say what stands where the folder, or one above it, would be: "x is a file"; else empty."""
    there = _lowest(folder)
    if not os.path.lexists(there) or there.is_dir():
        return ""
    kind = "file" if there.is_file() else "device or a pipe"
    return f"{there} is a {kind if there.exists() else 'broken link'}"


def _check_writable(folder: Path, named: str, remedy: str) -> None:
    there = _lowest(folder)
    if there.is_dir() and not os.access(there, os.W_OK | os.X_OK):
        raise UserError(f"{named}: the folder {there} cannot be written: {remedy}")


def _lowest(folder: Path) -> Path:
    """Find what there is of the folder: itself, or the first above it."""
    return next((path for path in (folder, *folder.parents) if os.path.lexists(path)), folder)


def save_bytes(path: Path, content: bytes) -> None:
    """Write a file that the user named, its folders made; a device or a pipe is written to, where
    ``write_bytes`` would put a file in its place. Raises UserError."""
    if is_stream := _is_stream(path):
        sys.stdout.flush()  # what was printed stands before it
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if is_stream:
            path.write_bytes(content)
        else:
            write_bytes(path.resolve(), content)  # where a link points, not in its place
    except OSError as error:
        reason = error.strerror or error
        raise UserError(f"{path}: cannot be written ({reason}): name another place") from error
