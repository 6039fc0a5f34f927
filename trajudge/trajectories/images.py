"""Screenshots on their way into a prompt: headers read without decoding, memory that decoding
takes, resizing to what a model accepts, and results remembered as long as the file is unchanged.

Whoever runs an event loop loads pictures through a ``PictureLoader``, which works in threads.
"""

from __future__ import annotations

import os
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache, wraps
from hashlib import sha256
from io import BytesIO
from math import sqrt
from pathlib import Path
from threading import Condition, Lock
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from trajudge.trajectories.model import MAX_FILE_BYTES, ImageRef
from trajudge.util.errors import ImageUnreadable
from trajudge.util.files import FileCache, UnsafeFile, open_regular

if TYPE_CHECKING:
    from PIL import Image

F = TypeVar("F", bound=Callable[..., Any])


class FileState(NamedTuple):
    """A file and what changes when somebody writes to it or puts another one in its place."""

    path: str
    device: int
    inode: int
    size: int
    modified_ns: int
    changed_ns: int


def remembered(maxsize: int) -> Callable[[F], F]:
    """Remember what a function of an ImageRef (and of more, by position) returned for ``maxsize``
    files: called again with a file that has not changed since, it does not read it. What it raises
    is not remembered."""

    def decorate(function: F) -> F:
        @lru_cache(maxsize)
        def of_file(state: FileState, *more: Hashable) -> Any:
            return function(ImageRef(path=Path(state.path)), *more)

        @wraps(function)
        def remembering(ref: ImageRef, *more: Hashable) -> Any:
            state = _state(ref)
            return function(ref, *more) if state is None else of_file(state, *more)

        return cast(F, remembering)

    return decorate


def _state(ref: ImageRef) -> FileState | None:
    """Look at the file without opening it; None for an image that is no file."""
    if ref.path is None:
        return None
    path = os.fspath(ref.path)
    try:
        seen = os.stat(path)  # noqa: PTH116 - many times quicker
    except (OSError, ValueError):
        return None
    return FileState(
        path, seen.st_dev, seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns
    )


LFS_POINTER = b"version https://git-lfs"

_MAGIC = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}

# JPEG frame headers (SOF0..SOF15), without DHT (C4), JPG (C8) and DAC (CC).
_START_OF_FRAME = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}

_STAND_ALONE = frozenset({0x01, *range(0xD0, 0xD9)})


class Header(NamedTuple):
    """Media type, and width and height in pixels as declared."""

    media_type: str
    width: int
    height: int


def media_type(start: bytes) -> str | None:
    """Detect the media type by the magic bytes; ``start`` is at least the first 12 bytes of the
    file."""
    for magic, name in _MAGIC.items():
        if start.startswith(magic):
            return name
    if start[:4] == b"RIFF" and start[8:12] == b"WEBP":
        return "image/webp"
    return None


def not_an_image(start: bytes) -> str | None:
    """Say why these first bytes are not those of an image; None if they are."""
    if not start:
        return "is empty (zero bytes)"
    if start.startswith(LFS_POINTER):
        return "is a git-LFS pointer, not the image itself (fetch it with  git lfs pull)"
    if media_type(start) is None:
        return "is not a PNG, JPEG, GIF or WebP image"
    return None


def read_header(content: bytes) -> Header:
    """Read the declared size. Raises ImageUnreadable if the bytes are no image or end too early."""
    if reason := not_an_image(content[:64]):
        raise ImageUnreadable(f"image {reason}")
    name = media_type(content[:12]) or ""
    size = _SIZES[name](content)
    if size is None:
        raise ImageUnreadable(f"image is truncated or damaged: no size in its {name} header")
    return Header(name, *size)


def _png(content: bytes) -> tuple[int, int] | None:
    if content[12:16] != b"IHDR" or len(content) < 24:
        return None
    return int.from_bytes(content[16:20]), int.from_bytes(content[20:24])


def _gif(content: bytes) -> tuple[int, int] | None:
    if len(content) < 10:
        return None
    return int.from_bytes(content[6:8], "little"), int.from_bytes(content[8:10], "little")


