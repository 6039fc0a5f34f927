"""Read one run: its location, its values and images, and warnings about unreadable parts.

A field may have the value that its format specifies, or another one that a program wrote: a NumPy
scalar, a subclass of str, a member of an Enum, a list, a number as text, NaN. ``Values`` reads
values with an unambiguous meaning and reports all others by field and type, so that nothing is lost
silently. ``RunReader`` reads the files and images of a run in a folder of data, ``read_all`` yields
a format's trajectories; ``RunFile`` is a format with one run per line.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from trajudge.trajectories.images import LFS_POINTER, not_an_image
from trajudge.trajectories.loaders._files import (
    Damaged,
    head,
    list_runs,
    read_object,
    readable,
    reason,
    text,
)
from trajudge.trajectories.model import (
    ImageRef,
    Loaded,
    Step,
    Trajectory,
    TrajectoryKey,
    Unreadable,
    Want,
    accept_all,
)
from trajudge.trajectories.needs import EVERYTHING, NOT_READ, Needs
from trajudge.trajectories.pickles import PickledObject, plain
from trajudge.util.errors import UserError
from trajudge.util.files import DataFolder, NotUtf8, UnsafeFile, open_regular, utf8
from trajudge.util.jsonl import read_lines

MAX_INLINE_BYTES = 20 * 2**20
_MAX_TREE_BYTES = 32 * 2**20
_MISSING = "is missing"
_PLAIN_NAME = re.compile(r"[A-Za-z0-9._@ -]{1,255}")
_DATA_URL = re.compile(r"data:[^,]{0,200},", re.IGNORECASE)
_LARGEST = 1e300
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_TRUTH = {"true": True, "false": False}
_NOT_FINITE = {"nan", "inf", "infinity", "+inf", "-inf", "+infinity", "-infinity"}
_MAX_LIKE = 5
_MAX_KINDS = 50
_SHOWN = 60


class Values:
    """Reads the values of one trajectory; ``warnings`` gets a sentence for each unreadable one,
    at most five per field name and type. Without ``with_pictures`` images are not looked up:
    ``NOT_READ`` replaces each."""

    def __init__(self, warnings: list[str] | None = None, *, with_pictures: bool = True) -> None:
        self.warnings = [] if warnings is None else warnings
        self.with_pictures = with_pictures
        self._named: dict[tuple[str, str], int] = {}

    def text(self, value: object, field: str, location: str = "") -> str | None:
        """Read a text; None if it is absent or blank, or unreadable (with a warning).

        Numbers, truth values, lists and objects that a program wrote instead of their text are read
        as JSON, a list of texts alone as lines. Bytes are UTF-8.
        """
        value = plain(value)
        if value is None or (isinstance(value, float) and math.isnan(value)):
            return None
        if isinstance(value, bytes | bytearray):
            try:
                value = bytes(value).decode()
            except UnicodeDecodeError:
                self.refuse(value, field, location)
                return None
        if isinstance(value, str):
            return text(value)
        if isinstance(value, list | tuple) and all(isinstance(one, str) for one in value):
            return text("\n".join(value))
        try:
            return readable(json.dumps(value, ensure_ascii=False, allow_nan=True))
        except (TypeError, ValueError, RecursionError):
            self.refuse(value, field, location)
            return None

    def name(self, value: object, field: str, location: str = "") -> str | None:
        """Read an id or a name: a text, or an integer."""
        value = plain(value)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**100:
            return str(value)
        if value is None or isinstance(value, str):
            return text(value)
        self.refuse(value, field, location)
        return None

    def number(self, value: object, field: str, location: str = "") -> float | None:
        """Read a finite number, also as text; a truth value is 1 or 0."""
        value = _single(value)
        if isinstance(value, str):
            word = value.strip().casefold()
            if word in _TRUTH:
                value = _TRUTH[word]
            elif word in _NOT_FINITE or _NUMBER.fullmatch(word):
                value = float(word)
            elif word:
                self._say("the text is no number", field, location, "text")
                return None
            else:
                value = None
        if value is None:
            return None
        if not isinstance(value, int | float):
            self.refuse(value, field, location)
            return None
        if abs(value) <= _LARGEST:
            return float(value)
        problem = (
            "is too large" if isinstance(value, int) or math.isfinite(value) else f"is {value}"
        )
        self._say(f"the number {problem}", field, location, problem)
        return None

    def flag(self, value: object, field: str, location: str = "") -> bool | None:
        """Read a truth value, also as 1 and 0 or in JSON's words."""
        value = _single(value)
        if isinstance(value, str) and value.strip().casefold() in _TRUTH:
            return _TRUTH[value.strip().casefold()]
        if value is None or value == "":
            return None
        if isinstance(value, int | float) and value in (0, 1):
            return bool(value)
        self.refuse(value, field, location)
        return None

    def whole(self, value: object, field: str, location: str = "") -> int | None:
        """Read an integer, also as text or as 5.0."""
        value = _single(value)
        if isinstance(value, str) and re.fullmatch(r"[+-]?\d{1,18}", value.strip(), re.ASCII):
            return int(value)
        if value is None or value == "":
            return None
        if isinstance(value, float) and value.is_integer():
            return int(value)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        self.refuse(value, field, location)
        return None

    def entries(self, value: object, field: str, location: str = "") -> Sequence[Any]:
        """Read a list or tuple; empty if it is absent, or unreadable (with a warning)."""
        value = plain(value)
        if isinstance(value, list | tuple):
            return value
        if value is not None:
            self.refuse(value, field, location)
        return ()

    def first_text(
        self, record: Mapping[str, Any], names: Iterable[str], location: str = ""
    ) -> str | None:
        """Read the first of a record's fields that has a text."""
        return next(
            filter(None, (self.text(record.get(name), name, location) for name in names)), None
        )

    def inline_picture(self, value: object, location: str) -> ImageRef | None:
        """Decode an image in base64 or as a ``data:`` URL; None for None or an empty text. The
        media type is that of the bytes, not of the URL.

        ``location``, such as ``of step 3``, identifies the image in the warning about one that
        cannot be used, whose reference has only the problem.
        """
        if value is None or value == "":
            return None
        if not self.with_pictures:
            return NOT_READ
        try:
            return ImageRef(data=_decoded(value))
        except ValueError as error:
            self.warnings.append(f"The picture {location} {error}.")
            return ImageRef(problem=f"the picture {location} {error}")

    def refuse(self, value: object, field: str, location: str = "") -> None:
        """Report an unreadable value by field and type. The value is not shown, because it may
        be the benchmark's verdict."""
        kind = value.name if isinstance(value, PickledObject) else type(value).__name__
        self._say(f"the type {readable(kind)[:_SHOWN]} is not read", field, location, kind)

    def check_actions(self, steps: Sequence[Step]) -> None:
        """Raise Damaged if actions were recorded and none is readable: such a run would be shown
        as one without actions."""
        lost = next((one for one in self.warnings if one.startswith("The action of")), None)
        if lost and not any(step.action for step in steps):
            raise Damaged(f"no action of it can be read. {lost}")

    def _say(self, problem: str, field: str, location: str, kind: str) -> None:
        count = self._named.get((field, kind), 0)
        self._named[field, kind] = count + 1
        if count < _MAX_LIKE and len(self._named) <= _MAX_KINDS:
            where = f" {location}" if location else ""
            self.warnings.append(f"The {field}{where} is not read: {problem}.")


