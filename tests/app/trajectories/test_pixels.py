"""Where two pictures differ: in words, and drawn."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image

from tests.app.trajectories.picture_files import bomb, put
from trajudge.app.images import (
    ImageShelf,
    KnownImage,
    PixelDifference,
    UnknownImage,
    difference_picture,
    pixel_difference,
)

GREY, RED = (120, 120, 120), (220, 0, 0)


def picture(
    shelf: ImageShelf,
    folder: Path,
    name: str,
    size: tuple[int, int] = (200, 100),
    at: tuple[int, int, int, int] | None = None,
) -> KnownImage:
    """A grey picture, with a red box where one is asked for."""
    image = Image.new("RGB", size, GREY)
    if at is not None:
        image.paste(RED, at)
    buffer = BytesIO()
    image.save(buffer, "PNG")
    return put(shelf, folder, buffer.getvalue(), name)


def difference(shelf: ImageShelf, before: KnownImage, after: KnownImage) -> PixelDifference:
    told = pixel_difference(shelf, before, after)
    assert isinstance(told, PixelDifference)
    return told


def test_what_changed_is_told_and_drawn_where_it_is(tmp_path: Path) -> None:
    shelf = ImageShelf(None)
    before = picture(shelf, tmp_path, "a.png")
    after = picture(shelf, tmp_path, "b.png", at=(100, 20, 140, 70))
    told = difference(shelf, before, after)
    assert told.sentence == (
        "10.0 % of the pixels differ, all of them between (100, 20) and (140, 70)."
    )
    drawn = Image.open(BytesIO(difference_picture(shelf, before.sha256, after.sha256)))
    assert (drawn.format, drawn.size) == ("WEBP", (200, 100))
    red, faded = drawn.convert("RGB").getpixel((120, 45)), drawn.convert("RGB").getpixel((20, 45))
    assert isinstance(red, tuple)
    assert isinstance(faded, tuple)
    assert red[0] > 180 and red[1] < 60
    assert min(faded) > 180 and max(faded) - min(faded) < 6


def test_pictures_that_are_alike_and_of_other_sizes(tmp_path: Path) -> None:
    shelf = ImageShelf(None)
    before = picture(shelf, tmp_path, "a.png")
    same = difference(shelf, before, before)
    assert (same.sentence, same.differs) == ("No pixel differs.", False)
    shorter = picture(shelf, tmp_path, "b.png", (200, 75))
    told = difference(shelf, before, shorter)
    assert "25.0 % of the pixels differ" in told.sentence
    assert "other sizes: 200 x 100 and 200 x 75" in told.sentence
    longer = difference(shelf, shorter, before)
    assert (longer.width, longer.height, longer.differs) == (200, 75, False)


def test_what_cannot_be_compared_is_a_sentence(tmp_path: Path) -> None:
    shelf = ImageShelf(None)
    before = picture(shelf, tmp_path, "a.png")
    broken = KnownImage("0" * 64, 1, 1)
    assert "cannot be compared" in str(pixel_difference(shelf, before, broken))
    with pytest.raises(UnknownImage):
        difference_picture(shelf, before.sha256, "0" * 64)
    hostile = put(shelf, tmp_path, bomb(3_000, 3_000), "bomb.png")
    assert "cannot be compared" in str(pixel_difference(shelf, before, hostile))
