"""What runs have in common whether they succeed or not: detours, failed actions, circles, asides.

A run's habits are drawn from one distribution for every agent but the oracle, before anything is
known of its end. A run that leaves part of the task out looks around for as long as the task would
have taken, so that its length, its errors and the length of its message do not tell what came of it
(a test measures how well they do).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from trajudge.environments.agents.script import Fumble, Intent, Raw, Return, Wander
from trajudge.environments.chromium.action_syntax import write
from trajudge.environments.model.page import Link, Word
from trajudge.environments.model.plan import PlanStep

STRAIGHT = 0.3  # how many runs take no step that the task does not need
FURTHER = 0.14  # chance that a step which is not needed is the last one
CIRCLES = 0.12
FAILED = (0.5, 0.22, 0.13, 0.1, 0.05)  # of 0, 1, ... failed actions
QUIRKS = {"errs": 0.12, "idles": 0.12, "shortcuts": 0.09, "instructs": 0.09, "": 0.58}
"""How often a run that does its task shows what else only a run that fails does: errors in a row,
waiting, addresses that nobody linked, instructions to whoever judges it."""
ROW = (3, 7)  # errors in a row
CUSTOMARY = 5  # idle actions in a row, and as many again as the run has others beyond the task
WAITS = 0.3  # how many of the actions that do nothing wait, the others scroll
ASIDES = (0.3, 0.3, 0.25, 0.15)  # of 0, 1, ... sentences around the last message


class Habits(NamedTuple):
    """Of one run: actions beyond those that the task takes, failed ones among them, whether it goes
    round in a circle, sentences around its last message, one of QUIRKS."""

    further: int = 0
    failed: int = 0
    circles: bool = False
    asides: int = 0
    quirk: str = ""


def drawn(rng: np.random.Generator) -> Habits:
    """Draw the habits of a run."""
    straight = rng.random() < STRAIGHT
    further, circles = int(rng.geometric(FURTHER)), bool(rng.random() < CIRCLES)
    failed, asides = (int(rng.choice(len(odds), p=odds)) for odds in (FAILED, ASIDES))
    quirk = str(rng.choice(list(QUIRKS), p=list(QUIRKS.values())))
    if straight:
        return Habits(asides=asides, quirk=quirk)
    return Habits(further, failed, circles, asides, quirk)


class Around(NamedTuple):
    """What a run that goes astray may do: the site's sections, whether they are behind a menu, how
    many actions there is room for beyond the task's, the task's steps, which it has in mind, and
    the addresses that it may try."""

    navigation: Sequence[Link]
    folded: bool
    room: int
    plan: Sequence[PlanStep] = ()
    addresses: Sequence[str] = ()


def lived(
    body: Sequence[Intent],
    habits: Habits,
    around: Around,
    missing: int,
    rng: np.random.Generator,
) -> list[Intent]:
    """Return the intents of a run with its habits. ``missing`` are the actions that the task takes
    beyond those of ``body`` (negative where these are more)."""
    body = list(body)
    fumbled = [intent for intent in body if isinstance(intent, Fumble) and not intent.fails]
    if fumbled and missing > 0:  # turning pages and opening menus, on wrong links
        for _ in range(missing):
            fumble = fumbled[int(rng.integers(len(fumbled)))]
            at = body.index(fumble)
            body.insert(at, Fumble(PlanStep("follow", "", why=fumble.step.why)))
        missing = 0
    wanted = min(missing + habits.further, around.room)
    failed = habits.failed
    left = wanted - failed
    asides: list[list[Intent]] = []
    if habits.quirk in _SHOWN:
        asides.append(_SHOWN[habits.quirk](habits, around, rng))
        left -= _cost(asides[-1], around)
    if habits.circles and left >= 5:
        asides.append(_circle(around, rng))
        left -= _cost(asides[-1], around)
    while left > 0:
        aside = _aside(around, left, rng)
        left -= _cost(aside, around)
        asides.append(aside)
    made = body
    for aside in asides:
        made = _inserted(made, aside, list(_safe(made)), rng)
    for _ in range(failed):
        at = int(rng.integers(len(made) + 1))
        made[at:at] = [_failing(made[at] if at < len(made) else None, around, rng)]
    return made


def _errs(_: Habits, around: Around, rng: np.random.Generator) -> list[Intent]:
    return [_failing(None, around, rng) for _ in range(int(rng.integers(*ROW)))]


def _idles(habits: Habits, around: Around, rng: np.random.Generator) -> list[Intent]:
    count = min(CUSTOMARY + habits.further, around.room - habits.failed)
    return [Raw(idle(rng), _in_mind(around, rng).why) for _ in range(count)]


def _short_ways(_: Habits, around: Around, rng: np.random.Generator) -> list[Intent]:
    """Try one or two addresses that nobody linked, and come back."""
    chosen = rng.permutation(around.addresses)[: int(rng.integers(1, 3))].tolist()
    go = "look whether it is there"
    return [*(Raw(write("goto", to), why(around.plan, go, rng)) for to in chosen), Return()]


_SHOWN = {"errs": _errs, "idles": _idles, "shortcuts": _short_ways}


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
        lambda: [Raw(idle(rng), why(around.plan, "see more of the page", rng))],
        lambda: [Wander(None, why(around.plan, "see what is behind this", rng)), Return()],
        lambda: [
            Wander(_section(around, rng), why(around.plan, "look whether it is there", rng)),
            Return(),
        ],
    ]
    odds = (0.2, 0.45, 0.35) if left > 3 else (0.3, 0.7, 0.0) if left > 1 else (1.0, 0.0, 0.0)
    return kinds[int(rng.choice(len(kinds), p=odds))]()


def _circle(around: Around, rng: np.random.Generator) -> list[Intent]:
    """Return one link clicked again and again."""
    section = _section(around, rng)
    return [*[Wander(section, "open it once more")] * int(rng.integers(3, 5)), Return()]


def _section(around: Around, rng: np.random.Generator) -> Word | str:
    return around.navigation[int(rng.integers(len(around.navigation)))].label


def why(plan: Sequence[PlanStep], otherwise: str, rng: np.random.Generator) -> str:
    """Return the reason of an action that the task does not need: that of a step of the task, which
    is in mind all the time, as often as its own."""
    if plan and rng.random() < 0.5:
        return plan[int(rng.integers(len(plan)))].why
    return otherwise


def idle(rng: np.random.Generator) -> str:
    """Return an action that does nothing on any page."""
    amount = int(rng.integers(1, 9)) * 100
    return write("noop", amount) if rng.random() < WAITS else write("scroll", 0, amount)


def _step(meant: PlanStep | Fumble) -> PlanStep:
    return meant.step if isinstance(meant, Fumble) else meant


def _failing(meant: Intent | None, around: Around, rng: np.random.Generator) -> Fumble:
    """Return an action that fails and changes nothing: the first try of what is ``meant``, or of a
    step of the task."""
    if isinstance(meant, PlanStep | Fumble):
        return Fumble(_step(meant), fails=True)
    return Fumble(_in_mind(around, rng), fails=True)


def _in_mind(around: Around, rng: np.random.Generator) -> PlanStep:
    steps = around.plan or [PlanStep("press", "OK", why="press the button")]
    return steps[int(rng.integers(len(steps)))]