class RunSource(NamedTuple):
    """The location of one run: its key, its raw task id, its path, and the data folder that must
    contain all its files."""

    key: TrajectoryKey
    raw_task_id: str
    path: Path
    data: DataFolder


class RunReader(Values):
    """Reads one run whose files lie in a folder of data."""

    def __init__(self, source: RunSource, needs: Needs = EVERYTHING) -> None:
        super().__init__(with_pictures=bool(needs.screenshots))
        self.key, self.raw_task_id, self.path, self.data = source

    def trajectory(
        self, goal: str, steps: Iterable[Step], *, metadata: Mapping[str, Any] = {}, **fields: Any
    ) -> Trajectory:
        """Return the trajectory, with the warnings so far. Raises ValueError."""
        return Trajectory(
            key=self.key,
            raw_task_id=self.raw_task_id,
            goal=goal,
            steps=tuple(steps),
            metadata={**metadata, "warnings": [*self.warnings]},
            **fields,
        )

    def screenshot(self, path: Path, *, named: bool = True) -> ImageRef | None:
        """Return a reference to an image file of the data, without decoding it.

        A file that is missing, empty, not a file, a git-LFS pointer, or outside the data folder
        gives a reference with only the problem, and a warning. None for a missing file that is not
        ``named`` by the rest of the run: it was never recorded.
        """
        if not self.with_pictures:
            return NOT_READ if named or os.path.lexists(path) else None
        fault = _fault(path, self.data)
        if fault is None:
            return ImageRef(path=path)
        self.warnings.append(f"The screenshot {readable(path.name)} {fault}.")
        if fault == _MISSING and not named:
            return None
        return ImageRef(problem=f"{readable(str(path))} {fault}")

    def named_picture(self, recorded: object, *folders: Path) -> ImageRef | None:
        """Return a reference to the image that a record names, without decoding it; None if it
        names none.

        The last component of the name is looked up in the folders; an unreadable image is a
        reference with only the problem, with a warning.
        """
        if recorded is None or recorded == "":
            return None
        name = plain_name(recorded)
        if name is None:
            shown = readable(str(recorded))[:80]
            self.warnings.append(f"The screenshot {shown!r} is not a file name.")
            return ImageRef(problem=f"the screenshot {shown!r} is not a file name")
        if not self.with_pictures:
            return NOT_READ
        places = [folder / name for folder in folders]
        # An existing path, even a pipe or a link out, is reported as what it is.
        return self.screenshot(next((one for one in places if os.path.lexists(one)), places[0]))

    def tree(self, path: Path) -> str | None:
        """Read an accessibility tree from a file of the data; None without one, and with a
        warning for an unreadable one."""
        if not self.data.has_file(path):
            return None
        try:
            content = utf8(self.data.read(path, _MAX_TREE_BYTES), path)
        except (OSError, UnsafeFile, NotUtf8) as error:
            self.warnings.append(f"The tree {readable(path.name)} is not read ({reason(error)}).")
            return None
        return text(content.decode("utf-8", "replace"))

    def optional_object(self, path: Path) -> dict[str, Any]:
        """Read an optional JSON object; empty, with a warning, if it is unreadable."""
        try:
            return read_object(self.data, path) if path.is_file() else {}
        except Damaged as error:
            self.warnings.append(f"{path.name} is not read: {error}.")
            return {}


