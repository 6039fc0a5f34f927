"""trajudge's own format on disk: ``trajectories.jsonl`` (or .gz, .zst) beside ``images/``.

One line a trajectory, as ``trajectories.schema`` describes it; images are files named by the
SHA-256 of their content, written once however often they are referred to. What is written is read
back equal, but that every image is then a path into ``images/``, and that lone surrogates (which
no UTF-8 text and so no prompt can hold) have become U+FFFD.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterable
from hashlib import sha256
from pathlib import Path
from typing import IO, Literal, cast

from pydantic_core import PydanticSerializationError, to_json

from trajudge.trajectories.images.header import media_type
from trajudge.trajectories.images.prepare import MAX_FILE_BYTES
from trajudge.trajectories.loading import Loaded, Want, accept_all
from trajudge.trajectories.model import ImageRef, Trajectory
from trajudge.trajectories.stored_lines import (
    EXTENSIONS,
    FORMAT,
    LOST,
    add_warnings,
    read_stored,
)
from trajudge.trajectories.util.atomic import check_folder, replacing
from trajudge.trajectories.util.errors import ImageUnreadable, UserError
from trajudge.trajectories.util.safe_files import DataFolder, UnsafeFile, read_regular
from trajudge.trajectories.util.surrogates import without_surrogates

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

    The file appears under its name only when it is complete, and replaces an earlier one. Raises
    UserError if the folder cannot be written, ImageUnreadable never: an image that cannot be read
    stays one that cannot be read (``LOST``), with a warning in that trajectory's metadata, and
    ``on_lost`` is called before the next trajectory is taken.
    """
    images = folder / "images"
    target = folder / (f"trajectories.jsonl.{compress}" if compress else "trajectories.jsonl")
    try:
        images.mkdir(parents=True, exist_ok=True)
        with replacing(target) as raw:
            stream = _compressor(raw, compress)
            put = _telling(on_lost, _putting(images))
            for trajectory in trajectories:
                stream.write(encode(trajectory, put) + b"\n")
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
    return read_stored(file, want, DataFolder(path) if file != path else None)


def put_image(folder: Path, content: bytes) -> str:
    """Store an image in ``folder/images``, once, and return its hash. Raises OSError."""
    (folder / "images").mkdir(parents=True, exist_ok=True)
    return _put(folder / "images", ImageRef(data=content))


def check_target(folder: Path, source: Path | None, option: str) -> None:
    """Raise UserError for a folder, named with ``option``, that holds trajectories, that is none,
    or that lies in the ``source`` that is read."""
    if source is not None and folder.resolve().is_relative_to(source.resolve()):
        raise UserError(f"{folder} lies in {source}, which is read: name another folder")
    check_folder(folder, option)
    if find_file(folder) is not None:
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
        add_warnings(record, lost)
    record = {"format": FORMAT, **record}
    try:
        return to_json(record, inf_nan_mode="strings")
    except PydanticSerializationError:
        return to_json(without_surrogates(record), inf_nan_mode="strings")


def _putting(images: Path) -> Callable[[ImageRef], str]:
    """Return what stores images and reads each file once: many variants show one screenshot."""
    names: dict[Path, str] = {}

    def put(ref: ImageRef) -> str:
        path = ref.path if ref.data is None and ref.problem is None else None
        if path is None or path not in names:
            name = _put(images, ref)
            if path is None:
                return name
            names[path] = name
        return names[path]

    return put


def _telling(
    on_lost: Callable[[ImageUnreadable], object], put: Callable[[ImageRef], str]
) -> Callable[[ImageRef], str]:
    def told(ref: ImageRef) -> str:
        try:
            return put(ref)
        except ImageUnreadable as error:
            on_lost(error)
            raise

    return told


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
        import zstandard  # noqa: PLC0415 - only for files that need it

        writer = zstandard.ZstdCompressor(level=9, write_checksum=True)
        return cast(IO[bytes], writer.stream_writer(raw, closefd=False))
    return raw
