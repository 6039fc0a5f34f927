"""trajudge's own format: ``trajectories.jsonl`` (or .gz, .zst) with ``images/`` next to it."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from hashlib import sha256
from math import isnan
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple, cast

import msgspec
import zstandard
from pydantic import ValidationError
from pydantic_core import from_json

from trajudge.trajectories.images import is_image_file, media_type
from trajudge.trajectories.model import (
    FORMAT,
    LOST,
    ImageRef,
    Loaded,
    Trajectory,
    TrajectoryKey,
    Unreadable,
    Want,
    accept_all,
    add_warnings,
)
from trajudge.trajectories.needs import EVERYTHING, NOT_READ, Needs
from trajudge.util.errors import ImageUnreadable, UserError
from trajudge.util.files import (
    DataFolder,
    check_folder,
    open_regular,
    replacing,
    utf8,
)
from trajudge.util.jsonl import MAX_LINE_BYTES, Line, read_lines, repaired
from trajudge.util.validation import first_error

IMAGES = "images"

_MAX_FORMAT = 1000  # a larger number is damage, not a version

_REMEMBERED = 2**12  # images of a reading, a megabyte or two

_HASH = re.compile(r"[0-9a-f]{64}")

EXTENSIONS: dict[str | None, str] = {f"image/{kind}": kind for kind in ("png", "gif", "webp")}

EXTENSIONS |= {"image/jpeg": "jpg", None: "bin"}


class StoredPosition(NamedTuple):
    """The position of a line in bytes, and its length without the line break."""

    start: int
    length: int


def read_at(file: Path, position: StoredPosition) -> Trajectory | Unreadable | None:
    """Read the line at a position of an uncompressed file. None for an empty line. Raises
    OSError, UserError as ``read``."""
    with open_regular(file) as opened:
        opened.seek(position.start)
        content = opened.read(position.length)
    line = Line(1, content if position.start else utf8(content, file))
    return _read_line(file, accept_all, _Images(file.parent), line)


def stored_positions(file: Path) -> dict[TrajectoryKey, StoredPosition]:
    """Return the position of each trajectory of an uncompressed file, the first of each key.
    Lines whose key cannot be parsed quickly are omitted. Raises OSError."""
    positions: dict[TrajectoryKey, StoredPosition] = {}
    start = 0
    with open_regular(file) as opened:
        while line := opened.readline(MAX_LINE_BYTES + 1):
            text = line if start else utf8(line, file)
            if len(line) <= MAX_LINE_BYTES and (key := _key_of(text)):
                place = StoredPosition(start, len(line.rstrip(b"\n")))
                positions.setdefault(key, place)
            start += len(line)
    return positions


def decode_record(record: Mapping[str, Any], folder: Path) -> Trajectory:
    """Convert one line, as a JSON object, to a trajectory whose images are in ``folder/images``.
    Changes ``record``. Raises ValueError (including pydantic's) for an invalid one."""
    content = dict(record)
    _check_format(content, "the trajectory", first=False)
    return _decode(content, _Images(folder))


def has_image(folder: Path, name: str) -> bool:
    """Return True if an image with this hash is in ``folder/images``."""
    return _Images(folder).find(name) is not None


class _Images:
    """The images of a file. Results of lookups are cached, because steps and variants of a run
    share images; missing ones are looked up each time. ``needs`` determines whether screenshots
    and the goals' images are looked up at all."""

    def __init__(
        self, folder: Path, root: DataFolder | None = None, needs: Needs = EVERYTHING
    ) -> None:
        self.path = folder / IMAGES
        self.needs = needs
        self._root = root or DataFolder(folder)
        self._refs: dict[str, ImageRef] = {}

    def find(self, name: str) -> ImageRef | None:
        """Return a reference to the image with this hash; None without a valid image."""
        if name in self._refs:
            return self._refs[name]
        paths = (self.path / f"{name}.{extension}" for extension in EXTENSIONS.values())
        path = next(filter(self._root.has_file, paths), None)
        if path is None or (path.suffix != ".bin" and is_image_file(path)):
            return None
        if len(self._refs) == _REMEMBERED:
            self._refs.clear()
        ref = self._refs[name] = ImageRef(path=path, sha256=name)
        return ref

    def refer(
        self, named: Iterable[tuple[str, object]], lost: list[str], *, is_needed: bool
    ) -> list[ImageRef | None]:
        """Return references to images, each described and named by its hash; sentences about
        unreadable ones are added to ``lost``. Raises ValueError for an invalid hash."""
        refs: list[ImageRef | None] = []
        for picture, name in named:
            if name is None:
                refs.append(None)
            elif not isinstance(name, str) or not _HASH.fullmatch(name):
                raise ValueError(
                    f"{picture} is not referred to by 64 hexadecimal digits: {name!r:.80}"
                )
            elif not is_needed:
                refs.append(NOT_READ)
            elif (ref := self.find(name)) is not None:
                refs.append(ref)
            else:
                problem = (
                    "it was lost before" if name == LOST else f"no image {name} in {self.path}"
                )
                lost.append(f"{picture}: {problem}")
                refs.append(ImageRef(problem=problem, sha256=None if name == LOST else name))
        return refs


def _read_line(
    file: Path, want: Want, images: _Images, line: Line
) -> Trajectory | Unreadable | None:
    """Read a line; None if its key is not wanted."""
    source = f"{file}:{line.number}"
    if line.problem:
        return Unreadable(source, line.problem)
    key = None
    try:
        if (named := _key_of(line.data)) and not want(named):
            return None
        record = _parse(line.data)
        _check_format(record, source, first=line.number == 1)
        key = named or TrajectoryKey.model_validate(record.get("key"))
        if named is None and not want(key):
            return None
        record["key"] = key
        return _decode(record, images)
    except ValidationError as error:
        return Unreadable(source, first_error(error, "key"), key)
    except (ValueError, RecursionError) as error:
        return Unreadable(source, f"not a trajectory: {error}", key)


class KeyFields(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A TrajectoryKey as written in a file; the task's id may not be canonical."""

    benchmark: str
    agent: str
    task_id: str
    attempt: int = 0


class _Head(msgspec.Struct, gc=False):
    """The fields that determine whether a line is wanted; the others are skipped."""

    format: int
    key: KeyFields


_HEAD = msgspec.json.Decoder(_Head)


def _key_of(line: bytes) -> TrajectoryKey | None:
    """Read the key of a line of ``write``; None if only complete parsing determines it."""
    try:
        head = _HEAD.decode(line)
        if head.format != FORMAT:
            return None
        return TrajectoryKey.of_checked(*msgspec.structs.astuple(head.key))
    except ValueError:
        return None


def _parse(line: bytes) -> dict[str, Any]:
    try:
        record = from_json(line)
    except ValueError:
        mended = repaired(line)
        if mended is None:
            raise
        record = from_json(mended)
    if not isinstance(record, dict):
        raise ValueError("the line is not a JSON object")
    return record


def _check_format(record: dict[str, Any], source: str, *, first: bool) -> None:
    """Check the line's format. Raises ValueError, and UserError for a file that begins with a
    newer format."""
    version = record.pop("format", None)
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise ValueError('it has no "format" (this version writes 1)')
    if version > FORMAT:
        newer = (
            f"format {version:.6g}, newer than the {FORMAT} that this version of trajudge reads"
            if version < _MAX_FORMAT
            else "no format that there is"
        )
        if first and version < _MAX_FORMAT:
            raise UserError(f"{source} is of {newer}: upgrade trajudge")
        raise ValueError(f"it is of {newer}")


def _decode(record: dict[str, Any], images: _Images) -> Trajectory:
    lost: list[str] = []
    shown = [
        (f"screenshot of step {at}", observation)
        for at, step in enumerate(_list(record, "steps"))
        if isinstance(step, dict) and isinstance(observation := step.get("observation"), dict)
    ]
    named = [(picture, observation.get("screenshot")) for picture, observation in shown]
    refs = images.refer(named, lost, is_needed=bool(images.needs.screenshots))
    for (_, observation), ref in zip(shown, refs, strict=True):
        observation["screenshot"] = ref
    named = [("goal image", name) for name in _list(record, "goal_images")]
    refs = images.refer(named, lost, is_needed=images.needs.goal_images)
    record["goal_images"] = [ref for ref in refs if ref is not None]
    reward = record.get("official_reward")
    if reward == "NaN" or (isinstance(reward, float) and isnan(reward)):
        lost.append("The official_reward is not read: the number is nan.")
    if lost:
        add_warnings(record, lost)
    return Trajectory.model_validate(record)


def _list(record: dict[str, Any], name: str) -> list[Any]:
    value = record.get(name, [])
    if not isinstance(value, list):
        raise ValueError(f"{name} is not a list")
    return value


FILE_NAMES = tuple(f"trajectories.jsonl{suffix}" for suffix in ("", ".gz", ".zst"))

Compression = Literal["", "gz", "zst"]


def write(
    folder: Path,
    trajectories: Iterable[Trajectory],
    *,
    compress: Compression = "",
    on_lost: Callable[[ImageUnreadable], object] = lambda _: None,
) -> Path:
    """Write the trajectories into ``folder`` and return the file's path.

    The file is replaced atomically. Raises UserError if the folder cannot be written. It never
    raises ImageUnreadable: an unreadable image remains unreadable (``LOST``), with a warning in
    that trajectory's metadata, and ``on_lost`` is called before the next trajectory.
    """
    images = folder / "images"
    target = folder / (f"trajectories.jsonl.{compress}" if compress else "trajectories.jsonl")
    try:
        images.mkdir(parents=True, exist_ok=True)
        with replacing(target) as raw:
            stream = _compressor(raw, compress)
            put = _putting(images, on_lost)
            for trajectory in trajectories:
                stream.write(trajectory.to_json(put) + b"\n")
            if stream is not raw:
                stream.close()
        for other in FILE_NAMES:
            if other != target.name:
                (folder / other).unlink(missing_ok=True)
    except OSError as error:
        raise UserError(f"cannot write {target}: {error.strerror or error}") from error
    return target


def read(path: Path, want: Want = accept_all, needs: Needs = EVERYTHING) -> Loaded:
    """Yield trajectories of a folder or of its file, one at a time, in file order.

    Images that are not needed are not looked up (``needs.NOT_READ``). An invalid line gives
    Unreadable with the source ``file:line``. Raises UserError (at the call) if there is no such
    file, and while reading for a decompression bomb or a newer format.
    """
    file = find_file(path)
    if file is None:
        raise UserError(f"{path} holds no {' or '.join(FILE_NAMES)}: it is not a trajudge folder")
    # Links of a file that the user named are followed; those of a file in a folder are not.
    folder = DataFolder(path) if file != path else None
    images = _Images(file.parent, folder, needs)
    # ``map`` lets go of a line as soon as it is read.
    items = map(partial(_read_line, file, want, images), read_lines(file, folder=folder))
    return (item for item in items if item is not None)


def put_image(folder: Path, content: bytes) -> str:
    """Store an image in ``folder/images``, once, and return its hash. Raises OSError."""
    (folder / "images").mkdir(parents=True, exist_ok=True)
    return _put(folder / "images", ImageRef(data=content))


def check_target(folder: Path, source: Path | None, option: str) -> None:
    """Raise UserError for a folder, given by ``option``, that has trajectories, that is not a
    folder, or that is inside the ``source`` that is read."""
    if source is not None and folder.resolve().is_relative_to(source.resolve()):
        raise UserError(f"{folder} lies in {source}, which is read: name another folder")
    check_folder(folder, option)
    if find_file(folder) is not None:
        raise UserError(f"{folder} exists and holds something: name another folder")


def find_file(path: Path) -> Path | None:
    """Return the JSON Lines file of a folder, or the path itself if it is one."""
    if path.is_dir():
        return next((path / name for name in FILE_NAMES if (path / name).is_file()), None)
    is_lines = any(path.name.endswith(suffix) for suffix in (".jsonl", ".jsonl.gz", ".jsonl.zst"))
    return path if is_lines and path.is_file() else None


def _putting(
    images: Path, on_lost: Callable[[ImageUnreadable], object]
) -> Callable[[ImageRef], str]:
    """Return a function that stores images and reads each file once, because variants share
    screenshots."""
    names: dict[Path, str] = {}

    def put(ref: ImageRef) -> str:
        path = ref.path if ref.data is None and ref.problem is None else None
        if path in names:
            return names[path]
        try:
            name = _put(images, ref)
        except ImageUnreadable as error:
            on_lost(error)
            raise
        if path is not None:
            names[path] = name
        return name

    return put


def _put(images: Path, ref: ImageRef) -> str:
    """Store an image once and return its hash."""
    content = ref.read()
    name = sha256(content).hexdigest()
    path = images / f"{name}.{EXTENSIONS[media_type(content[:12])]}"
    if not path.exists():
        with replacing(path) as file:
            file.write(content)
    return name


def _compressor(raw: IO[bytes], compress: Compression) -> IO[bytes]:
    if compress == "gz":
        # No time and no name in the header: the same trajectories give the same bytes.
        # Level 6 takes less than half the time of 9, for a twentieth more bytes.
        return cast(IO[bytes], gzip.GzipFile("", "wb", compresslevel=6, fileobj=raw, mtime=0))
    if compress == "zst":
        writer = zstandard.ZstdCompressor(level=9, write_checksum=True)
        return cast(IO[bytes], writer.stream_writer(raw, closefd=False))
    return raw