def _jpeg(content: bytes) -> tuple[int, int] | None:
    """Walk from marker to marker up to the frame header."""
    at = 2
    while at + 9 <= len(content):
        if content[at] != 0xFF:
            return None
        marker = content[at + 1]
        if marker == 0xFF or marker in _STAND_ALONE:
            at += 1 if marker == 0xFF else 2
        elif marker in _START_OF_FRAME:
            return int.from_bytes(content[at + 7 : at + 9]), int.from_bytes(
                content[at + 5 : at + 7]
            )
        else:
            at += 2 + max(2, int.from_bytes(content[at + 2 : at + 4]))
    return None


def _webp(content: bytes) -> tuple[int, int] | None:
    if len(content) < 30:
        return None
    match content[12:16]:
        case b"VP8X":
            return 1 + int.from_bytes(content[24:27], "little"), 1 + int.from_bytes(
                content[27:30], "little"
            )
        case b"VP8L":
            bits = int.from_bytes(content[21:25], "little")
            return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
        case b"VP8 ":
            width, height = (int.from_bytes(content[at : at + 2], "little") for at in (26, 28))
            return width & 0x3FFF, height & 0x3FFF
    return None


_SIZES = {"image/png": _png, "image/jpeg": _jpeg, "image/gif": _gif, "image/webp": _webp}

MAX_IMAGE_MEMORY = 450 * 2**20

"""Bytes that images under work take together in one process."""

# These are resized without a further copy; every other mode is converted, into 4 bytes a pixel.
_KEPT = frozenset({"L", "RGB"})

_PIXEL_BYTES = {"1": 1, "L": 1, "P": 1, "I;16": 2, "I;16B": 2}

# What the libraries hold beside the decoded picture, in bytes a pixel: libwebp's animation decoder
# two canvases and a frame; libjpeg all coefficients of a progressive file, two bytes a component.
_WEBP_BYTES = 12

_PROGRESSIVE_BYTES = 2


class MemoryLimiter:
    """Lets work through as long as its bytes together stay within ``limit``; any thread may wait.

    Whoever holds a share must not ask for another one.
    """

    def __init__(self, limit: int = MAX_IMAGE_MEMORY) -> None:
        self.limit = limit
        self._taken = 0
        self._changed = Condition()

    @contextmanager
    def hold(self, size: int) -> Iterator[None]:
        """Wait for ``size`` bytes, and give them back at the end.

        Raises ImageUnreadable if there are never so many.
        """
        if size > self.limit:
            raise ImageUnreadable(
                f"image takes {size / 2**20:,.0f} MiB to decode, more than the "
                f"{self.limit / 2**20:,.0f} MiB allowed"
            )
        with self._changed:
            self._changed.wait_for(lambda: self._taken + size <= self.limit)
            self._taken += size
        try:
            yield
        finally:
            with self._changed:
                self._taken -= size
                self._changed.notify_all()


MEMORY_LIMITER = MemoryLimiter()


def needed(image: Image.Image, size: tuple[int, int]) -> int:
    """Compute the bytes to decode an opened, not yet decoded image and to scale it to ``size``, at
    most.

    Resampling goes by rows first, so what is between has the new width and the old height.
    """
    pixels, channels = image.width * image.height, len(image.getbands())
    total = pixels * _PIXEL_BYTES.get(image.mode, 4)
    if image.mode not in _KEPT or "transparency" in image.info:
        total += 4 * pixels
    if image.format == "WEBP":
        total += _WEBP_BYTES * pixels
    if image.info.get("progressive"):
        total += _PROGRESSIVE_BYTES * channels * pixels
    if size != image.size:
        total += 4 * size[0] * (image.height + size[1])
    return total + 4 * size[0] * size[1]  # the copy that an encoder takes


# A full-page screenshot is 2,000 x 20,000 at most; a bomb declares billions.
MAX_DECODED_PIXELS = 64_000_000

# The longest side that JPEG knows. Resampling's table grows with it: a side of 60,000,000 pixels
# would take 3 GB, whatever the other one is.
MAX_DECODED_SIDE = 65_535

_FORMATS = ("PNG", "JPEG", "GIF", "WEBP")

# Quality and chroma subsampling (0: none), the best first.
_JPEG_QUALITIES = ((95, 0), (90, 2), (75, 2), (60, 2))

# Compresses screenshots as well as the usual level 6 does, but for a few percent, in half the time.
_PNG_LEVEL = 1

# A picture is first averaged down to so many times its new size, which the filter then resizes.
_REDUCING_GAP = 2.0