def _fault(path: Path, root: DataFolder) -> str | None:
    if not root.holds(path):
        return "leads out of the folder"
    try:
        with open_regular(path) as file:
            start = file.read(len(LFS_POINTER))
    except UnsafeFile:
        return "is not a file"
    except OSError:
        return _MISSING
    if not start:
        return "is empty"
    return "is a git-LFS pointer, not an image" if start == LFS_POINTER else None


def read_all(
    sources: Iterable[RunSource],
    read: Callable[[RunReader], Trajectory | None],
    want: Want,
    needs: Needs = EVERYTHING,
) -> Loaded:
    """Yield every wanted trajectory, one at a time; an unreadable one becomes Unreadable. None
    from ``read`` excludes it."""
    for source in sources:
        if want(source.key) and (item := read_one(source, read, needs)) is not None:
            yield item


def read_one(
    source: RunSource, read: Callable[[RunReader], Trajectory | None], needs: Needs
) -> Trajectory | Unreadable | None:
    """Read one trajectory, as ``read_all`` does."""
    try:
        return read(RunReader(source, needs))
    # ValueError covers Damaged, BadPickle and pydantic's refusal of a value of the wrong type.
    except (ValueError, OSError, RecursionError) as error:
        return Unreadable(readable(str(source.path)), reason(error), source.key)


def by_key(sources: Iterable[RunSource]) -> list[RunSource]:
    """Sort sources by their keys."""
    return sorted(sources, key=lambda source: source.key.order)


def number_attempts(sources: Iterable[RunSource]) -> list[RunSource]:
    """Assign attempts from 0 to runs of the same agent on the same task; sort by key."""
    counts: Counter[TrajectoryKey] = Counter()
    numbered = []
    for source in sources:
        attempt = counts[source.key]
        counts[source.key] += 1
        key = source.key.model_copy(update={"attempt": attempt})
        numbered.append(source._replace(key=key))
    return by_key(numbered)


def run_loader(
    find: Callable[[Path], Iterable[RunSource]], read: Callable[[RunReader], Trajectory | None]
) -> Callable[..., Loaded]:
    """Return the ``load`` of a format whose runs are listed by ``find``, in the order of their
    keys, and read by ``read``. It raises UserError without runs."""

    def load(path: Path, want: Want = accept_all, needs: Needs = EVERYTHING) -> Loaded:
        return read_all(find(path), read, want, needs)

    return load


def plain_name(recorded: object) -> str | None:
    """Return the last component of a recorded path (with either separator); None if it is not a
    plain file name."""
    if not isinstance(recorded, str):
        return None
    name = re.split(r"[/\\]", recorded.strip())[-1]
    return name if _PLAIN_NAME.fullmatch(name) and name.strip(". ") else None


