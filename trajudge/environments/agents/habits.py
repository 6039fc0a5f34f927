"""What runs have in common whether they succeed or not: detours, failed clicks, circles, asides.

A run's habits are drawn from one distribution for every agent but the oracle, before anything is
known of its end. A run that leaves part of the task out looks around for as long as the task would
have taken, so that its length, its errors and the length of its message do not tell what came of it
(a test measures how well they do).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from trajudge.environments.agents.script import Intent, Raw, Return, Wander
from trajudge.environments.chromium.action_syntax import write
from trajudge.environments.model.page import Link, Word
from trajudge.environments.model.plan import PlanStep

STRAIGHT = 0.3  # how many runs take no step that the task does not need
FURTHER = 0.14  # chance that a step which is not needed is the last one
CIRCLES = 0.12
FAILED = (0.5, 0.22, 0.13, 0.1, 0.05)  # of 0, 1, ... failed actions
ASIDES = (0.3, 0.3, 0.25, 0.15)  # of 0, 1, ... sentences around the last message
_MISSING = 5000  # from here on no page has a bid


class Habits(NamedTuple):
    """Of one run: actions beyond those that the task takes, failed ones among them, whether it goes
    round in a circle, sentences around its last message."""

    further: int = 0
    failed: int = 0
    circles: bool = False
    asides: int = 0


def drawn(rng: np.random.Generator) -> Habits:
    """Draw the habits of a run."""
    straight = rng.random() < STRAIGHT
    further, circles = int(rng.geometric(FURTHER)), bool(rng.random() < CIRCLES)
    failed, asides = (int(rng.choice(len(odds), p=odds)) for odds in (FAILED, ASIDES))
    return Habits(asides=asides) if straight else Habits(further, failed, circles, asides)


class Around(NamedTuple):
    """What a run that goes astray may do: the site's sections, whether they are behind a menu, and
    how many actions there is room for beyond the task's."""

    navigation: Sequence[Link]
    folded: bool
    room: int


def lived(
    body: Sequence[Intent],
    habits: Habits,
    around: Around,
    missing: int,
    rng: np.random.Generator,
) -> list[Intent]:
    """Return the intents of a run with its habits. ``missing`` are the actions that the task takes
    beyond those of ``body`` (negative where these are more)."""
    wanted = min(missing + habits.further, around.room)
    failed = [_failing(rng) for _ in range(habits.failed)]
    left = wanted - len(failed)
    asides: list[list[Intent]] = []
    if habits.circles and left >= 5:
        asides.append(_circle(around, rng))
        left -= _cost(asides[-1], around)
    while left > 0:
        aside = _aside(around, left, rng)
        left -= _cost(aside, around)
        asides.append(aside)
    made = list(body)
    for aside in asides:
        made = _inserted(made, aside, list(_safe(made)), rng)
    for act in failed:
        made = _inserted(made, [act], list(range(len(made) + 1)), rng)
    return made


def _inserted(
    made: list[Intent], more: Sequence[Intent], places: Sequence[int], rng: np.random.Generator
) -> list[Intent]:
    at = places[int(rng.integers(len(places)))]
    return [*made[:at], *more, *made[at:]]


def _safe(made: Sequence[Intent]) -> Iterator[int]:
    """Yield the places where an agent may leave its page and come back: nothing was entered yet,
    nothing waits to be confirmed, and it is not away already."""
    entered = away = False
    for at, intent in enumerate(made):
        confirms = isinstance(intent, PlanStep) and intent.label == Word("confirm")
        if not (entered or confirms or away):
            yield at
        if isinstance(intent, PlanStep):
            entered = intent.do in ("enter", "choose", "tick")
        away = isinstance(intent, Wander) or (away and not isinstance(intent, Return | PlanStep))
    yield len(made)


def _cost(aside: Sequence[Intent], around: Around) -> int:
    """Return the actions of an aside; a folded navigation is opened first."""
    menus = sum(isinstance(intent, Wander) and intent.label is not None for intent in aside)
    return len(aside) + (menus if around.folded else 0)


def _aside(around: Around, left: int, rng: np.random.Generator) -> list[Intent]:
    """Return a look aside that takes at most ``left`` actions."""
    kinds: list[Callable[[], list[Intent]]] = [
        lambda: [Raw(write("scroll", 0, int(rng.integers(2, 9)) * 100), "see more of the page")],
        lambda: [Wander(None, "see what is behind this"), Return()],
        lambda: [Wander(_section(around, rng), "look whether it is there"), Return()],
    ]
    odds = (0.3, 0.4, 0.3) if left > 3 else (0.4, 0.6, 0.0) if left > 1 else (1.0, 0.0, 0.0)
    return kinds[int(rng.choice(len(kinds), p=odds))]()


def _circle(around: Around, rng: np.random.Generator) -> list[Intent]:
    """Return one link clicked again and again."""
    section = _section(around, rng)
    return [*[Wander(section, "open it once more")] * int(rng.integers(3, 5)), Return()]


def _section(around: Around, rng: np.random.Generator) -> Word | str:
    return around.navigation[int(rng.integers(len(around.navigation)))].label


def _failing(rng: np.random.Generator) -> Raw:
    """Return an action that fails and changes nothing."""
    bid = str(_MISSING + int(rng.integers(999)))
    acts = (
        write("click", bid),
        write("fill", bid, "2"),
        write("select_option", bid, "All"),
    )
    return Raw(acts[int(rng.choice(3, p=(0.7, 0.15, 0.15)))], "press the button")