_RESTED = 3_000_000_000  # nanoseconds: clocks of file systems tick every 2 s at the slowest

# Raise it when the same file and limits give other bytes than before.
_ENCODING = 1

_SHRINK = 0.75

# Steps and changed copies of a run share pictures: a folder of 10,000 is remembered as a whole.
_REMEMBERED = 2**14

_GREY_REMEMBERED = 2**9  # of 160 x 120 pixels: 10 MB

_KEPT_BYTES = 64 * 2**20

_THREADS = 4


@dataclass(frozen=True, slots=True)
class EncodedImage:
    """An image file as it will be sent: ``sha256`` is of ``data``; width and height in pixels."""

    sha256: str
    media_type: str
    width: int
    height: int
    data: bytes = field(repr=False)


def is_image_file(path: Path) -> str | None:
    """Say why a loader should not refer to this file as a screenshot; None if it may.

    Cheap: looks at the file's type and its first bytes only.
    """
    try:
        with open_regular(path) as file:
            return not_an_image(file.read(64))
    except UnsafeFile:
        return "is not a file"
    except (OSError, ValueError):
        return "is missing or cannot be opened"


@remembered(_REMEMBERED)
def check_picture(ref: ImageRef) -> None:
    """Raise ImageUnreadable (one sentence) unless the image is there and whole."""
    with _named(ref):
        _check_whole(*_with_header(ref))


class PictureLimits(NamedTuple):
    """What a picture must fit: longest side and all its pixels, bytes of the encoded file."""

    max_side: int
    max_pixels: int
    max_bytes: int
    media_types: frozenset[str]


UNCHANGED = PictureLimits(2**31, 2**31, 2**31, frozenset(_SIZES))

"""What every readable picture fits, so that it is loaded as it is stored."""


def load_picture(
    ref: ImageRef, limits: PictureLimits, resized: FileCache | None = None
) -> EncodedImage:
    """Load the image that ``ref`` points to, resized and re-encoded only if it does not fit.

    What becomes smaller and is opaque is re-encoded as JPEG, the rest as PNG, if these are taken
    and small enough; deterministic for one version of Pillow. ``resized`` keeps the results for
    other processes, by content and, for files that have rested, by the file's state. Raises
    ImageUnreadable (one sentence) if the image cannot be used.
    """
    with _named(ref):
        state = None if resized is None else _rested(_state(ref))
        by_state = "" if state is None else _name_of(repr(state).encode(), limits)
        if resized is not None and by_state and (name := resized.get(by_state)):
            with suppress(ImageUnreadable):
                if (known := resized.get(name.decode())) is not None:
                    return _encoded(known, read_header(known))
        content, header = _with_header(ref)
        fits = (
            header.media_type in limits.media_types
            and max(header.width, header.height) <= limits.max_side
            and header.width * header.height <= limits.max_pixels
            and len(content) <= limits.max_bytes
        )
        if fits:
            _check_whole(content, header)
            return _encoded(content, header)
        if resized is None:
            return _fit(content, header, limits)
        of_content = _name_of(content, limits)
        made = None
        with suppress(ImageUnreadable):
            if (known := resized.get(of_content)) is not None:
                made = _encoded(known, read_header(known))
        if made is None:
            made = _fit(content, header, limits)
            resized.put(of_content, made.data)
        if by_state:
            resized.put(by_state, of_content.encode())
        return made


def _rested(state: FileState | None) -> FileState | None:
    """Return the state of a file that was not changed of late, else None: within one tick of the
    file system's clock a file can change twice and have the same state."""
    if state is None or time.time_ns() - max(state.modified_ns, state.changed_ns) < _RESTED:
        return None
    return state


def _name_of(content: bytes, limits: PictureLimits) -> str:
    """Name what a file, by its content or its state, becomes within the limits."""
    bounds = [*limits[:3], *sorted(limits.media_types), _ENCODING]
    return sha256(sha256(content).digest() + repr(bounds).encode()).hexdigest()


