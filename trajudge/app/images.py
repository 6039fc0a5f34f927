"""Screenshots by the hash of their content, and where two of them differ.

Only files that a loader named are ever served. A picture is known from the page that shows it until
the server ends, or so many others have come that it is forgotten. What is served was checked whole
(type by magic bytes, size before decoding); thumbnails are encoded anew and kept in the user's
cache.
"""

from __future__ import annotations

from collections import OrderedDict
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from PIL import Image, ImageChops, ImageFilter

from trajudge.trajectories.images import (
    MEMORY_LIMITER,
    UNCHANGED,
    EncodedImage,
    load_picture,
    needed,
    read_header,
)
from trajudge.trajectories.model import MAX_FILE_BYTES, ImageRef
from trajudge.util.errors import ImageUnreadable
from trajudge.util.files import DataFolder, FileCache, UnsafeFile, read_regular

WIDTHS = (256, 640)
"""Widths of thumbnails, in pixels; a very long page is cut to one and a half times its width."""
CACHE_BYTES = 512 * 2**20
_QUALITY = 70
_MOST_KNOWN, _MOST_INLINE = 200_000, 64 * 2**20


class KnownImage(NamedTuple):
    """Hash of the file's bytes, and width and height in pixels as its header declares them."""

    sha256: str
    width: int
    height: int


class UnknownImage(LookupError):
    """No page that was opened shows an image of this hash."""


class ImageShelf:
    """The images that may be asked for; threads share it.

    ``folder`` keeps thumbnails, at most ``cache_bytes`` of them; None: they are made each time.
    """

    def __init__(self, folder: Path | None, cache_bytes: int = CACHE_BYTES) -> None:
        self._thumbnails = None if folder is None else FileCache(folder, cache_bytes)
        self._refs: OrderedDict[str, ImageRef] = OrderedDict()
        self._inline = 0
        self._known: dict[tuple[str, int, int], KnownImage] = {}
        self._lock = Lock()

    def put(self, ref: ImageRef, root: DataFolder | None) -> KnownImage:
        """Make an image known. Raises ImageUnreadable (one sentence) for one that is missing, no
        picture, too large, or outside of ``root``."""
        if ref.problem is not None:
            raise ImageUnreadable(ref.problem)
        if ref.data is not None:
            image = _described(ref.data)
        else:
            image = self._in_file(Path(ref.path or ""), root)
        with self._lock:
            self._keep(image.sha256, ref)
        return image

    def knows(self, digest: str) -> bool:
        """Tell whether a page that was opened shows an image of this hash."""
        with self._lock:
            return digest in self._refs

    def original(self, digest: str) -> EncodedImage:
        """Return the image as it was recorded. Raises UnknownImage, ImageUnreadable."""
        with self._lock:
            ref = self._refs.get(digest)
        if ref is None:
            raise UnknownImage(digest)
        loaded = load_picture(ref, UNCHANGED)
        if loaded.sha256 != digest:
            raise ImageUnreadable("the file has changed since its page was opened: open it again")
        return loaded

    def thumbnail(self, digest: str, width: int) -> bytes:
        """Return the image as WebP, at most ``width`` pixels wide. Raises as ``original``."""
        if not self.knows(digest):
            raise UnknownImage(digest)
        name, kept = f"{digest}-{width}.webp", self._thumbnails
        if kept is not None and (content := kept.get(name)) is not None:
            return content
        content = _shrunk(self.original(digest).data, width)
        if kept is not None:
            kept.put(name, content)
        return content

    def _in_file(self, path: Path, root: DataFolder | None) -> KnownImage:
        if root is None or not root.holds(path):
            raise ImageUnreadable(f"{path.name} lies outside of the data and is not shown")
        try:
            status = path.stat()
            place = (str(path), status.st_size, status.st_mtime_ns)
            if place not in self._known:
                self._known[place] = _described(read_regular(path, MAX_FILE_BYTES))
            return self._known[place]
        except UnsafeFile as error:
            raise ImageUnreadable(str(error)) from error
        except OSError as error:
            raise ImageUnreadable(f"{path.name} cannot be read ({error.strerror})") from error
        except ImageUnreadable as error:
            raise ImageUnreadable(f"{path.name}: {error}") from error

    def _keep(self, digest: str, ref: ImageRef) -> None:
        if digest in self._refs:
            self._refs.move_to_end(digest)
            return
        self._refs[digest] = ref
        self._inline += len(ref.data or b"")
        while len(self._refs) > _MOST_KNOWN or self._inline > _MOST_INLINE:
            _, gone = self._refs.popitem(last=False)
            self._inline -= len(gone.data or b"")


