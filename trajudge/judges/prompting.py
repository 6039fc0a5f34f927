"""What a judge's prompt is made of: truncated views, screenshots within a model's limits, trees,
steps in other renderings.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Literal, NamedTuple, TypeVar

import orjson
from pydantic import JsonValue, field_serializer

from trajudge.judges.adapters.errors import ContextOverflow
from trajudge.judges.adapters.failures import overflow_numbers
from trajudge.judges.model import Detail, Message, Model, Part, Picture, Reply, Text
from trajudge.prompts.render import Prompt, sendable
from trajudge.prompts.untrusted import JUDGE_TAGS, neutralise
from trajudge.trajectories.images import PictureLimits, PictureLoader
from trajudge.trajectories.model import ImageRef, Observation, Record, Trajectory, checked
from trajudge.trajectories.needs import spread
from trajudge.trajectories.represent import (
    MissingObservation,
    Representation,
    StepLine,
    final_screenshot,
)
from trajudge.trajectories.tokens import ImagePricing, count_tokens, image_tokens, most_tokens
from trajudge.trajectories.truncate import (
    MARKER_TOKENS,
    MAX_OVERFLOWS,
    SHRINK,
    PromptTruncator,
    TruncatedView,
    TruncationLevel,
    Views,
    cut_middle,
)
from trajudge.util.files import FileCache
from trajudge.util.machine import kept_folder


class ImageLimits(Record):
    """What a model takes: longest side and all pixels of an image, bytes of its file, media types;
    and by whose formula an image is counted in tokens. The defaults suit every provider."""

    max_side: int = 2048
    max_pixels: int = 4_000_000
    max_bytes: int = 5_000_000
    media_types: frozenset[str] = frozenset({"image/png", "image/jpeg", "image/webp", "image/gif"})
    pricing: ImagePricing = "unknown"

    @field_serializer("media_types")
    def _in_order(self, media_types: frozenset[str]) -> list[str]:
        # A set's order differs from process to process, and a run's manifest must not.
        return sorted(media_types)

    @cached_property
    def of_file(self) -> PictureLimits:
        """The limits of the file, without the price."""
        return PictureLimits(self.max_side, self.max_pixels, self.max_bytes, self.media_types)


MAX_RESIZED_BYTES = 512 * 2**20

"""Bytes of resized pictures in the user's cache folder, shared by all runs."""


def _resized_pictures() -> FileCache | None:
    folder = kept_folder("pictures")
    return None if folder is None else _open_pictures(folder)


@cache
def _open_pictures(folder: Path) -> FileCache:
    return FileCache(folder, MAX_RESIZED_BYTES)


_LOADER = PictureLoader(_resized_pictures)


async def picture(ref: ImageRef, limits: ImageLimits, detail: Detail | None = None) -> Picture:
    """Load the image behind ``ref`` in a thread, to be sent with ``detail``. Raises
    ImageUnreadable."""
    loading = _LOADER.load(ref, limits.of_file)
    if not loading.done():  # shielded: other judgments may wait for the same picture
        await asyncio.shield(asyncio.wrap_future(loading))
    image = loading.result()
    return Picture(
        sha256=image.sha256,
        media_type=image.media_type,
        width=image.width,
        height=image.height,
        detail=detail,
        data=image.data,
    )


def picture_tokens(shown: Picture, limits: ImageLimits) -> int:
    """Estimate the tokens that the picture takes in the prompt."""
    return image_tokens(shown.width, shown.height, limits.pricing)


class AuxiliaryModel(Record):
    """A model beside the run's own, such as a captioner, and the limits of its prompts.

    ``model`` is the name to pass to a ``Model``, None for the run's own model;
    ``max_prompt_tokens`` is what its window leaves for the prompt, pictures included.
    """

    model: str | None = None
    max_prompt_tokens: int = 120_000
    images: ImageLimits = ImageLimits()

    def __str__(self) -> str:
        return self.model or "own"


class Shot(NamedTuple):
    """The screenshot of step ``number``, counted from 1."""

    number: int
    image: ImageRef


def recorded(trajectory: Trajectory) -> list[Shot]:
    """Return every screenshot of the run in order. Raises MissingObservation if there is none."""
    shots = [
        Shot(number, step.observation.screenshot)
        for number, step in enumerate(trajectory.steps, start=1)
        if step.observation.screenshot is not None
    ]
    if not shots:
        raise MissingObservation(f"{trajectory.key}: no step has a screenshot")
    return shots


