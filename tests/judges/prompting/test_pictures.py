"""Pictures arrive within the limits of the model."""

from __future__ import annotations

import pytest

from tests.judges.runs import png
from trajudge.judges.prompting import ImageLimits, picture, picture_tokens
from trajudge.trajectories.model import ImageRef
from trajudge.util.errors import ImageUnreadable


def test_a_picture_that_fits_is_sent_untouched() -> None:
    ref = png(30, 20)
    shown = picture(ref, ImageLimits())
    assert (shown.data, shown.media_type) == (ref.data, "image/png")
    assert (shown.width, shown.height) == (30, 20)


def test_a_picture_that_is_too_large_is_made_smaller() -> None:
    shown = picture(png(400, 200), ImageLimits(max_side=100))
    assert (shown.width, shown.height) == (100, 50)


def test_tokens_by_the_models_formula() -> None:
    shown = picture(png(512, 512), ImageLimits())
    assert picture_tokens(shown, ImageLimits(pricing="openai")) == 255


def test_what_is_no_image_is_said() -> None:
    with pytest.raises(ImageUnreadable):
        picture(ImageRef(data=b"<html>"), ImageLimits())
