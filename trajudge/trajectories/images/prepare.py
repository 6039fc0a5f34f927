"""Screenshots on their way into a prompt: read, checked, and made to fit what a provider takes.

The original bytes are passed through untouched when they fit, so that nothing is re-encoded
without need and the hash is that of the file. Everything read here is untrusted: the declared
size is checked before a decoder sees the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from io import BytesIO
from math import sqrt
from pathlib import Path
from typing import TYPE_CHECKING

from trajudge.trajectories.images.file_state import remembered
from trajudge.trajectories.images.header import Header, not_an_image, read_header
from trajudge.trajectories.images.memory import MEMORY_LIMITER, needed
from trajudge.trajectories.model import ImageRef
from trajudge.trajectories.util.errors import ImageUnreadable
from trajudge.trajectories.util.safe_files import UnsafeFile, open_regular

if TYPE_CHECKING:
    from PIL.Image import Image

MAX_FILE_BYTES = 64 * 2**20
# A full-page screenshot is 2,000 x 20,000 at most; a bomb declares billions.
MAX_DECODED_PIXELS = 64_000_000
# The longest side that JPEG knows. Resampling's table grows with it: a side of 60,000,000 pixels
# would take 3 GB, whatever the other one is.
MAX_DECODED_SIDE = 65_535
_FORMATS = ("PNG", "JPEG", "GIF", "WEBP")
_JPEG_QUALITIES = (90, 75, 60)
_SHRINK = 0.75
# Steps and changed copies of a run share pictures: a folder of 10,000 is remembered as a whole.
_REMEMBERED = 2**14
_GREY_REMEMBERED = 2**9  # of 160 x 120 pixels: 10 MB


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


def load_picture(
    ref: ImageRef, *, max_side: int, max_pixels: int, max_bytes: int, media_types: frozenset[str]
) -> EncodedImage:
    """Load the image that ``ref`` points to, resized and re-encoded only if it does not fit.

    ``max_side`` and ``max_pixels`` in pixels, ``max_bytes`` of the encoded file. Re-encoded as
    PNG, or as JPEG where PNG is not taken or too large; deterministic for one version of Pillow.
    Raises ImageUnreadable (one sentence) if the image cannot be used.
    """
    with _named(ref):
        content, header = _with_header(ref)
        fits = (
            header.media_type in media_types
            and max(header.width, header.height) <= max_side
            and header.width * header.height <= max_pixels
            and len(content) <= max_bytes
        )
        if fits:
            _check_whole(content, header)
            return _encoded(content, header.media_type, header.width, header.height)
        return _fit(content, max_side, max_pixels, max_bytes, media_types)


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


def _open(content: bytes) -> Image:
    from PIL import Image  # noqa: PLC0415 - judges that need no pixels never load Pillow

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


def _opened(content: bytes) -> Image:
    """Open the image: its header is read and no pixel decoded."""
    try:
        image = _open(content)
    except Exception as error:  # as above
        raise _damaged(error) from error
    _check_size(*image.size)  # what Pillow takes for the size need not be what we do
    return image


def _decode(image: Image) -> Image:
    try:
        image.load()
        mode = "RGBA" if image.has_transparency_data else "RGB"
        return image if image.mode in {"L", mode} else image.convert(mode)
    except MemoryError:
        raise
    except Exception as error:  # as above
        raise _damaged(error) from error


def _fit(
    content: bytes, max_side: int, max_pixels: int, max_bytes: int, media_types: frozenset[str]
) -> EncodedImage:
    opened = _opened(content)
    width, height = opened.size
    scale = min(1.0, max_side / max(width, height), sqrt(max_pixels / (width * height)))
    with MEMORY_LIMITER.hold(len(content) + needed(opened, _scaled(opened.size, scale))):
        return _fitted(_decode(opened), scale, max_bytes, media_types)


def _scaled(size: tuple[int, int], scale: float) -> tuple[int, int]:
    return max(1, int(size[0] * scale)), max(1, int(size[1] * scale))


def _fitted(
    image: Image, scale: float, max_bytes: int, media_types: frozenset[str]
) -> EncodedImage:
    from PIL import Image as pillow  # noqa: PLC0415

    while True:
        size = _scaled(image.size, scale)
        resized = image if size == image.size else image.resize(size, pillow.Resampling.LANCZOS)
        for media_type, content in _encodings(resized, media_types):
            if len(content) <= max_bytes:
                return _encoded(content, media_type, *size)
        if size == (1, 1) or not media_types & {"image/png", "image/jpeg"}:
            raise ImageUnreadable(
                f"image cannot be made to fit {max_bytes} bytes as {', '.join(sorted(media_types))}"
            )
        scale *= _SHRINK


def _encodings(image: Image, media_types: frozenset[str]) -> Iterator[tuple[str, bytes]]:
    """Yield encodings of the same picture in ever fewer bytes."""
    if "image/png" in media_types:
        yield "image/png", _save(image, "PNG")
    if "image/jpeg" in media_types:
        flat = image.convert("RGB")
        for quality in _JPEG_QUALITIES:
            yield "image/jpeg", _save(flat, "JPEG", quality=quality)


def _save(image: Image, kind: str, **options: int) -> bytes:
    # Nothing of the source file's metadata (times, comments, profiles) goes along.
    image.info.clear()
    buffer = BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def _encoded(content: bytes, media_type: str, width: int, height: int) -> EncodedImage:
    return EncodedImage(sha256(content).hexdigest(), media_type, width, height, content)