def evenly_spaced(trajectory: Trajectory, count: int) -> list[Shot]:
    """Choose at most ``count`` screenshots at even distances: the final one always, the first one
    where ``count`` is above 1. Raises MissingObservation if there is no final one."""
    final_screenshot(trajectory)
    return spread(recorded(trajectory), count)


async def first_that_fit(
    images: Sequence[ImageRef],
    budget: int,
    limits: ImageLimits,
    text_tokens: Sequence[int] = (),
    detail: Detail | None = None,
) -> list[Picture]:
    """Load as many images from the beginning as take at most ``budget`` tokens; ``text_tokens`` are
    those of the text that goes with each. Raises ImageUnreadable."""
    shown: list[Picture] = []
    taken = 0
    for image, text in zip(images, text_tokens or [0] * len(images), strict=True):
        loaded = await picture(image, limits, detail)
        tokens = picture_tokens(loaded, limits) + text
        if taken + tokens > budget:
            break
        shown.append(loaded)
        taken += tokens
    return shown


StepForm = Literal["tags", "list", "table", "json"]

ABSENT = "none"

"""The cell of a field that a step does not have; a text of this one word is written ``\\none``."""

_INDENT = "\n      "

_ESCAPES = {"\\": "\\\\", "|": "\\|", "\n": "\\n", "\r": "\\r"}


def rendered_steps(prompt: Prompt, form: StepForm, view: TruncatedView) -> str:
    """Render the steps of a view by ``steps_FORM`` of the prompt folder."""
    steps = [_FORMS[form](_safe(step, prompt.tags | JUDGE_TAGS)) for step in view.steps]
    return prompt.render(f"steps_{form}", steps=steps, head=view.head, elided=view.elided)


def _safe(step: StepLine, tags: frozenset[str]) -> StepLine:
    texts = (None if text is None else sendable(neutralise(text, tags)) for text in step[1:])
    return StepLine(step.number, *texts)


def _fields(step: StepLine) -> list[tuple[str, str | None]]:
    return [("url", step.url), ("thought", step.reasoning), ("action", step.action)]


def _item(step: StepLine) -> object:
    """Return number and fields; lines after a text's first are indented further than any field."""
    given = [(name, text) for name, text in _fields(step) if text is not None]
    return step.number, [(name, text.replace("\n", _INDENT)) for name, text in given]


def _row(step: StepLine) -> object:
    return step.number, [_celled(text) for _, text in _fields(step)]


def _celled(text: str | None) -> str:
    if text is None:
        return ABSENT
    if text == ABSENT:
        return f"\\{ABSENT}"
    return "".join(_ESCAPES.get(character, character) for character in text)


def _object(step: StepLine) -> object:
    return orjson.dumps({"step": step.number, **dict(_fields(step))}).decode()


_FORMS: dict[StepForm, Callable[[StepLine], object]] = {
    "list": _item,
    "table": _row,
    "json": _object,
}


class TwoTrees(NamedTuple):
    """Two accessibility trees, and how far down the ladder they stand."""

    rung: TruncationLevel
    before: str
    after: str


