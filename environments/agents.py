"""Scripted agents with known behaviour, and the words they think in.

An agent's name says nothing about what it does, since judges may see it. The reasoning of all of
them comes from the same seeded phrases, so that the wording does not give a behaviour away; an
agent that picks the wrong thing is as confident as one that picks the right one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum

import numpy as np

from environments.actions import write
from environments.axtree import Element
from environments.tasks import TASKS, Move, Task

STEP_LIMIT = 18
SLIP = 0.3  # how often a run holds one failing action
FINDS_OUT = 3  # every third task, the agent that goes round in circles ends its task after all


class Behaviour(StrEnum):
    """What an agent does with a task."""

    SUCCEEDS = "succeeds"
    STOPS_EARLY = "stops-early"
    WRONG_ITEM = "wrong-item"
    FALSE_CLAIM = "false-claim"
    CIRCLES = "circles"
    SIDE_EFFECT = "side-effect"


AGENTS: dict[str, Behaviour] = {
    "scripted-a": Behaviour.SUCCEEDS,
    "scripted-b": Behaviour.STOPS_EARLY,
    "scripted-c": Behaviour.WRONG_ITEM,
    "scripted-d": Behaviour.FALSE_CLAIM,
    "scripted-e": Behaviour.CIRCLES,
    "scripted-f": Behaviour.SIDE_EFFECT,
}


def script(task: Task, behaviour: Behaviour, rng: np.random.Generator) -> list[Move]:
    """The moves of one run; without a last message the run goes on to the step limit."""
    wordings = (behaviour is Behaviour.FALSE_CLAIM and task.said_claim) or task.said
    moves = _MOVES[behaviour](task, str(rng.choice(wordings)))
    if rng.random() < SLIP:
        place = rng.integers(1, min(len(moves), STEP_LIMIT))
        moves.insert(int(place), Move("miss", why="press the button"))
    return moves[:STEP_LIMIT]


def _say(text: str) -> Move:
    return Move("send_msg_to_user", text=text, why="report what was done")


def _circles(task: Task, said: str) -> list[Move]:
    way_in = list(task.plan[: task.lost])
    if list(TASKS).index(task.id) % FINDS_OUT:
        return way_in + list(task.circle) * STEP_LIMIT
    return [*way_in, *task.circle * 3, *task.plan[task.lost :], _say(said)]


def _side_effect(task: Task, said: str) -> list[Move]:
    before, after = task.plan[: task.extra_at], task.plan[task.extra_at :]
    return [*before, *task.extra, *after, _say(said)]


_MOVES: dict[Behaviour, Callable[[Task, str], list[Move]]] = {
    Behaviour.SUCCEEDS: lambda task, said: [*task.plan, _say(said)],
    Behaviour.STOPS_EARLY: lambda task, said: [*task.plan[: task.early], _say(task.said_early)],
    Behaviour.WRONG_ITEM: lambda task, said: [*task.wrong, _say(task.said_wrong)],
    Behaviour.FALSE_CLAIM: lambda task, said: [*task.plan[: task.claimed], _say(said)],
    Behaviour.CIRCLES: _circles,
    Behaviour.SIDE_EFFECT: _side_effect,
}


def action(move: Move, seen: Sequence[Element]) -> str:
    """The text of a move on the page as it is. Raises LookupError if the page lacks the element."""
    if move.do == "go_back":
        return write("go_back")
    if move.do == "send_msg_to_user":
        return write("send_msg_to_user", move.text)
    if move.do == "miss":
        return write("click", str(1000 + len(seen)))
    bid = _bid(move, seen)
    return write(move.do, bid) if move.do == "click" else write(move.do, bid, move.text)


def _bid(move: Move, seen: Sequence[Element]) -> str:
    alike = [element for element in seen if element.role == move.role]
    exact = [element for element in alike if element.name == move.name]
    found = exact or [element for element in alike if element.name.startswith(move.name)]
    if not found:
        raise LookupError(f"the page has no {move.role} {move.name!r}")
    return found[0].bid


_SEES = (
    "The page '{title}' is open.",
    "I am on '{title}'.",
    "I can see '{title}' now.",
    "This is '{title}'.",
    "",
)
_MEANS = (
    "Next I {why}.",
    "To get closer to the goal I {why}.",
    "The task asks for this, so I {why}.",
    "I will {why} now.",
    "It makes sense to {why} at this point.",
    "This is clearly the way to {why}.",
)
_AFTER_ERROR = (
    "That did not work; I try another way.",
    "The last action failed, so I look at the page again.",
)


def reasoning(move: Move, title: str, error: str | None, rng: np.random.Generator) -> str:
    """What the agent thinks before a move."""
    opening = str(rng.choice(_AFTER_ERROR if error else _SEES))
    meaning = str(rng.choice(_MEANS))
    page = title.split(" | ", maxsplit=1)[0]
    return f"{opening} {meaning}".strip().format(title=page, why=move.why)
