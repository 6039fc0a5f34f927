"""Calls and messages of each judge, as its source makes them, on runs of three shapes."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any, NamedTuple

import pytest

from tests.judges.methods.replies import BROWSER_USE as JUDGEMENT
from tests.judges.methods.replies import INSTA as SCORES
from tests.judges.runs import StagedAsk, pictures, seen_run, texts
from trajudge.judges.judging import CallArgs
from trajudge.judges.model import Verdict
from trajudge.judges.registry import make_judge
from trajudge.trajectories.model import Trajectory
from trajudge.trajectories.represent import MissingObservation

STATUS = "Thoughts: fine.\nStatus: success\nReward: 4"
VERDICTS = {"insta": SCORES, "browser-use": JUDGEMENT}


class Shape(NamedTuple):
    """Calls by stage on a run of 60 steps; parts of the user's message of the verdict on one of 3
    steps (T a text, I an image), and the detail that images are asked for with."""

    calls: dict[str, int]
    parts: str
    detail: str | None = None
    needs_screenshots: bool = True


SHAPES = {
    "webjudge": Shape({"key_points": 1, "screenshot": 60, "verdict": 1}, "TIII", "high"),
    "webvoyager": Shape({"verdict": 1}, "TIIIT"),
    "aer-c": Shape({"caption": 1, "verdict": 1}, "T"),
    "aer-v": Shape({"verdict": 1}, "TI"),
    "nnetnav": Shape({"describe": 59, "verdict": 1}, "T", needs_screenshots=False),
    "insta": Shape({"verdict": 1}, "T", needs_screenshots=False),
    "browser-use": Shape({"verdict": 1}, "TIII", needs_screenshots=False),
}


def verdict(name: str, options: dict[str, Any], run: Trajectory, ask: StagedAsk) -> Verdict:
    async def judged() -> Verdict:
        return await make_judge(name, options)[1](run, ask)

    return asyncio.run(judged())


def asked(name: str, run: Trajectory, **options: object) -> list[CallArgs]:
    ask = StagedAsk(verdict=VERDICTS.get(name, STATUS))
    verdict(name, options, run, ask)
    return ask.asked


def verdict_of(calls: list[CallArgs]) -> CallArgs:
    return next(call for call in calls if call.stage == "verdict")


@pytest.mark.parametrize("name", SHAPES)
def test_the_calls_of_a_long_run_are_those_of_the_source(name: str) -> None:
    calls = asked(name, seen_run(60))
    assert Counter(call.stage for call in calls) == SHAPES[name].calls
    for call in calls:
        assert [message.role for message in call.messages] == ["system", "user"]


@pytest.mark.parametrize("name", SHAPES)
def test_text_and_images_stand_in_the_order_of_the_source(name: str) -> None:
    calls = asked(name, seen_run(3))
    user = verdict_of(calls).messages[1]
    kinds = {"text": "T", "image": "I"}
    assert "".join(kinds[part.kind] for part in user.parts) == SHAPES[name].parts
    shown = [picture for call in calls for picture in pictures(call.messages)]
    assert {picture.detail for picture in shown} <= {SHAPES[name].detail}
    widths = [picture.width for picture in pictures([user])]
    assert widths == sorted(widths)


def test_a_caption_is_asked_for_before_its_picture_as_in_the_source() -> None:
    [caption, _] = asked("aer-c", seen_run(3))
    assert [part.kind for part in caption.messages[1].parts] == ["text", "image"]


@pytest.mark.parametrize("variant", ["general", "online-mind2web"])
def test_webjudge_says_nothing_of_screenshots_where_none_passes(variant: str) -> None:
    """So ended more than half of the published judgments; that none matters is nobody's finding."""
    ask = StagedAsk(verdict=STATUS, screenshot="Reasoning: nothing here.\nScore: 2")
    verdict("webjudge", {"variant": variant}, seen_run(3), ask)
    prompt = texts(verdict_of(ask.asked).messages)[1]
    assert "screenshot" not in prompt.lower()
    assert "picture" not in prompt.lower()
    assert "notes>" not in prompt


@pytest.mark.parametrize("name", SHAPES)
def test_a_run_without_screenshots_is_judged_only_by_who_needs_none(name: str) -> None:
    run = seen_run(3)
    steps = [
        step.model_copy(
            update={"observation": step.observation.model_copy(update={"screenshot": None})}
        )
        for step in run.steps
    ]
    blind = run.model_copy(update={"steps": tuple(steps)})
    if SHAPES[name].needs_screenshots:
        with pytest.raises(MissingObservation):
            asked(name, blind)
    else:
        calls = asked(name, blind)
        assert not [picture for call in calls for picture in pictures(call.messages)]


@pytest.mark.parametrize(
    ("name", "images"), [("webjudge", 50), ("webvoyager", 15), ("aer-v", 1), ("browser-use", 10)]
)
def test_so_many_images_are_shown_of_a_long_run(name: str, images: int) -> None:
    shown = pictures(verdict_of(asked(name, seen_run(60))).messages)
    assert [picture.width for picture in shown] == list(range(68 - images, 68))


@pytest.mark.parametrize(("grade", "is_shown"), [(2, False), (3, True)])
def test_webjudge_shows_what_scores_three(grade: int, is_shown: bool) -> None:
    reply = f"Reasoning: a page on the way.\n\nNothing else.\nScore: {grade}"
    ask = StagedAsk(verdict=STATUS, screenshot=reply)
    verdict("webjudge", {}, seen_run(3), ask)
    assert bool(pictures(verdict_of(ask.asked).messages)) == is_shown


LONG_NOTE = "It shows a filter. " * 160


@pytest.mark.parametrize("variant", ["general", "online-mind2web"])
def test_a_note_of_webjudge_is_kept_whole_or_to_its_first_paragraph(variant: str) -> None:
    """Two thirds of real notes are longer than 200 tokens; these are of some 800."""
    reply = f"Reasoning: {LONG_NOTE}\nSecond line.\n\nSecond paragraph.\nScore: 5"
    ask = StagedAsk(verdict=STATUS, screenshot=reply)
    verdict("webjudge", {"variant": variant}, seen_run(2), ask)
    prompt = texts(verdict_of(ask.asked).messages)[1]
    assert prompt.count(f"{LONG_NOTE} Second line.") == 2
    assert ("Second paragraph." in prompt) == (variant == "general")


def test_webjudge_shows_thoughts_in_one_variant_alone() -> None:
    for variant, shows in (("general", True), ("online-mind2web", False)):
        prompt = texts(verdict_of(asked("webjudge", seen_run(3), variant=variant)).messages)[1]
        assert ("Thoughts: I look for a mug." in prompt) == shows


def test_webvoyager_takes_a_run_without_an_answer_as_its_source_where_asked_to() -> None:
    for answer in (None, " "):
        silent = seen_run(3, answer=answer)
        ask = StagedAsk(verdict=STATUS)
        options = {"unanswered": "failure"}
        assert make_judge("webvoyager", options)[0] == "webvoyager-unanswered-failure"
        assert verdict("webvoyager", options, silent, ask).success is False
        assert not ask.asked
    assert len(asked("webvoyager", seen_run(3, answer=None))) == 1