class PictureLoader:
    """Loads pictures in threads, so that an event loop goes on meanwhile.

    The latest ``kept_bytes`` of encoded pictures are remembered as long as their files are
    unchanged, and loads of one picture at the same time share the work. ``folder`` returns what
    keeps resized pictures between processes, None for nothing.
    """

    def __init__(
        self, folder: Callable[[], FileCache | None], kept_bytes: int = _KEPT_BYTES
    ) -> None:
        self._folder, self._kept_bytes = folder, kept_bytes
        self._kept: OrderedDict[Hashable, tuple[EncodedImage, int]] = OrderedDict()
        self._bytes = 0
        self._under_way: dict[Hashable, Future[EncodedImage]] = {}
        self._lock = Lock()
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="pictures")

    def load(self, ref: ImageRef, limits: PictureLimits) -> Future[EncodedImage]:
        """Begin what ``load_picture`` does; a picture that is remembered is there at once."""
        key = (ref.data or _state(ref) or ref, limits)
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                future: Future[EncodedImage] = Future()
                future.set_result(self._kept[key][0])
                return future
            if key not in self._under_way:
                self._under_way[key] = self._threads.submit(self._load, key, ref, limits)
            return self._under_way[key]

    def _load(self, key: Hashable, ref: ImageRef, limits: PictureLimits) -> EncodedImage:
        try:
            image = load_picture(ref, limits, self._folder())
        except BaseException:
            with self._lock:
                del self._under_way[key]
            raise
        with self._lock:
            del self._under_way[key]
            taken = len(image.data) + len(ref.data or b"")
            self._kept[key] = image, taken
            self._bytes += taken
            while self._bytes > self._kept_bytes:
                _, (_, taken) = self._kept.popitem(last=False)
                self._bytes -= taken
        return image


@remembered(_REMEMBERED)
def picture_size(ref: ImageRef) -> tuple[int, int]:
    """Return width and height in pixels, decoding none. Raises ImageUnreadable (one sentence)."""
    with _named(ref):
        return _opened(_with_header(ref)[0]).size


@remembered(_GREY_REMEMBERED)
def grey_levels(ref: ImageRef, size: tuple[int, int]) -> bytes:
    """Return the image's levels of grey at ``size``, width and height in pixels; a byte for each
    pixel, row by row. Raises ImageUnreadable (one sentence)."""
    with _named(ref):
        content, _ = _with_header(ref)
        opened = _opened(content)
        with MEMORY_LIMITER.hold(len(content) + needed(opened, size)):
            return _decode(opened).convert("L").resize(size).tobytes()


@contextmanager
def _named(ref: ImageRef) -> Iterator[None]:
    """Prefix the message of failures inside with the file's name."""
    name = "inline image" if ref.data is not None else str(ref.path or "")
    name = name and f"{name}: "
    try:
        yield
    except ImageUnreadable as error:
        raise ImageUnreadable(f"{name}{error}") from error
    except MemoryError as error:
        raise ImageUnreadable(f"{name}image takes more memory than there is") from error


def _with_header(ref: ImageRef) -> tuple[bytes, Header]:
    """Read the file and its header, and check that the declared size may be decoded."""
    content = _read(ref)
    header = read_header(content)
    _check_size(header.width, header.height)
    return content, header


def _check_size(width: int, height: int) -> None:
    if not width or not height:
        raise ImageUnreadable("image declares a size of zero")
    if width * height > MAX_DECODED_PIXELS:
        raise ImageUnreadable(
            f"image declares {width} x {height} pixels, more than the {MAX_DECODED_PIXELS} that "
            "are decoded"
        )
    if max(width, height) > MAX_DECODED_SIDE:
        raise ImageUnreadable(
            f"image declares {width} x {height} pixels, a side longer than the "
            f"{MAX_DECODED_SIDE} that are decoded"
        )


def _read(ref: ImageRef) -> bytes:
    if ref.problem is not None:
        raise ImageUnreadable(ref.problem)
    if ref.data is not None:
        content = ref.data
    else:
        path = Path(ref.path or "")
        if reason := is_image_file(path):
            raise ImageUnreadable(f"image {reason}")
        try:
            with open_regular(path) as file:
                content = file.read(MAX_FILE_BYTES + 1)
        except OSError as error:
            raise ImageUnreadable(f"image cannot be read ({error.strerror})") from error
    if len(content) > MAX_FILE_BYTES:
        raise ImageUnreadable(f"image is larger than {MAX_FILE_BYTES // 2**20} MiB")
    return content


