"""Pictures arrive within the limits of the model."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from typing import Any

import pytest
from PIL import Image

from tests.judges.runs import StagedAsk, png, seen_run
from trajudge.judges import prompting
from trajudge.judges.judging import judge_trajectory
from trajudge.judges.prompting import ImageLimits, picture, picture_tokens
from trajudge.judges.registry import JUDGES, make_judge, needs_of
from trajudge.trajectories import images
from trajudge.trajectories.images import PictureLoader
from trajudge.trajectories.model import ImageRef
from trajudge.util.errors import ImageUnreadable

pytestmark = pytest.mark.anyio


async def test_a_picture_that_fits_is_sent_untouched() -> None:
    ref = png(30, 20)
    shown = await picture(ref, ImageLimits())
    assert (shown.data, shown.media_type) == (ref.data, "image/png")
    assert (shown.width, shown.height) == (30, 20)


async def test_a_picture_that_is_too_large_is_made_smaller() -> None:
    shown = await picture(png(400, 200), ImageLimits(max_side=100))
    assert (shown.width, shown.height) == (100, 50)


async def test_tokens_by_the_models_formula() -> None:
    shown = await picture(png(512, 512), ImageLimits())
    assert picture_tokens(shown, ImageLimits(pricing="openai")) == 255


async def test_what_is_no_image_is_said() -> None:
    with pytest.raises(ImageUnreadable):
        await picture(ImageRef(data=b"<html>"), ImageLimits())


SEEING = [
    (name, options)
    for name, entry in JUDGES.items()
    for options in ({}, {"representation": "screenshot"}, {"cross_modal": "fail"})
    if entry.needs_model
    and not entry.composed
    and ("representation" not in options or "screenshot" in entry.representations[1:])
    and needs_of(name, options).screenshots
]


@pytest.mark.parametrize(("name", "options"), SEEING)
async def test_no_judge_opens_a_picture_on_the_event_loop(
    name: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = set()

    def opening(content: bytes) -> Image.Image:
        threads.add(threading.current_thread().name)
        return opened(content)

    opened = images._open
    monkeypatch.setattr(images, "_open", opening)
    monkeypatch.setattr(prompting, "_LOADER", PictureLoader(lambda: None))
    judge_id, judge = make_judge(name, options)
    await judge_trajectory(judge_id, judge, seen_run(), StagedAsk(), needs=needs_of(name, options))
    assert threads
    assert threading.current_thread().name not in threads


async def test_a_cancelled_judgment_leaves_the_picture_to_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    go = threading.Event()

    def no_folder() -> None:
        assert go.wait(10)

    monkeypatch.setattr(prompting, "_LOADER", PictureLoader(no_folder))
    ref, limits = png(400, 200), ImageLimits(max_side=100)
    waiting = [asyncio.create_task(picture(ref, limits)) for _ in range(2)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    with suppress(asyncio.CancelledError):
        await waiting[0]
    go.set()
    assert (await waiting[1]).width == 100
    assert waiting[0].cancelled()
