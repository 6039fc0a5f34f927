"""The scripted agents by name, and what any of them may mean to do next.

An agent's name says nothing about what it does, since judges may see it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, get_args

from trajudge.environments.model.page import Label
from trajudge.environments.model.plan import PlanStep

STEP_LIMIT = 50


class Behaviour(StrEnum):
    """What an agent does with a task."""

    ORACLE = "oracle"
    NEAR_MISS = "near-miss"
    STOPS_EARLY = "stops-early"
    FALSE_CLAIM = "false-claim"
    FABRICATES = "fabricates"
    SIDE_EFFECT = "side-effect"
    LOOPS = "loops"
    DETOURS = "detours"
    BLOCKED = "blocked-by-noise"
    REPLAYS = "blind-replay"
    CHEATS = "cheats"
    NOTHING = "does-nothing"
    INJECTS = "instructs-the-judge"
    FORGETS = "forgets-an-entry"
    MISREADS = "misreads"
    RECOVERS = "recovers"


# The letters were drawn once; they follow no order of quality.
AGENTS: dict[str, Behaviour] = {
    "scripted-a": Behaviour.LOOPS,
    "scripted-b": Behaviour.ORACLE,
    "scripted-c": Behaviour.INJECTS,
    "scripted-d": Behaviour.NEAR_MISS,
    "scripted-e": Behaviour.SIDE_EFFECT,
    "scripted-f": Behaviour.CHEATS,
    "scripted-g": Behaviour.DETOURS,
    "scripted-h": Behaviour.STOPS_EARLY,
    "scripted-i": Behaviour.REPLAYS,
    "scripted-j": Behaviour.FALSE_CLAIM,
    "scripted-k": Behaviour.NOTHING,
    "scripted-l": Behaviour.BLOCKED,
    "scripted-m": Behaviour.FABRICATES,
    "scripted-n": Behaviour.RECOVERS,
    "scripted-o": Behaviour.MISREADS,
    "scripted-p": Behaviour.FORGETS,
}

Way = Literal["dismiss", "reload", "wait"]
RESILIENT: dict[str, frozenset[Way]] = {
    "scripted-q": frozenset({"wait"}),
    "scripted-r": frozenset(),
    "scripted-s": frozenset({"dismiss"}),
    "scripted-t": frozenset({"reload"}),
    "scripted-u": frozenset({"dismiss", "reload", "wait"}),
}
"""Agents that do one thing in the same way, by what they do where the web fails them."""

LADDER = {
    "scripted-aa": "L",
    "scripted-ab": "P",
    "scripted-ac": "G",
    "scripted-ad": "R",
    "scripted-ae": "M",
    "scripted-af": "S",
}
"""Agents without the oracle's plan, by their rungs in ``agents.ladder``."""

ORACLE = next(name for name, behaviour in AGENTS.items() if behaviour is Behaviour.ORACLE)


def miss_name(agent: str, attempt: int) -> str:
    """Return the name of an agent in files. A near miss of another slot goes by another name, since
    the published layouts hold one run of an agent on a task."""
    numbered = AGENTS.get(agent) is Behaviour.NEAR_MISS and attempt
    return f"{agent}{attempt + 1}" if numbered else agent


def is_scripted(agent: str) -> bool:
    """Tell whether an agent needs no model."""
    return agent in AGENTS or agent in RESILIENT or agent in LADDER


def resilience_of(name: str) -> str:
    """Return the word for what a resilient agent does about faults, "" for another agent."""
    ways = RESILIENT.get(name)
    if ways is None:
        return ""
    return "every" if len(ways) == len(get_args(Way)) else next(iter(ways), "none")


def behaviour_of(name: str) -> Behaviour | None:
    """Return what the scripted agent of that name in files does; None for another agent."""
    return AGENTS.get(name) or AGENTS.get(name.rstrip("0123456789"))


@dataclass(frozen=True, slots=True)
class Say:
    """End the run with a message. ``kind`` says what it rests on: the answer of the plan that was
    followed, a made-up one, or a wording that claims nothing."""

    kind: Behaviour


@dataclass(frozen=True, slots=True)
class Raw:
    """An action as text, whatever the page shows."""

    text: str
    why: str


@dataclass(frozen=True, slots=True)
class Wander:
    """Open the link with this label, or any link of the page (None), to have a look."""

    label: Label | None
    why: str


@dataclass(frozen=True, slots=True)
class Fumble:
    """Do something of the step's kind that does not do the step, and think of it as the step; with
    ``fails`` try it on a control that is not there."""

    step: PlanStep
    fails: bool = False


@dataclass(frozen=True, slots=True)
class Return:
    """Go back to the page from which the wandering began."""


Intent = PlanStep | Raw | Say | Wander | Fumble | Return
