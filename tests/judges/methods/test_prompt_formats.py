"""The published prompts, used exactly as the reference builds its messages."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from tests.judges.runs import mug_run, png, shown
from trajudge.judges.methods.prompt_formats import PaperPrompt
from trajudge.judges.model import Picture, Text
from trajudge.judges.prompting.pictures import ImageLimits, picture
from trajudge.prompts.published import load_published
from trajudge.trajectories.represent import Representation
from trajudge.trajectories.tokens import count_tokens
from trajudge.trajectories.truncation import views

pytestmark = pytest.mark.skipif(
    find_spec("agent_reward_bench") is None, reason="agent-reward-bench is not installed"
)


@pytest.mark.parametrize("representation", list(Representation))
def test_the_parts_come_in_the_references_order(representation: Representation) -> None:
    texts = load_published()
    view = next(views(mug_run(), representation, 100_000))
    form = PaperPrompt(representation, "last")
    images = [picture(png(), ImageLimits())] if representation.shows_screenshot else []
    system, user = form.messages(view, images)
    assert system.parts == (Text(text=texts.system("last")),)
    steps = "".join(
        texts.step(number, step.observation.url, step.action, step.reasoning)
        for number, step in enumerate(mug_run().steps, start=1)
    )
    tree = mug_run().final.axtree if representation.shows_axtree else None
    expected = texts.before_picture(mug_run().goal, steps, tree)
    if representation.shows_screenshot:
        expected.append(texts.screenshot_text)
    expected.append(texts.final)
    assert [part.text for part in user.parts if isinstance(part, Text)] == expected
    kinds = ["image" if isinstance(part, Picture) else "text" for part in user.parts]
    assert kinds.count("image") == representation.shows_screenshot
    assert not representation.shows_screenshot or kinds[-2] == "image"


def test_the_forms_own_words_are_counted() -> None:
    for representation in Representation:
        form = PaperPrompt(representation, "first")
        view = next(views(mug_run(answer=None), representation, 100_000))
        assert shown(form.messages(view, ()), count_tokens) <= view.tokens + form.tokens


def test_steps_that_were_left_out_are_said() -> None:
    run = mug_run()
    long = mug_run(steps=run.steps * 40)
    view = next(views(long, Representation.NONE, 2_000))
    text = " ".join(
        p.text
        for p in PaperPrompt(Representation.NONE, "first").messages(view, ())[1].parts
        if isinstance(p, Text)
    )
    assert f"[... {view.elided} steps left out ...]" in text
