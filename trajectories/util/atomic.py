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
    check_is_folder(folder, option)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"{option} {folder}: cannot be written ({error.strerror}): name another folder"
        ) from error


def check_is_folder(folder: Path, option: str) -> None:
    """Raise UserError where something else has the name of the folder, or of one above it."""
    if obstacle := _obstacle(folder):
        raise UserError(f"{option} {folder}: {obstacle}: name a folder")


def _obstacle(folder: Path) -> str:
    """Say what stands where the folder, or one above it, would be: "x is a file"; else empty."""
    there = next((path for path in (folder, *folder.parents) if os.path.lexists(path)), folder)
    if not os.path.lexists(there) or there.is_dir():
        return ""
    kind = "file" if there.is_file() else "device or a pipe"
    return f"{there} is a {kind if there.exists() else 'broken link'}"


def savable(path: Path) -> Path:
    """Return the path of a file that the user named, its folders made: before the work whose result
    it is to hold. Raises UserError."""
    if obstacle := _obstacle(path.parent):
        raise UserError(f"{path}: {obstacle}, not a folder: name another file")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}: name a file that can be written") from error
    if path.is_dir():
        raise UserError(f"{path}: is a folder: name a file")
    if _is_stream(path):
        return path
    if not os.access(path.parent, os.W_OK):
        raise UserError(f"{path}: its folder cannot be written: name another file")
    return path


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
            write_bytes(path, content)
    except OSError as error:
        reason = error.strerror or error
        raise UserError(f"{path}: cannot be written ({reason}): name another place") from error
