"""What the loaders of foreign files share: bounded reading, numbered screenshots, attempts, folders
of one run each, and files of one run a line.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

import msgspec

from trajudge.trajectories.loaders.detection import head
from trajudge.trajectories.model import ImageRef, Trajectory, TrajectoryKey, Unreadable
from trajudge.trajectories.util import python_json
from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.jsonl import read_lines
from trajudge.trajectories.util.safe_files import (
    DataFolder,
    NotUtf8,
    UnsafeFile,
    open_regular,
    utf8,
)

T = TypeVar("T")
MAX_JSON_BYTES = 256 * 2**20
_MAX_TREE_BYTES = 32 * 2**20
_LFS_POINTER = b"version https://git-lfs"
_MISSING = "is missing"


class Damaged(ValueError):
    """A trajectory's files cannot be read; the message is the reason of its ``Unreadable``."""


class TrajectorySource(NamedTuple):
    """One trajectory before it is read: its key, its raw task id, where it lies, and the data
    folder that none of its files may lie outside of."""

    key: TrajectoryKey
    raw_task_id: str
    path: Path
    data: DataFolder


def read_all(
    sources: Iterable[TrajectorySource],
    read: Callable[[TrajectorySource], Trajectory | None],
    want: Callable[[TrajectoryKey], bool],
) -> Iterator[Trajectory | Unreadable]:
    """Yield every wanted trajectory, one at a time; Damaged from ``read`` becomes Unreadable. None
    from ``read`` leaves the trajectory out."""
    for source in sources:
        if not want(source.key):
            continue
        trajectory: Trajectory | Unreadable | None
        try:
            trajectory = read(source)
        # ValueError covers Damaged, BadPickle and pydantic's refusal of a value of the wrong type.
        except (ValueError, OSError, RecursionError) as error:
            trajectory = Unreadable(readable(str(source.path)), reason(error), source.key)
        if trajectory is not None:
            yield trajectory


def reason(error: Exception) -> str:
    """Say in one line why a file cannot be read."""
    line = readable(" ".join(str(error).split()))
    return line[:500] or type(error).__name__


def decode(root: DataFolder, path: Path, kind: type[T], *, max_bytes: int = MAX_JSON_BYTES) -> T:
    """Decode the fields of ``kind`` in a JSON file of the data, skipping the rest. Raises
    Damaged."""
    try:
        decoder: msgspec.json.Decoder[T] = _decoder(cast(Any, kind))
        return python_json.decode(utf8(root.read(path, max_bytes), path), decoder)
    except (UnsafeFile, NotUtf8) as error:
        raise Damaged(str(error)) from None
    except (ValueError, RecursionError) as error:
        raise Damaged(f"{readable(path.name)} is not the JSON expected: {reason(error)}") from None
    except OSError as error:
        raise Damaged(f"{readable(path.name)} cannot be read: {error.strerror}") from None


@lru_cache(maxsize=64)
def _decoder(kind: Any) -> Any:
    return msgspec.json.Decoder(kind)


def text(value: object) -> str | None:
    """Return text that can be written as UTF-8 (pages hold lone surrogates); None if blank or no
    text."""
    if not isinstance(value, str) or not value.strip():
        return None
    return readable(value)


def readable(value: str) -> str:
    """Put a mark in place of every lone surrogate."""
    return value.encode("utf-8", "replace").decode("utf-8")


def name_of(folder: Path) -> str:
    """Return a folder's name as text, also where it is given as ``.`` or is not UTF-8."""
    return readable(folder.resolve().name)


def numbers(values: Mapping[str, object]) -> dict[str, float]:
    """Return the finite numbers among ``values``, booleans left out."""
    return {
        name: float(value)
        for name, value in values.items()
        if isinstance(value, int | float)
        and not isinstance(value, bool)
        and abs(value) <= 1e300
        and math.isfinite(value)
    }


class RunFolders(NamedTuple):
    """A kind's folders of one run each, which ``is_one`` tells; ``needed`` names them in errors.
    ``is_part`` tells which of the other folders beside them is what a run that broke off left."""

    kind: str
    needed: str
    is_one: Callable[[Path], bool]
    is_part: Callable[[Path], bool]

    def detected(self, path: Path) -> bool:
        """Tell whether ``path`` is such a folder or holds one."""
        if not path.is_dir():
            return False
        return self.is_one(path) or any(self._inside(path))

    def of(self, path: Path) -> list[Path]:
        """List ``path`` itself if it is such a folder, else those directly inside, by name, and
        then what is left of others.

        Raises UserError if there is none.
        """
        needs = f"--data {self.kind}:PATH needs {self.needed}"
        if not path.is_dir():
            raise UserError(f"{path} is no folder: {needs}")
        try:
            matches = [path] if self.is_one(path) else sorted(self._inside(path))
            parts = [] if matches in ([], [path]) else self._parts(path, set(matches))
        except OSError as error:
            raise UserError(
                f"{path} cannot be listed ({error.strerror}): check its access"
            ) from None
        if not matches:
            raise UserError(f"{path} holds no {self.kind} trajectory: {needs}")
        return [*matches, *parts]

    def _inside(self, path: Path) -> Iterator[Path]:
        return (child for child in path.iterdir() if child.is_dir() and self.is_one(child))

    def _parts(self, path: Path, whole: Collection[Path]) -> list[Path]:
        folders = [child for child in path.iterdir() if child not in whole and child.is_dir()]
        return sorted(child for child in folders if self.is_part(child))


