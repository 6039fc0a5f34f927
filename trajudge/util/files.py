"""Files: read untrusted ones safely, write atomically, lock.

Files of others are read only by the functions of the first part: regular files, with a size limit.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import sys
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from io import BufferedWriter
from pathlib import Path
from tempfile import NamedTemporaryFile
from threading import Lock
from typing import IO, Any, BinaryIO, cast

from trajudge.util.errors import UserError

# Should a pipe take a file's place after it was looked at, opening must not wait for a writer.
_READING = (
    os.O_RDONLY
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)

MAX_WHOLE = 2 * 2**30

"""Bytes of a file that is read as a whole, where its reader sets no other limit."""

_LARGE = 2**28  # bytes from which a file is looked at for holes

MARK_BYTES = len(BOM_UTF8)  # the longest mark that tells an encoding

_OUTSIDE = "leads out of the data folder, so it is not read"


class UnsafeFile(OSError, ValueError):
    """A file that must not be read. The message names it without its folder; ``strerror`` is the
    reason and ``filename`` the path, as in an OSError."""

    def __init__(self, path: str | Path, why: str) -> None:
        super().__init__(errno.EINVAL, why, os.fspath(path))

    def __str__(self) -> str:
        return f"{_readable(Path(self.filename).name)} {self.strerror}"

    def __reduce__(self) -> tuple[type[UnsafeFile], tuple[str, str]]:
        """Pickle it by its own arguments, for worker processes."""
        return UnsafeFile, (str(self.filename), str(self.strerror))


class NotUtf8(UserError, ValueError):
    """A text that is not UTF-8: a user error, or for one trajectory's file a reason to skip it."""