def _open(content: bytes) -> Image.Image:
    from PIL import Image  # noqa: PLC0415 - slow to import, and many runs need no picture

    return Image.open(BytesIO(content), formats=_FORMATS)


def _damaged(error: Exception) -> ImageUnreadable:
    return ImageUnreadable(f"image is truncated or damaged ({type(error).__name__}: {error})")


def _check_whole(content: bytes, header: Header) -> None:
    """Check that the image is complete: a PNG by its checksums; other formats are decoded."""
    image = _opened(content)
    if header.media_type != "image/png":
        with MEMORY_LIMITER.hold(len(content) + needed(image, image.size)):
            _decode(image)
        return
    try:
        image.verify()
    except Exception as error:  # Pillow's plugins raise nearly anything on a damaged file
        raise _damaged(error) from error


def _opened(content: bytes) -> Image.Image:
    """Open the image: its header is read and no pixel decoded."""
    try:
        image = _open(content)
    except Exception as error:  # as above
        raise _damaged(error) from error
    _check_size(*image.size)  # what Pillow takes for the size need not be what we do
    return image


def _decode(image: Image.Image) -> Image.Image:
    try:
        image.load()
        mode = "RGBA" if image.has_transparency_data else "RGB"
        return image if image.mode in {"L", mode} else image.convert(mode)
    except MemoryError:
        raise
    except Exception as error:  # as above
        raise _damaged(error) from error


def _fit(content: bytes, header: Header, limits: PictureLimits) -> EncodedImage:
    from PIL import Image  # noqa: PLC0415 - as above

    opened = _opened(content)
    width, height = opened.size
    pixels = width * height
    scale = min(1.0, limits.max_side / max(width, height), sqrt(limits.max_pixels / pixels))
    size = _scaled(opened.size, scale)
    with MEMORY_LIMITER.hold(len(content) + needed(opened, size)):
        # Of a JPEG, this decodes a half, a quarter or an eighth of the size.
        opened.draft(None, (int(_REDUCING_GAP * size[0]), int(_REDUCING_GAP * size[1])))
        image = _decode(opened)
        if image.mode == "RGBA" and image.getchannel("A").getextrema() == (255, 255):
            image = image.convert("RGB")  # a browser's screenshot, which shows nothing through
        while True:
            resized = image
            if size != image.size:
                resized = image.resize(size, Image.Resampling.BICUBIC, reducing_gap=_REDUCING_GAP)
            for media_type, encoded in _encodings(
                resized, limits.media_types, is_smaller=size != (width, height)
            ):
                if len(encoded) <= limits.max_bytes:
                    return _encoded(encoded, Header(media_type, *size))
            if size == (1, 1) or not limits.media_types & {"image/png", "image/jpeg"}:
                raise ImageUnreadable(
                    f"image cannot be made to fit {limits.max_bytes} bytes as "
                    f"{', '.join(sorted(limits.media_types))}"
                )
            scale *= _SHRINK
            size = _scaled((width, height), scale)


def _scaled(size: tuple[int, int], scale: float) -> tuple[int, int]:
    return max(1, int(size[0] * scale)), max(1, int(size[1] * scale))


def _encodings(
    image: Image.Image, media_types: frozenset[str], *, is_smaller: bool
) -> Iterator[tuple[str, bytes]]:
    """Yield encodings of the same picture in ever fewer bytes.

    What was made smaller has soft edges: as PNG it takes more bytes, and many times as long to
    encode. Only PNG keeps transparency.
    """
    takes_jpeg = "image/jpeg" in media_types
    skips_png = is_smaller and takes_jpeg and image.mode != "RGBA"
    if "image/png" in media_types and not skips_png:
        yield "image/png", _save(image, "PNG", compress_level=_PNG_LEVEL)
    if takes_jpeg:
        flat = image if image.mode == "RGB" else image.convert("RGB")
        for quality, subsampling in _JPEG_QUALITIES:
            yield "image/jpeg", _save(flat, "JPEG", quality=quality, subsampling=subsampling)


def _save(image: Image.Image, kind: str, **options: int) -> bytes:
    # Nothing of the source file's metadata (times, comments, profiles) goes along.
    image.info.clear()
    buffer = BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def _encoded(content: bytes, header: Header) -> EncodedImage:
    return EncodedImage(sha256(content).hexdigest(), *header, content)