def _described(content: bytes) -> KnownImage:
    header = read_header(content)
    return KnownImage(sha256(content).hexdigest(), header.width, header.height)


def _shrunk(content: bytes, width: int) -> bytes:
    with Image.open(BytesIO(content)) as image:
        share = min(1.0, width / image.width)
        size = max(1, round(image.width * share)), max(1, round(image.height * share))
        with MEMORY_LIMITER.hold(len(content) + needed(image, size)):
            small = image.convert("RGB").resize(size, Image.Resampling.LANCZOS)
    small = small.crop((0, 0, small.width, min(small.height, width * 3 // 2)))
    encoded = BytesIO()
    small.save(encoded, "WEBP", quality=_QUALITY, method=4)
    return encoded.getvalue()


# A channel may differ by so much of 255 before a pixel counts: less is noise of encoders.
_NOISE = 16
_RIM = (179, 0, 107)
# So far around a pixel that differs the picture is shown, or a line of text would be all rim.
_NEAR, _RIM_PIXELS = 9, 2
_FADED = 0.65
_DIFFERENCE_QUALITY = 80


class PixelDifference(NamedTuple):
    """The hashes of two pictures, the size of the first, and in words how they differ; ``differs``
    False: there is nothing to draw."""

    before: str
    after: str
    width: int
    height: int
    sentence: str
    differs: bool


def pixel_difference(
    shelf: ImageShelf, before: KnownImage, after: KnownImage
) -> PixelDifference | str:
    """Compare two pictures; a sentence where one of them cannot be read."""
    try:
        first, _, mask = _compared(shelf, before.sha256, after.sha256)
    except (ImageUnreadable, UnknownImage) as error:
        return f"The pictures cannot be compared: {error}."
    changed = mask.histogram()[255]
    box = mask.getbbox()
    share = changed / (first.width * first.height)
    sentence = "No pixel differs."
    if box is not None:
        shown = "less than 0.1" if share < 0.001 else f"{100 * share:.1f}"
        sentence = (
            f"{shown} % of the pixels differ, all of them between ({box[0]}, {box[1]}) and "
            f"({box[2]}, {box[3]})."
        )
    if (before.width, before.height) != (after.width, after.height):
        sentence += (
            f" The pictures have other sizes: {before.width} x {before.height} and "
            f"{after.width} x {after.height}."
        )
    return PixelDifference(
        before.sha256, after.sha256, first.width, first.height, sentence, box is not None
    )


def difference_picture(shelf: ImageShelf, before: str, after: str) -> bytes:
    """Draw what is new in its colours, rimmed, on the picture before, which is faded; as WebP.
    Raises UnknownImage, ImageUnreadable."""
    first, second, mask = _compared(shelf, before, after)
    drawn = first.convert("L").convert("RGB")
    drawn = Image.blend(drawn, Image.new("RGB", drawn.size, "white"), _FADED)
    drawn.paste(_RIM, mask=mask.filter(ImageFilter.BoxBlur(_NEAR + _RIM_PIXELS)).point(_any))
    drawn.paste(second, mask=mask.filter(ImageFilter.BoxBlur(_NEAR)).point(_any))
    encoded = BytesIO()
    drawn.save(encoded, "WEBP", quality=_DIFFERENCE_QUALITY, method=2)
    return encoded.getvalue()


def _compared(
    shelf: ImageShelf, before: str, after: str
) -> tuple[Image.Image, Image.Image, Image.Image]:
    """Decode both in the size of the first, with a mask of the pixels that differ."""
    contents = [shelf.original(each).data for each in (before, after)]
    with Image.open(BytesIO(contents[0])) as one, Image.open(BytesIO(contents[1])) as other:
        held = sum(map(len, contents)) + needed(one, one.size) + needed(other, other.size)
        with MEMORY_LIMITER.hold(held):
            first, second = one.convert("RGB"), other.convert("RGB")
            missing = Image.new("L", first.size, 255)
            missing.paste(0, (0, 0, *second.size))
            second = second.crop((0, 0, *first.size))
            red, green, blue = ImageChops.difference(first, second).split()
            mask = ImageChops.lighter(ImageChops.lighter(red, green), blue).point(_counts)
            return first, second, ImageChops.lighter(mask, missing)


def _counts(value: int) -> int:
    return 255 if value > _NOISE else 0


def _any(value: int) -> int:
    return 255 if value else 0
