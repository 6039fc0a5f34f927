"""Where the pictures before and after an action differ, pixel by pixel."""

from __future__ import annotations

from io import BytesIO
from typing import NamedTuple

from PIL import Image, ImageChops, ImageFilter

from trajudge.app.trajectories.images import ImageShelf, KnownImage, UnknownImage
from trajudge.trajectories.images import MEMORY_LIMITER, needed
from trajudge.util.errors import ImageUnreadable

# A channel may differ by so much of 255 before a pixel counts: less is noise of encoders.
_NOISE = 16
_RIM = (179, 0, 107)
# So far around a pixel that differs the picture is shown, or a line of text would be all rim.
_NEAR, _RIM_PIXELS = 9, 2
_FADED = 0.65
_QUALITY = 80


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
    drawn.save(encoded, "WEBP", quality=_QUALITY, method=2)
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
