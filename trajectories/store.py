"""trajudge's own format on disk: ``trajectories.jsonl`` (or .gz, .zst) beside ``images/``.

One line a trajectory, as ``trajectories.schema`` describes it; images are files named by the
SHA-256 of their content, written once however often they are referred to. What is written is read
back equal, but that every image is then a path into ``images/``, and that lone surrogates (which
no UTF-8 text and so no prompt can hold) have become U+FFFD.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable, Iterable
from hashlib import sha256
from math import isnan
from pathlib import Path
from typing import IO, Any, Literal, cast

import msgspec
from pydantic import ValidationError
from pydantic_core import PydanticSerializationError, from_json, to_json

from trajudge.trajectories.images.header import media_type
from trajudge.trajectories.images.prepare import MAX_FILE_BYTES, is_image_file
from trajudge.trajectories.loading import Loaded, Want, accept_all
from trajudge.trajectories.model import ImageRef, Trajectory, TrajectoryKey, Unreadable
from trajudge.trajectories.util.atomic import replacing
from trajudge.trajectories.util.errors import ImageUnreadable, UserError
from trajudge.trajectories.util.jsonl import read_lines
from trajudge.trajectories.util.python_json import repaired
from trajudge.trajectories.util.safe_files import DataFolder, UnsafeFile, read_regular
from trajudge.trajectories.util.surrogates import without_surrogates
from trajudge.trajectories.util.validation import first_error

FORMAT = 1
_MAX_FORMAT = 1000  # a larger number is damage, not a version
FILE_NAMES = tuple(f"trajectories.jsonl{suffix}" for suffix in ("", ".gz", ".zst"))
Compression = Literal["", "gz", "zst"]

# In place of the hash of an image that a run had and that could not be read when it was written.
LOST = "0" * 64

_HASH = re.compile(r"[0-9a-f]{64}")
_EXTENSIONS = {
    "image/png": "png",
    "image/jpeg": "jpg",
    "image/gif": "gif",
    "image/webp": "webp",
    None: "bin",
}


def write(folder: Path, trajectories: Iterable[Trajectory], *, compress: Compression = "") -> Path:
    """Write the trajectories into ``folder`` and return the file's path.

    The file appears under its name only when it is complete, and replaces an earlier one. Raises
    UserError if the folder cannot be written, ImageUnreadable never: an image that cannot be read
    stays one that cannot be read (``LOST``), with a warning in that trajectory's metadata.
    """
    images = folder / "images"
    target = folder / (f"trajectories.jsonl.{compress}" if compress else "trajectories.jsonl")
    try:
        images.mkdir(parents=True, exist_ok=True)
        with replacing(target) as raw:
            stream = _compressor(raw, compress)
            for trajectory in trajectories:
                stream.write(encode(trajectory, lambda ref: _put(images, ref)) + b"\n")
            if stream is not raw:
                stream.close()
        for other in FILE_NAMES:
            if other != target.name:
                (folder / other).unlink(missing_ok=True)
    except OSError as error:
        raise UserError(f"cannot write {target}: {error.strerror or error}") from error
    return target


def read(path: Path, want: Want = accept_all) -> Loaded:
    """Yield trajectories of a folder or of its file, one at a time, in the order of the file.

    A bad line gives Unreadable with the source ``file:line``. Raises UserError (at the call) if
    there is no such file, and while reading for a decompression bomb or a newer format.
    """
    file = find_file(path)
    if file is None:
        raise UserError(f"{path} holds no {' or '.join(FILE_NAMES)}: it is not a trajudge folder")
    # A file that the user named is read wherever it leads to; one found in a folder is not.
    return _read(file, want, DataFolder(path) if file != path else None)


def check_target(folder: Path, source: Path | None) -> None:
    """Raise UserError for a folder that holds trajectories, that is none, or that lies in the
    ``source`` that is read."""
    if source is not None and folder.resolve().is_relative_to(source.resolve()):
        raise UserError(f"{folder} lies in {source}, which is read: name another folder")
    if folder.exists() and (not folder.is_dir() or find_file(folder) is not None):
        raise UserError(f"{folder} exists and holds something: name another folder")


def find_file(path: Path) -> Path | None:
    """Find the JSON Lines file of a folder, or the path itself if it is one."""
    if path.is_dir():
        return next((path / name for name in FILE_NAMES if (path / name).is_file()), None)
    is_lines = any(path.name.endswith(suffix) for suffix in (".jsonl", ".jsonl.gz", ".jsonl.zst"))
    return path if is_lines and path.is_file() else None


def encode(trajectory: Trajectory, put: Callable[[ImageRef], str]) -> bytes:
    """Encode one line, without its newline. ``put`` stores an image and returns its hash; an image
    for which it raises ImageUnreadable is replaced by ``LOST``, with a warning."""
    lost: list[str] = []

    def stored(ref: ImageRef | None, picture: str) -> str | None:
        try:
            return put(ref) if ref is not None else None
        except ImageUnreadable as error:
            lost.append(f"{picture}: {error}")
            return ref.sha256 or LOST if ref else None

    screenshot = {"observation": {"screenshot"}}
    record = trajectory.model_dump(exclude={"goal_images": True, "steps": {"__all__": screenshot}})
    for step, line in zip(trajectory.steps, record["steps"], strict=True):
        line["observation"]["screenshot"] = stored(
            step.observation.screenshot, f"screenshot of step {step.index}"
        )
    hashes = (stored(ref, "goal image") for ref in trajectory.goal_images)
    record["goal_images"] = list(hashes)
    if lost:
        _warn(record, lost)
    record = {"format": FORMAT, **record}
    try:
        return to_json(record, inf_nan_mode="strings")
    except PydanticSerializationError:
        return to_json(without_surrogates(record), inf_nan_mode="strings")


def _read(file: Path, want: Want, folder: DataFolder | None) -> Loaded:
    root = folder or DataFolder(file.parent)
    for line in read_lines(file, folder=folder):
        source = f"{file}:{line.number}"
        if line.problem:
            yield Unreadable(source, line.problem)
            continue
        key = None
        try:
            if (named := _key_of(line.data)) and not want(named):
                continue
            record = _parse(line.data)
            _check_format(record, source, first=line.number == 1)
            key = TrajectoryKey.model_validate(record.get("key"))
            if want(key):
                yield _decode(record, file.parent / "images", root)
        except ValidationError as error:
            yield Unreadable(source, first_error(error, "key"), key)
        except (ValueError, RecursionError) as error:
            yield Unreadable(source, f"not a trajectory: {error}", key)


class KeyFields(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A TrajectoryKey as it stands in a file; the task's id may lack its canonical form."""

    benchmark: str
    agent: str
    task_id: str
    attempt: int = 0