def _decoded(value: object) -> bytes:
    """Decode base64 to the bytes of an image. Raises ValueError with a predicate."""
    if not isinstance(value, str):
        raise ValueError("is no text")
    label = _DATA_URL.match(value)
    if label and ";base64" not in label[0].lower():
        raise ValueError("is a data URL without base64")
    text = value[label.end() :] if label else value
    if len(text) > MAX_INLINE_BYTES * 3 // 2:
        raise ValueError(f"is larger than {MAX_INLINE_BYTES // 2**20} MiB")
    try:
        compact = "".join(text.split()).rstrip("=")
        content = base64.b64decode(compact + "=" * (-len(compact) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("is no base64") from None
    if len(content) > MAX_INLINE_BYTES:
        raise ValueError(f"is larger than {MAX_INLINE_BYTES // 2**20} MiB")
    if problem := not_an_image(content[:64]):
        raise ValueError(problem)
    return content


def _single(value: object) -> object:
    """Return a plain value, for a NumPy array of one number that number."""
    read = plain(value)
    is_array = isinstance(value, PickledObject) and isinstance(read, list) and len(read) == 1
    return read[0] if is_array and isinstance(read, list) else read


class RunFolders(NamedTuple):
    """A kind with one folder per run, of which ``is_one`` is True; ``needed`` describes them in
    errors. ``is_part`` is True for other folders beside them that an aborted run left."""

    kind: str
    needed: str
    is_one: Callable[[Path], bool]
    is_part: Callable[[Path], bool]

    def detected(self, path: Path) -> bool:
        """Return True if ``path`` is or contains such a folder."""
        if not path.is_dir():
            return False
        return self.is_one(path) or any(self._inside(path))

    def of(self, path: Path) -> list[Path]:
        """List ``path`` itself if it is such a folder, else those directly inside, by name, and
        then those of aborted runs.

        Raises UserError without any.
        """
        if not path.is_dir():
            raise UserError(f"{path} is no folder: --data {self.kind}:PATH needs {self.needed}")
        return list_runs(path, self.kind, self.needed, self._listed(path))

    def _listed(self, path: Path) -> Iterator[Path]:
        if self.is_one(path):
            yield path
        elif whole := sorted(self._inside(path)):
            yield from whole
            yield from self._parts(path, set(whole))

    def _inside(self, path: Path) -> Iterator[Path]:
        return (child for child in path.iterdir() if child.is_dir() and self.is_one(child))

    def _parts(self, path: Path, whole: Collection[Path]) -> list[Path]:
        folders = [child for child in path.iterdir() if child not in whole and child.is_dir()]
        return sorted(child for child in folders if self.is_part(child))


class PlacedRun(NamedTuple):
    """A run in a line of a file: its position, its key, and its content."""

    location: str
    key: TrajectoryKey
    data: bytes


class RunFile(NamedTuple):
    """A kind with one run per line: its file name in a folder, and the content of its first line.

    ``identify`` reads the key of a line, except for the attempt, and ``read`` the run; each raises
    ValueError or RecursionError for an invalid line.
    """

    kind: str
    name: str
    marks: tuple[bytes, ...]
    lines: str
    identify: Callable[[Path, bytes], TrajectoryKey]
    read: Callable[[PlacedRun], Trajectory]

    def of(self, path: Path) -> Path:
        """Return the file of ``path``: itself, or the one with this name in the folder."""
        return path / self.name if path.is_dir() else path

    def detect(self, path: Path) -> bool:
        """Return True if ``path`` is such a file or its folder."""
        first = head(self.of(path)).split(b"\n", 1)[0]
        return all(mark in first for mark in self.marks)

    def load(self, path: Path, want: Want = accept_all) -> Loaded:
        """Yield the runs in file order. Raises UserError at once if there is no such file."""
        return self._load(self.runs(path), want)

    def _load(self, runs: Iterable[PlacedRun | Unreadable], want: Want) -> Loaded:
        for run in runs:
            if isinstance(run, Unreadable):
                yield run
            elif want(run.key):
                try:
                    yield self.read(run)
                except (ValueError, RecursionError) as error:
                    yield Unreadable(run.location, reason(error), run.key)

    def runs(self, path: Path) -> Iterator[PlacedRun | Unreadable]:
        """Yield every line with its run's key, by which labels are looked up. Raises UserError
        at once if there is no such file. Links may not lead out of the folder."""
        file = self.of(path)
        if not file.is_file():
            raise UserError(
                f"{path}: holds no {self.name}: --data {self.kind}:PATH needs a file of "
                f"{self.lines}"
            )
        return self._placed(file, DataFolder(path) if path.is_dir() else None)

    def _placed(self, file: Path, folder: DataFolder | None) -> Iterator[PlacedRun | Unreadable]:
        attempts: Counter[str] = Counter()
        for line in read_lines(file, folder=folder):
            location = f"{readable(str(file))}, line {line.number}"
            try:
                if line.problem:
                    raise ValueError(line.problem)
                key = self.identify(file, line.data)
            except (ValueError, RecursionError) as error:
                yield Unreadable(location, reason(error))
                continue
            attempt = attempts[key.task_id]
            attempts[key.task_id] += 1
            yield PlacedRun(location, key.model_copy(update={"attempt": attempt}), line.data)