def without_surrogates(value: Any) -> Any:
    """``value`` (JSON-like) with lone surrogates as U+FFFD; a pair becomes its character."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {without_surrogates(k): without_surrogates(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [without_surrogates(entry) for entry in value]
    return value


def utf8(content: bytes, file: Path) -> bytes:
    """Return a text's bytes, or their beginning, without a byte-order mark. Raises NotUtf8 for
    UTF-16."""
    if content.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        raise NotUtf8(f"{_readable(file)} is UTF-16: save it as UTF-8")
    return content.removeprefix(BOM_UTF8)


def text_of(content: bytes, file: Path) -> str:
    """Decode a text without its byte-order mark. Raises NotUtf8."""
    try:
        return utf8(content, file).decode()
    except UnicodeDecodeError as error:
        wrong = f"byte {error.object[error.start]:#04x} at {error.start:,}"
        fix = "name a file of text" if b"\0" in content else "save it as UTF-8"
        raise NotUtf8(f"{_readable(file)} is not UTF-8 ({wrong}): {fix}") from None


def read_utf8(file: Path, max_bytes: int | None = None) -> bytes:
    """Read the bytes of a text. Raises NotUtf8, UnsafeFile, OSError."""
    return utf8(read_regular(file, max_bytes), file)


def read_text(file: Path, max_bytes: int | None = None) -> str:
    """Read a text. Raises NotUtf8, UnsafeFile, OSError."""
    return text_of(read_regular(file, max_bytes), file)


def special_kind(path: str | Path) -> str:
    """Name what is neither a regular file nor a folder: "a pipe", "a device" or "a socket"; ""
    for files, folders and what does not exist. Nothing is opened."""
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116 - many times quicker
    except (OSError, ValueError):
        return ""
    return "" if stat.S_ISDIR(mode) else _kind(mode)


def check_regular(path: str | Path) -> None:
    """Refuse a path that is a pipe or a device before a library (SQLite) opens it. Raises
    UnsafeFile."""
    if kind := special_kind(path):
        raise UnsafeFile(path, f"is not a file ({kind})")


_BUFFER = 2**16  # bytes, of which reading long lines takes half the CPU that 2**13 take


def open_regular(
    path: str | Path, max_bytes: int | None = None, *, sparse: bool = True
) -> BinaryIO:
    """Open the file for reading. Raises UnsafeFile for a file that is not regular or is larger
    than ``max_bytes``, and without ``sparse`` for a large one with holes, of which a reader of
    lines would never reach the end. Raises OSError."""
    _check(path, os.stat(path), max_bytes)  # noqa: PTH116 - many times quicker
    descriptor = os.open(path, _READING)
    try:
        status = os.fstat(descriptor)
        _check(path, status, max_bytes)
        if not sparse and status.st_size > _LARGE and _has_hole(descriptor, status.st_size):
            raise UnsafeFile(
                path, f"is a sparse file ({status.st_size:,} bytes, most of them zero)"
            )
        return open(descriptor, "rb", _BUFFER)  # noqa: PTH123 - the caller closes it
    except BaseException:
        os.close(descriptor)
        raise


def read_regular(path: str | Path, max_bytes: int | None = None) -> bytes:
    """Read the bytes of the file, of at most 2 GiB by default. Raises UnsafeFile as
    ``open_regular`` does, OSError."""
    limit = MAX_WHOLE if max_bytes is None else max_bytes
    with open_regular(path, limit) as file:
        return _whole(file, path, limit)


class DataFolder:
    """A folder of data: files inside may be read, link targets outside may not."""

    def __init__(self, path: Path) -> None:
        self.path = path
        root = os.path.realpath(path)
        self._roots = tuple(_closed(place) for place in (root, *_blobs(root)))
        self._known: dict[str, bool] = {}

    def holds(self, path: str | Path) -> bool:
        """Return True if the path, with links resolved, is inside."""
        name = os.fspath(path)
        if os.path.islink(name):  # noqa: PTH114 - as below
            return self._inside(os.path.realpath(name))
        return self.holds_folder(os.path.dirname(name))  # noqa: PTH120 - hundreds of names a run

    def holds_folder(self, folder: str) -> bool:
        """Return True if the folder, with links resolved, is inside; results are cached."""
        known = self._known.get(folder)
        if known is None:
            known = self._known[folder] = self._inside(os.path.realpath(folder))
        return known

    def open(self, path: Path, max_bytes: int | None = None) -> BinaryIO:
        """Open the file for reading. Raises UnsafeFile, also for one outside, and OSError."""
        if not self.holds(path):
            raise UnsafeFile(path, _OUTSIDE)
        return open_regular(path, max_bytes)

    def read(self, path: Path, max_bytes: int) -> bytes:
        """Read the bytes of the file. Raises UnsafeFile, OSError."""
        with self.open(path, max_bytes) as file:
            return _whole(file, path, max_bytes)

    def has_file(self, path: Path) -> bool:
        """Return True if the path is a regular file inside; nothing is opened."""
        return path.is_file() and self.holds(path)

    def _inside(self, real: str) -> bool:
        return _closed(real).startswith(self._roots)


def _whole(file: BinaryIO, path: str | Path, max_bytes: int) -> bytes:
    # Room for what the file holds now, not for what it may: that takes longer than the reading.
    size = min(os.fstat(file.fileno()).st_size, max_bytes)
    content = file.read(size + 1)
    if len(content) > size:  # it grew since, or does not tell its size
        content += file.read(max_bytes + 1 - len(content))
    if len(content) > max_bytes:
        raise UnsafeFile(path, _too_large(len(content), max_bytes))
    return content


def _check(path: str | Path, status: os.stat_result, max_bytes: int | None) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise UnsafeFile(path, f"is not a file ({_kind(status.st_mode)})")
    if max_bytes is not None and status.st_size > max_bytes:
        raise UnsafeFile(path, _too_large(status.st_size, max_bytes))


def _kind(mode: int) -> str:
    kinds = {
        stat.S_IFREG: "",
        stat.S_IFDIR: "a folder",
        stat.S_IFIFO: "a pipe",
        stat.S_IFSOCK: "a socket",
    }
    return kinds.get(stat.S_IFMT(mode), "a device")


def _has_hole(descriptor: int, size: int) -> bool:
    """Return True if the file system stores no bytes for a part of the file."""
    try:
        hole = os.lseek(descriptor, 0, os.SEEK_HOLE)
        os.lseek(descriptor, 0, os.SEEK_SET)
    except (AttributeError, OSError):  # not every system knows of holes
        return False
    return hole < size


def _too_large(size: int, max_bytes: int) -> str:
    return f"is larger than {max_bytes / 2**20:g} MiB ({size:,} bytes)"


def _blobs(root: str) -> list[str]:
    """Return the folder of the files of a Hugging Face snapshot that ``root`` is, or is in."""
    folder = Path(root)
    for inner, outer in zip((folder, *folder.parents), folder.parents, strict=False):
        if outer.name == "snapshots" and inner != outer and (outer.parent / "blobs").is_dir():
            return [str(outer.parent / "blobs")]
    return []


def _closed(folder: str) -> str:
    """Return the path with a separator at its end, so that ``/data2`` is not inside ``/data``."""
    return folder if folder.endswith(os.sep) else folder + os.sep


def _readable(path: str | Path) -> str:
    return os.fspath(path).encode("utf-8", "replace").decode()


_CHECKSUM_BYTES = 32  # before the content of a file of a cache

BUFFER = 2**17  # bytes: of Python's own buffer, two lines of a judgment are too many


# The umask can only be read by setting it, for all threads.
_UMASK_CHANGED = Lock()


@contextmanager
def replacing(target: Path, *, durable: bool = True) -> Iterator[IO[bytes]]:
    """Open a temporary file in the folder of ``target`` that replaces it if the block succeeds,
    with the permissions of a new file; ``durable``: also after a power failure. Raises OSError."""
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
    with _UMASK_CHANGED:
        umask = os.umask(0)
        os.umask(umask)
    try:
        temporary.chmod(0o666 & ~umask)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _is_stream(path: Path) -> bool:
    """Return True if the path is a device, a pipe, or the target of ``/dev/stdout``."""
    if not path.exists() or path.is_dir():
        return False
    return not path.is_file() or path.absolute().parts[1:2] in {("dev",), ("proc",)}


def write_bytes(path: Path, content: bytes | bytearray) -> None:
    """Write a file atomically; a killed process leaves the earlier one. Raises OSError."""
    with replacing(path, durable=False) as file:
        file.write(content)


class FileCache:
    """Contents by name, kept in a folder that threads and processes share.

    Whenever a sixteenth of ``max_bytes`` was written, those that were not used for longest are
    removed until all take at most ``max_bytes``. A folder that cannot be read or written keeps
    nothing, which is no error.
    """

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self._folder, self._max_bytes = folder, max_bytes
        self._unchecked = max_bytes  # bytes written since the folder's size was looked at

    def get(self, name: str) -> bytes | None:
        """Return what was put under this name; None where there is nothing, or nothing whole."""
        path = self._folder / name
        try:
            entry = read_regular(path)
        except OSError:
            return None
        content = entry[_CHECKSUM_BYTES:]
        if sha256(content).digest() != entry[:_CHECKSUM_BYTES]:
            return None
        with suppress(OSError):
            os.utime(path)
        return content

    def put(self, name: str, content: bytes) -> None:
        """Keep the content under this name, in place of an earlier one."""
        with suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            write_bytes(self._folder / name, sha256(content).digest() + content)
            self._unchecked += _CHECKSUM_BYTES + len(content)
            if self._unchecked >= self._max_bytes // 16:
                self._unchecked = 0
                self._remove_oldest()

    def _remove_oldest(self) -> None:
        files = []
        for path in self._folder.iterdir():
            with suppress(FileNotFoundError):  # another process removed it
                files.append((path, path.stat()))
        total = sum(status.st_size for _, status in files)
        for path, status in sorted(files, key=lambda entry: entry[1].st_mtime_ns):
            if total <= self._max_bytes:
                return
            path.unlink(missing_ok=True)
            total -= status.st_size


def make_folder(folder: Path, option: str) -> None:
    """Create the folder given by ``option``, with its parents. Raises UserError."""
    check_folder(folder, option)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"{option} {folder}: cannot be written ({error.strerror}): name another folder"
        ) from error


def check_folder(folder: Path, option: str) -> None:
    """Check that the folder given by ``option`` can be written, before the work for it begins.
    Raises UserError."""
    if obstacle := _obstacle(folder):
        raise UserError(f"{option} {folder}: {obstacle}: name a folder")
    _check_writable(folder, f"{option} {folder}", "name another folder")


def check_file(path: Path, option: str) -> None:
    """Check that a file can be written, as ``check_folder`` does."""
    named = f"{option} {path}"
    if obstacle := _obstacle(path.parent):
        raise UserError(f"{named}: {obstacle}, not a folder: name another file")
    if path.is_dir():
        raise UserError(f"{named}: is a folder: name a file")
    if not _is_stream(path):
        _check_writable(path.parent, named, "name another file")


def _obstacle(folder: Path) -> str:
    """Return what prevents the creation of a folder, such as "x is a file", or ""."""
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
    """Return the lowest existing folder of a path."""
    return next((path for path in (folder, *folder.parents) if os.path.lexists(path)), folder)


def save_bytes(path: Path, content: bytes) -> None:
    """Write a file that the user named, and create its folders; a device or a pipe is written to
    instead of being replaced. Raises UserError."""
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


def lock(path: Path, *, create: bool = True) -> int | None:
    """Lock the file at ``path`` and return its descriptor; None if a living process has locked it.

    Without ``create`` also None if there is no such file. Writes append. ``remove`` it, or close
    the descriptor, to release the lock. Raises OSError.
    """
    flags = os.O_RDWR | os.O_APPEND | (os.O_CREAT if create else 0)
    while True:
        try:
            descriptor = os.open(path, flags, 0o644)
        except FileNotFoundError:
            if create:
                raise
            return None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        except OSError:
            os.close(descriptor)
            raise
        if _is_at(path, descriptor):
            return descriptor
        os.close(descriptor)  # its owner removed it in between: what is there now counts


def is_locked(path: Path) -> bool:
    """Return True if a living process has locked the file. Raises OSError."""
    try:
        descriptor = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def remove(path: Path, descriptor: int) -> None:
    """Remove a file that this process has locked, then release the lock."""
    path.unlink(missing_ok=True)
    os.close(descriptor)


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        there = path.stat()
    except FileNotFoundError:
        return False
    mine = os.fstat(descriptor)
    return (there.st_dev, there.st_ino) == (mine.st_dev, mine.st_ino)


def refuse_repeated(folders: Iterable[Path]) -> None:
    """Raise UserError for a folder that is given more than once, in any spelling, because its
    content would count twice."""
    spelled: dict[Path, Path] = {}
    for folder in folders:
        place = folder.resolve()
        if place in spelled:
            first = spelled[place]
            other = "" if first == folder else f"the folder {first}, which is "
            raise UserError(f"{folder}: is {other}given twice: give each folder once")
        spelled[place] = folder
