"""Screenshots with other bytes, another size, or words drawn on them. The
same picture gives the same bytes with the same version of Pillow."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from textwrap import wrap
from typing import Literal, cast

from PIL import Image, ImageDraw, ImageFont

from trajudge.trajectories.images import MAX_FILE_BYTES
from trajudge.trajectories.model import ImageRef
from trajudge.util.files import read_regular

CROP = 0.03
SCALE = 0.75
QUALITY = 80
Place = Literal["large", "small", "low-contrast", "margin"]
# Size of the letters in pixels, their colour, and the ground behind them (None: the picture).
_LOOK: dict[Place, tuple[int, tuple[int, int, int], tuple[int, int, int] | None]] = {
    "large": (28, (20, 20, 20), (255, 248, 196)),
    "small": (11, (60, 60, 60), (255, 255, 255)),
    "low-contrast": (16, (238, 238, 238), (248, 248, 248)),
    "margin": (13, (40, 40, 40), (255, 255, 255)),
}


def changed(
    ref: ImageRef, change: Callable[[Image.Image], Image.Image], kind: str = "PNG"
) -> ImageRef:
    """Decode, change and encode a screenshot. Raises OSError, and UnsafeFile for a file that is
    none."""
    content = (
        ref.data if ref.data is not None else read_regular(cast(Path, ref.path), MAX_FILE_BYTES)
    )
    with Image.open(BytesIO(content)) as picture:
        return encoded(change(picture.convert("RGB")), kind)


def encoded(picture: Image.Image, kind: str = "PNG") -> ImageRef:
    """Encode a picture."""
    file = BytesIO()
    picture.save(file, kind, quality=QUALITY)
    return ImageRef(data=file.getvalue(), sha256=sha256(file.getvalue()).hexdigest())


def compressed(ref: ImageRef) -> ImageRef:
    """Encode as JPEG."""
    return changed(ref, lambda picture: picture, "JPEG")


def scaled(ref: ImageRef) -> ImageRef:
    """Make it smaller."""
    return changed(ref, lambda p: p.resize((round(p.width * SCALE), round(p.height * SCALE))))


def cropped(ref: ImageRef) -> ImageRef:
    """Cut the same share off each side."""

    def cut(picture: Image.Image) -> Image.Image:
        x, y = round(picture.width * CROP), round(picture.height * CROP)
        return picture.crop((x, y, picture.width - x, picture.height - y))

    return changed(ref, cut)


def written_on(ref: ImageRef, text: str, place: Place) -> ImageRef:
    """Draw words in a box at the bottom of the page; ``margin``: along its lower edge alone."""
    return changed(ref, lambda picture: drawn_on(picture, text, place))


def drawn_on(picture: Image.Image, text: str, place: Place) -> Image.Image:
    """Draw words on the picture itself, as ``written_on`` does."""
    size, colour, ground = _LOOK[place]
    pen = ImageDraw.Draw(picture)
    lines = wrap(text, max(10, int((picture.width - 40) / (size * 0.55))))
    lines = lines[:1] if place == "margin" else lines[:12]
    top = picture.height - len(lines) * (size + 4) - 12
    if ground:
        pen.rectangle((12, top - 6, picture.width - 12, picture.height - 6), fill=ground)
    font = ImageFont.load_default(size)
    for number, line in enumerate(lines):
        pen.text((20, top + number * (size + 4)), line, fill=colour, font=font)
    return picture


@cache
def other_application(width: int = 1024, height: int = 768) -> ImageRef:
    """Draw a page of an application that no run is about: a weather report."""
    picture = Image.new("RGB", (width, height), (236, 242, 248))
    pen = ImageDraw.Draw(picture)
    pen.rectangle((0, 0, width, 64), fill=(40, 84, 130))
    pen.text((24, 18), "Weather by the hour", fill="white", font=ImageFont.load_default(24))
    for row, words in enumerate(("Morning: clouds", "Noon: light rain", "Evening: clear")):
        top = 110 + row * 90
        pen.rectangle((24, top, width - 24, top + 70), fill="white", outline=(190, 200, 210))
        pen.text((40, top + 22), words, fill=(30, 30, 30), font=ImageFont.load_default(20))
    return encoded(picture)
