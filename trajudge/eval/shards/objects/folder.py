"""Objects as files of a folder: of one machine, or of a file system that several machines mount."""

from __future__ import annotations

import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from trajudge.eval.shards.objects.store import StoredObject
from trajudge.trajectories.util.atomic import write_bytes
from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.safe_files import read_regular

_GUARD = ".guard"


class FolderStore:
    """An object is a file that appears whole; its version is the hash of its content.

    A change takes a lock of the folder (``flock``), because a file system has no compare-and-swap.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def address(self) -> str:
        return str(self._folder)

    def read(self, name: str) -> StoredObject | None:
        with self._explained(name):
            try:
                content = read_regular(self._path(name))
            except FileNotFoundError:
                return None
        return StoredObject(content, _version(content))

    def create(self, name: str, content: bytes) -> bool:
        path = self._path(name)
        with self._explained(name):
            path.parent.mkdir(parents=True, exist_ok=True)
            whole = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
            try:
                whole.write_bytes(content)
                os.link(whole, path)
            except FileExistsError:
                return False
            finally:
                whole.unlink(missing_ok=True)
        return True

    def replace(self, name: str, content: bytes, version: str) -> bool:
        with self._explained(name), self._guarded():
            stored = self.read(name)
            if stored is None or stored.version != version:
                return False
            write_bytes(self._path(name), content)
        return True

    def write(self, name: str, content: bytes) -> None:
        path = self._path(name)
        with self._explained(name):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_bytes(path, content)

    def names(self, prefix: str) -> Iterator[str]:
        with self._explained(prefix):
            found = (self._folder / prefix).rglob("*") if (self._folder / prefix).is_dir() else ()
            files = [path for path in found if path.is_file() and not path.name.startswith(".")]
        yield from sorted(path.relative_to(self._folder).as_posix() for path in files)

    def _path(self, name: str) -> Path:
        parts = name.split("/")
        if any(part in ("", ".", "..") for part in parts):
            raise UserError(f"{self.address}: {name!r} is no name of an object")
        return self._folder.joinpath(*parts)

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        with (self._folder / _GUARD).open("a") as guard:
            fcntl.flock(guard, fcntl.LOCK_EX)
            yield

    @contextmanager
    def _explained(self, name: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise UserError(
                f"{self.address}: {name} cannot be read or written ({error.strerror}): name a "
                "folder with room that this user may write"
            ) from error


def _version(content: bytes) -> str:
    return sha256(content).hexdigest()