class _Head(msgspec.Struct, gc=False):
    """What tells whether a line is wanted; the rest is passed over, and not kept."""

    format: int
    key: KeyFields


_HEAD = msgspec.json.Decoder(_Head)


def _key_of(line: bytes) -> TrajectoryKey | None:
    """Read the key of a line of ours; None where only reading the line as a whole settles it."""
    try:
        head = _HEAD.decode(line)
        if head.format != FORMAT:
            return None
        return TrajectoryKey(**msgspec.structs.asdict(head.key))
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
    """Check the line's format. Raises ValueError, and UserError for a file that begins with a newer
    format."""
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


def _decode(record: dict[str, Any], images: Path, root: DataFolder) -> Trajectory:
    lost: list[str] = []

    def image_ref(name: object, picture: str) -> ImageRef | None:
        if name is None:
            return None
        if not isinstance(name, str) or not _HASH.fullmatch(name):
            raise ValueError(f"{picture} is not referred to by 64 hexadecimal digits: {name!r:.80}")
        path = _image_path(images, name, root)
        if path is None:
            problem = "it was lost before" if name == LOST else f"no image {name} in {images}"
            lost.append(f"{picture}: {problem}")
            return ImageRef(problem=problem, sha256=None if name == LOST else name)
        return ImageRef(path=path, sha256=name)

    for at, step in enumerate(_list(record, "steps")):
        observation = step.get("observation") if isinstance(step, dict) else None
        if isinstance(observation, dict):
            observation["screenshot"] = image_ref(
                observation.get("screenshot"), f"screenshot of step {at}"
            )
    refs = [image_ref(name, "goal image") for name in _list(record, "goal_images")]
    record["goal_images"] = [ref for ref in refs if ref is not None]
    if lost:
        _warn(record, lost)
    trajectory = Trajectory.model_validate(record)
    if isnan(trajectory.official_reward or 0):  # no number is no reward, and no failure
        return trajectory.model_copy(update={"official_reward": None})
    return trajectory


def _list(record: dict[str, Any], name: str) -> list[Any]:
    value = record.get(name, [])
    if not isinstance(value, list):
        raise ValueError(f"{name} is not a list")
    return value


def _warn(record: dict[str, Any], sentences: list[str]) -> None:
    metadata = record.get("metadata") or {}
    before = metadata.get("warnings") or []
    record["metadata"] = {**metadata, "warnings": [*before, *sentences]}


def _image_path(images: Path, name: str, root: DataFolder) -> Path | None:
    for extension in _EXTENSIONS.values():
        path = images / f"{name}.{extension}"
        if root.has_file(path):
            return path if extension == "bin" or is_image_file(path) is None else None
    return None


def _put(images: Path, ref: ImageRef) -> str:
    """Store an image once and return its hash."""
    if ref.problem is not None:
        raise ImageUnreadable(ref.problem)
    try:
        content = ref.data
        if content is None:
            content = read_regular(cast(Path, ref.path), MAX_FILE_BYTES)
    except UnsafeFile as error:
        raise ImageUnreadable(str(error)) from error
    except OSError as error:
        raise ImageUnreadable(f"{ref.path} cannot be read ({error.strerror})") from error
    name = sha256(content).hexdigest()
    path = images / f"{name}.{_EXTENSIONS[media_type(content[:12])]}"
    if not path.exists():
        with replacing(path) as file:
            file.write(content)
    return name


def _compressor(raw: IO[bytes], compress: Compression) -> IO[bytes]:
    if compress == "gz":
        # No time and no name in the header: the same trajectories give the same bytes.
        return cast(IO[bytes], gzip.GzipFile("", "wb", fileobj=raw, mtime=0))
    if compress == "zst":
        import zstandard  # noqa: PLC0415 - only for files that need it

        writer = zstandard.ZstdCompressor(level=9, write_checksum=True)
        return cast(IO[bytes], writer.stream_writer(raw, closefd=False))
    return raw