def two_trees(before: Observation, after: Observation, budget: int) -> TwoTrees | None:
    """Fit both trees into ``budget`` tokens: full, pruned, or cut in the middle; None if not even
    the markers of the cuts fit."""
    first, second = before.axtree or "", after.axtree or ""
    for rung in (TruncationLevel.FULL, TruncationLevel.PRUNED):
        if rung is TruncationLevel.PRUNED or not (first and second):
            first, second = before.axtree_pruned or first, after.axtree_pruned or second
        if _fit(first, second, budget):
            return TwoTrees(rung, first, second)
    if budget < 2 * MARKER_TOKENS:
        return None
    first = cut_middle(first, max(budget // 2, budget - count_tokens(second)))
    second = cut_middle(second, budget - count_tokens(first))
    return TwoTrees(TruncationLevel.CUT, first, second)


def _fit(first: str, second: str, budget: int) -> bool:
    """Return True if both fit; nothing is counted where their upper bound fits."""
    if most_tokens(first) + most_tokens(second) <= budget:
        return True
    return count_tokens(first) + count_tokens(second) <= budget


def check_trees(trajectory: Trajectory) -> None:
    """Raise MissingObservation unless every observation has a tree."""
    if not trajectory.steps:
        raise MissingObservation(f"{trajectory.key}: no step is recorded")
    for number, step in enumerate(trajectory.steps, start=1):
        if not (step.observation.axtree or step.observation.axtree_pruned):
            raise MissingObservation(
                f"{trajectory.key}: step {number} has no accessibility tree, and every change is "
                "described from two"
            )


# Below what a server says that it takes: the share of texts that our count gets wrong differs.
CLOSE = 0.92

# Of the window, for the reply: what a run asks for by default.
REPLY_ROOM = 1024

T = TypeVar("T")

EMPTY_VIEW = TruncatedView(
    rung=TruncationLevel.FULL, goal="", steps=(), head=0, elided=0, answer="", axtree=""
)

"""A view without a word: what a template takes by itself."""


class TruncatedPrompt(NamedTuple):
    """Messages that fit; ``rung`` names the truncation level."""

    rung: str
    messages: Sequence[Message]


async def ask_with_truncation(
    ask: Model,
    make: Callable[[int], Awaitable[TruncatedPrompt | None]],
    *,
    limit: int,
    images: ImageLimits | None = None,
    stage: str = "verdict",
    model: str | None = None,
    assume: str = "",
    **parameters: JsonValue,
) -> Reply:
    """Ask with ever shorter prompts and return the reply to the first that is not too long.

    ``make`` gives the longest prompt within a number of tokens, None if nothing sensible fits; the
    first budget is ``limit``, the next ones follow from the server's error message or are a share
    of the prompt that was too long. Raises ContextOverflow, and whatever else ``ask`` raises.
    """
    overflow = ContextOverflow(f"the prompt does not fit {limit} tokens however it is cut")
    budget = limit
    for _ in range(MAX_OVERFLOWS + 1):
        prompt = await make(budget)
        if prompt is None:
            break
        try:
            return await ask(
                prompt.messages,
                stage=stage,
                rung=prompt.rung,
                model=model,
                assume=assume,
                **parameters,
            )
        except ContextOverflow as error:
            overflow = error
        counted = prompt_tokens(prompt.messages, images)
        stated_budget = budget_after_overflow(overflow, counted)
        budget = int(SHRINK * counted) if stated_budget is None else stated_budget
    raise overflow


async def ask_down_the_views(
    ask: Model,
    shorter: Iterator[TruncatedView],
    messages: Callable[[TruncatedView], Sequence[Message]],
    *,
    around: int,
    limit: int,
    assume: str = "",
    **parameters: JsonValue,
) -> tuple[Reply, TruncatedView]:
    """Ask with ever shorter views of a run; return the reply to the first that is not too long, and
    that view.

    ``around`` are the tokens of the prompt without the view. Raises ContextOverflow, and whatever
    else ``ask`` raises.
    """
    overflow: ContextOverflow | None = None
    for view in shorter:
        try:
            reply = await ask(
                messages(view),
                stage="verdict",
                rung=view.rung.label,
                model=None,
                assume=assume,
                **parameters,
            )
        except ContextOverflow as error:
            overflow = error
            if isinstance(shorter, Views):
                stated_budget = budget_after_overflow(error, view.tokens + around)
                shorter.room = None if stated_budget is None else stated_budget - around
        else:
            return reply, view
    raise overflow or ContextOverflow(f"the prompt does not fit {limit} tokens however it is cut")


def source_views(trajectory: Trajectory, representation: Representation) -> Iterator[TruncatedView]:
    """Yield the whole run, then with the pruned tree in place of the full one, however long they
    are: AgentRewardBench's ladder."""
    truncator = PromptTruncator(trajectory, representation)
    for rung in (TruncationLevel.FULL, TruncationLevel.PRUNED):
        if (view := truncator.at(rung, sys.maxsize)) is not None:
            yield view


def step_texts(view: TruncatedView) -> Iterator[str | None]:
    """Yield the texts of a view's steps, for a count of what a prompt changes in them."""
    for _, *texts in view.steps:
        yield from texts


def budget_after_overflow(overflow: ContextOverflow, counted: int) -> int | None:
    """Compute the token budget, by our count, of the prompt to try after one of ``counted`` tokens.

    Uses the window and the prompt length that the server's message states; None where it states
    none.
    """
    stated = overflow_numbers(str(overflow))
    if stated.window is None:
        return None
    room = stated.window - (REPLY_ROOM if stated.reply is None else stated.reply)
    if stated.prompt is None:
        return int(min(SHRINK * counted, room))
    return int(min(CLOSE * counted, CLOSE * room * counted / stated.prompt))


async def ask_about_steps(
    ask: Model,
    trajectory: Trajectory,
    messages: Callable[[TruncatedView], Sequence[Message]],
    *,
    limit: int,
    images: ImageLimits | None = None,
    stage: str = "verdict",
    assume: str = "",
    is_shortened: bool = True,
    **parameters: JsonValue,
) -> Reply:
    """Ask with a prompt that lists the steps of a run and shows no tree, and return the reply;
    without ``is_shortened`` with all steps or not at all."""
    truncator = PromptTruncator(trajectory, Representation.NONE)
    around = prompt_tokens(messages(EMPTY_VIEW), images)
    whole = source_views(trajectory, Representation.NONE)

    async def make(budget: int) -> TruncatedPrompt | None:
        view = truncator.first(budget - around) if is_shortened else next(whole, None)
        return view and TruncatedPrompt(view.rung.label, messages(view))

    return await ask_with_truncation(
        ask, make, limit=limit, images=images, stage=stage, model=None, assume=assume, **parameters
    )


async def ask_about_pictures(
    ask: Model,
    trajectory: Trajectory,
    best: Sequence[T],
    messages: Callable[[TruncatedView, Sequence[T], Sequence[Picture]], Sequence[Message]],
    *,
    shot_of: Callable[[T], Shot],
    share: float,
    limit: int,
    images: ImageLimits,
    text_tokens: Sequence[int] = (),
    detail: Detail | None = None,
    **parameters: JsonValue,
) -> Reply:
    """Ask about the steps of a run and some of its screenshots, and return the reply.

    ``best`` are what can be shown, the best first, each with a screenshot (``shot_of``) and
    ``text_tokens`` of its own; as many are shown, in order of their steps, as take at most a
    ``share`` of the room. A prompt that lacks some is of the level ``fewer``.
    """
    truncator = PromptTruncator(trajectory, Representation.NONE)
    bare = prompt_tokens(messages(EMPTY_VIEW, (), ()))
    refs = [shot_of(one).image for one in best]

    async def make(budget: int) -> TruncatedPrompt | None:
        room = int((budget - bare) * share)
        loaded = await first_that_fit(refs, room, images, text_tokens, detail)
        kept = sorted(zip(best, loaded, strict=False), key=lambda pair: shot_of(pair[0]).number)
        sources, pictures = [source for source, _ in kept], [shown for _, shown in kept]
        around = prompt_tokens(messages(EMPTY_VIEW, sources, pictures), images)
        view = truncator.first(budget - around)
        if view is None:
            return None
        rung = view.rung.label if len(kept) == len(best) else "fewer"
        return TruncatedPrompt(rung, messages(view, sources, pictures))

    return await ask_with_truncation(
        ask,
        make,
        limit=limit,
        images=images,
        stage="verdict",
        model=None,
        assume="",
        **parameters,
    )


def cut_or_full(recorded: str | None, shown: str | None) -> str:
    """Return the truncation level of a text that is cut on its own: ``full`` or ``cut``."""
    return (TruncationLevel.FULL if shown == recorded else TruncationLevel.CUT).label


def template_variables(view: TruncatedView) -> dict[str, object]:
    """Return a view as a template's variables: goal, steps, head, elided and answer."""
    return {
        "goal": view.goal,
        "steps": view.steps,
        "head": view.head,
        "elided": view.elided,
        "answer": view.answer,
    }


def conversation(system: str, parts: Sequence[Part]) -> list[Message]:
    """Build the messages: the system prompt first, which is the same for every trajectory and can
    be cached."""
    return [
        _system_message(system),
        checked(Message, {"role": "user", "parts": tuple(parts)}),
    ]


@lru_cache(maxsize=16)
def _system_message(text: str) -> Message:
    return Message(role="system", parts=(Text(text=text),))


def prompt_tokens(messages: Sequence[Message], images: ImageLimits | None = None) -> int:
    """Estimate the tokens of all texts and pictures."""
    images = images or ImageLimits()
    return sum(
        picture_tokens(part, images) if isinstance(part, Picture) else count_tokens(part.text)
        for message in messages
        for part in message.parts
    )


def fits_budget(messages: Sequence[Message], budget: int, images: ImageLimits) -> bool:
    """Return True if the messages take at most ``budget`` tokens; short ones are not counted."""
    parts = [part for message in messages for part in message.parts]
    pictures = sum(picture_tokens(part, images) for part in parts if isinstance(part, Picture))
    texts = [part.text for part in parts if isinstance(part, Text)]
    if pictures + sum(map(most_tokens, texts)) <= budget:
        return True
    return prompt_tokens(messages, images) <= budget