def number_attempts(sources: Iterable[TrajectorySource]) -> list[TrajectorySource]:
    """Count the runs of the same agent on the same task from 0 in the order given; sort by key."""
    counts: Counter[TrajectoryKey] = Counter()
    numbered = []
    for source in sources:
        key = source.key.model_copy(update={"attempt": counts[source.key]})
        counts[source.key] += 1
        numbered.append(source._replace(key=key))
    return sorted(numbered, key=lambda source: source.key.order)


def screenshot(
    path: Path, root: DataFolder, warnings: list[str], *, named: bool = True
) -> ImageRef | None:
    """Make a reference to an image file of the data, not decoded.

    With a sentence added to ``warnings``, a reference that holds only the problem if it is missing,
    empty, no file, a git-LFS pointer, or leads out of the data folder. None for a missing file that
    is not ``named`` by the rest of the run: it was never recorded.
    """
    fault = _fault(path, root)
    if fault is None:
        return ImageRef(path=path)
    warnings.append(f"The screenshot {readable(path.name)} {fault}.")
    if fault == _MISSING and not named:
        return None
    return ImageRef(problem=f"{readable(str(path))} {fault}")


def tree_beside(path: Path, root: DataFolder, warnings: list[str]) -> str | None:
    """Read an accessibility tree that is a file of the data; None where there is none. One that
    cannot be read goes to ``warnings``."""
    if not root.has_file(path):
        return None
    try:
        content = utf8(root.read(path, _MAX_TREE_BYTES), path)
    except (OSError, UnsafeFile, NotUtf8) as error:
        warnings.append(f"The tree {readable(path.name)} is not read ({reason(error)}).")
        return None
    return text(content.decode("utf-8", "replace"))


def _fault(path: Path, root: DataFolder) -> str | None:
    if not root.holds(path):
        return "leads out of the folder"
    try:
        with open_regular(path) as file:
            head = file.read(len(_LFS_POINTER))
    except UnsafeFile:
        return "is not a file"
    except OSError:
        return _MISSING
    if not head:
        return "is empty"
    return "is a git-LFS pointer, not an image" if head == _LFS_POINTER else None


class RunFile(NamedTuple):
    """A kind's file of one run a line: its name in a folder, and what its first line holds."""

    kind: str
    name: str
    marks: tuple[bytes, ...]
    lines: str

    def of(self, path: Path) -> Path:
        """Return the file that ``path`` names: itself, or the one of this name in the folder."""
        return path / self.name if path.is_dir() else path

    def detected(self, path: Path) -> bool:
        """Tell whether ``path`` names such a file."""
        first = head(self.of(path)).split(b"\n", 1)[0]
        return all(mark in first for mark in self.marks)

    def existing(self, path: Path) -> Path:
        """Return the file that ``path`` names. Raises UserError if there is none."""
        file = self.of(path)
        if file.is_file():
            return file
        raise UserError(
            f"{path}: holds no {self.name}: --data {self.kind}:PATH needs a file of {self.lines}"
        )


class PlacedRun(NamedTuple):
    """A line of the file: where it stands, its run's key, and its content."""

    place: str
    key: TrajectoryKey
    data: bytes


def placed_runs(
    path: Path, file: Path, identify: Callable[[bytes], TrajectoryKey]
) -> Iterator[PlacedRun | Unreadable]:
    """Yield every line of ``file`` with its run's key, as ``identify`` reads it but for the
    attempt. A folder at ``path`` bounds where links may lead.

    ``identify`` raises ValueError or RecursionError for a line that it cannot read.
    """
    attempts: Counter[str] = Counter()
    for line in read_lines(file, folder=DataFolder(path) if path.is_dir() else None):
        place = f"{readable(str(file))}, line {line.number}"
        try:
            if line.problem:
                raise ValueError(line.problem)
            key = identify(line.data)
        except (ValueError, RecursionError) as error:
            yield Unreadable(place, reason(error))
            continue
        attempt = attempts[key.task_id]
        attempts[key.task_id] += 1
        yield PlacedRun(place, key.model_copy(update={"attempt": attempt}), line.data)
