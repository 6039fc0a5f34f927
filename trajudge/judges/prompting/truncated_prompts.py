"""Prompts truncated until the model accepts one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeVar

from pydantic import JsonValue

from trajudge.judges.adapters.errors import ContextOverflow
from trajudge.judges.adapters.overflow import overflow_numbers
from trajudge.judges.model import Message, ModelClient, Part, Picture, Reply, Text
from trajudge.judges.prompting.pictures import ImageLimits, picture_tokens
from trajudge.trajectories.model import Trajectory, checked
from trajudge.trajectories.represent import Representation
from trajudge.trajectories.tokens import count_tokens
from trajudge.trajectories.truncation import (
    MAX_OVERFLOWS,
    SHRINK,
    PromptTruncator,
    TruncatedView,
    TruncationLevel,
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
    ask: ModelClient,
    make: Callable[[int], TruncatedPrompt | None],
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
        prompt = make(budget)
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
    ask: ModelClient,
    trajectory: Trajectory,
    messages: Callable[[TruncatedView], Sequence[Message]],
    *,
    limit: int,
    images: ImageLimits | None = None,
) -> Reply:
    """Ask with a prompt that lists the steps of a run and shows no tree, and return the reply."""
    truncator = PromptTruncator(trajectory, Representation.NONE)
    around = prompt_tokens(messages(EMPTY_VIEW), images)

    def make(budget: int) -> TruncatedPrompt | None:
        view = truncator.first(budget - around)
        if view is None:
            return None
        return TruncatedPrompt(view.rung.label, messages(view))

    return await ask_with_truncation(ask, make, limit=limit, images=images)


def around_pictures(
    truncator: PromptTruncator,
    messages: Callable[[TruncatedView, Sequence[T], Sequence[Picture]], list[Message]],
    kept: Sequence[tuple[T, Picture]],
    budget: int,
    images: ImageLimits,
    *,
    complete: bool,
) -> TruncatedPrompt | None:
    """Fit a run's text into what the pictures ``kept``, each with what it is a picture of, leave of
    the budget (tokens); None where no text fits. A prompt whose pictures are not ``complete`` is of
    the level ``fewer``."""
    sources, pictures = [source for source, _ in kept], [picture for _, picture in kept]
    around = prompt_tokens(messages(EMPTY_VIEW, sources, pictures), images)
    view = truncator.first(budget - around)
    if view is None:
        return None
    rung = view.rung.label if complete else "fewer"
    return TruncatedPrompt(rung, messages(view, sources, pictures))


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
