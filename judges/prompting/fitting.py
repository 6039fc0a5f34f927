"""Prompts that fit: ever shorter ones, until the model takes one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from pydantic import JsonValue

from trajudge.judges.adapters.errors import ContextOverflow
from trajudge.judges.adapters.overflow import too_long
from trajudge.judges.model import Ask, Message, Part, Picture, Reply, Text
from trajudge.judges.prompting.pictures import ImageLimits, picture_tokens
from trajudge.trajectories.ladder import MAX_OVERFLOWS, SHRINK, Ladder, Rung, View
from trajudge.trajectories.model import Trajectory
from trajudge.trajectories.represent import Representation
from trajudge.trajectories.tokens import count_tokens

# Below what a server says that it takes: the share of texts that our count gets wrong differs.
CLOSE = 0.92
# Of the window, for the reply: what a run asks for by default.
REPLY_ROOM = 1024

NOTHING = View(rung=Rung.FULL, goal="", steps=(), head=0, elided=0, answer="", axtree="")
"""A view without a word: what a template takes by itself."""


class Fitted(NamedTuple):
    """Messages that fit; ``rung`` says what was left out of them."""

    rung: str
    messages: Sequence[Message]


async def ask_down(
    ask: Ask,
    make: Callable[[int], Fitted | None],
    *,
    limit: int,
    images: ImageLimits | None = None,
    stage: str = "verdict",
    model: str | None = None,
    assume: str = "",
    **parameters: JsonValue,
) -> Reply:
    """The reply to the first prompt that the model does not find too long.

    ``make`` gives the longest prompt within so many tokens, None if nothing sensible fits; it
    begins with ``limit`` and goes on with what the server says would fit, or else with a share of
    what was too long. Raises ContextOverflow, and whatever else ``ask`` raises.
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
        told = told_budget(overflow, counted)
        budget = int(SHRINK * counted) if told is None else told
    raise overflow


def told_budget(overflow: ContextOverflow, counted: int) -> int | None:
    """The tokens, by our count, of the prompt to try after one of ``counted`` tokens: what the
    server says of its window, and of its own count of the prompt; None where it says nothing."""
    told = too_long(str(overflow))
    if told.window is None:
        return None
    room = told.window - (REPLY_ROOM if told.reply is None else told.reply)
    if told.prompt is None:
        return int(min(SHRINK * counted, room))
    return int(min(CLOSE * counted, CLOSE * room * counted / told.prompt))


async def ask_of_steps(
    ask: Ask,
    trajectory: Trajectory,
    messages: Callable[[View], Sequence[Message]],
    *,
    limit: int,
    images: ImageLimits | None = None,
) -> Reply:
    """The reply to a prompt that lists the steps of a run and shows no tree."""
    ladder = Ladder(trajectory, Representation.NONE)
    around = prompt_tokens(messages(NOTHING), images)

    def make(budget: int) -> Fitted | None:
        view = ladder.first(budget - around)
        if view is None:
            return None
        return Fitted(view.rung.label, messages(view))

    return await ask_down(ask, make, limit=limit, images=images)


def cut_or_full(recorded: str | None, shown: str | None) -> str:
    """The rung of a text that is cut apart from the ladder."""
    return (Rung.FULL if shown == recorded else Rung.CUT).label


def words(view: View) -> dict[str, object]:
    """A view as a template's variables: goal, steps, head, elided and answer."""
    return {
        "goal": view.goal,
        "steps": view.steps,
        "head": view.head,
        "elided": view.elided,
        "answer": view.answer,
    }


def conversation(system: str, parts: Sequence[Part]) -> list[Message]:
    """What is the same for every trajectory first, so that providers can cache it."""
    return [
        Message(role="system", parts=(Text(text=system),)),
        Message(role="user", parts=tuple(parts)),
    ]


def prompt_tokens(messages: Sequence[Message], images: ImageLimits | None = None) -> int:
    """Tokens of all texts and pictures, estimated."""
    images = images or ImageLimits()
    return sum(
        picture_tokens(part, images) if isinstance(part, Picture) else count_tokens(part.text)
        for message in messages
        for part in message.parts
    )
