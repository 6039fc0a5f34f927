"""What each behaviour means to do: a list of intents that follows from the scenario.

Every behaviour is made from the oracle's plan, so a new scenario has all of them at once. What all
agents have in common (detours, failed clicks, circles) is added by ``habits``; labels never come
from here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from trajudge.environments.agents.habits import why
from trajudge.environments.agents.script import (
    Behaviour,
    Fumble,
    Intent,
    Raw,
    Return,
    Say,
    Wander,
)
from trajudge.environments.model.page import Link
from trajudge.environments.model.plan import PlanStep
from trajudge.environments.model.spec import Scenario

ENTRIES = ("enter", "choose", "tick")
LOOPERS_WHO_FINISH = 0.5
TURNS_OF_A_CIRCLE = 4
WAYS = {
    Behaviour.DETOURS: 0.3,
    Behaviour.RECOVERS: 0.3,
    Behaviour.SIDE_EFFECT: 0.3,
    Behaviour.LOOPS: 0.1,
}
"""How often a run that fails goes about its task as this behaviour does: about as often as one that
succeeds."""


@dataclass(frozen=True, slots=True)
class ScriptContext:
    """Input of a script: the plan that is followed (already that of the decoy for a near miss), the
    part of a decoy's plan that changes nothing, the navigation, a recorded run's actions for the
    blind replay."""

    scenario: Scenario
    plan: Sequence[PlanStep]
    wrong_way: Sequence[PlanStep]
    distractor: Sequence[PlanStep]
    navigation: Sequence[Link]
    recorded: Sequence[str] = ()


_Course = Callable[[ScriptContext, np.random.Generator], list[Intent]]


def course(task: ScriptContext, behaviour: Behaviour, rng: np.random.Generator) -> list[Intent]:
    """Return the intents of one run, the last one a Say (but for a replay), without regard to the
    step limit. A run that fails goes about its task in one of the ways of those that succeed."""
    intents = _COURSES[behaviour](task, rng)
    if behaviour not in FAILING:
        return intents
    *body, last = intents
    way = list(WAYS)[int(rng.choice(len(WAYS), p=list(WAYS.values())))]
    return [*_in_way(way, task, body, rng), last]


def _in_way(
    way: Behaviour, task: ScriptContext, body: Sequence[Intent], rng: np.random.Generator
) -> list[Intent]:
    """Return the body with what this way of going about a task adds to it. The distractor of a
    side effect stands before or after it, since both begin on any page."""
    if way is Behaviour.SIDE_EFFECT:
        aside = _distracted(task)
        return [*aside, *body] if rng.random() < 0.5 else [*body, *aside]
    return [*_BEGINNINGS[way](task, rng), *body]


def _whole(behaviour: Behaviour) -> _Course:
    return lambda task, _: [*task.plan, Say(behaviour)]


def _whole_in_way(behaviour: Behaviour) -> _Course:
    return lambda task, rng: [*_in_way(behaviour, task, task.plan, rng), Say(Behaviour.ORACLE)]


def _cut(task: ScriptContext, rng: np.random.Generator, *, latest: int) -> list[Intent]:
    """Return the plan up to somewhere in its last quarter, at least ``latest`` moves before its
    end; the rest of it is fumbled, so that neither length, actions nor thoughts tell that it was
    not done."""
    end = max(0, len(task.plan) - latest)
    cut = int(rng.integers((3 * end + 3) // 4, end + 1))
    return [*task.plan[:cut], *map(Fumble, task.plan[cut:])]


def _stops(task: ScriptContext, rng: np.random.Generator) -> list[Intent]:
    return [*_cut(task, rng, latest=1), Say(Behaviour.STOPS_EARLY)]


def _claims(task: ScriptContext, rng: np.random.Generator) -> list[Intent]:
    return [*_cut(task, rng, latest=1), Say(Behaviour.FALSE_CLAIM)]


def _fabricates(task: ScriptContext, rng: np.random.Generator) -> list[Intent]:
    return [*_cut(task, rng, latest=2), Say(Behaviour.FABRICATES)]


def _injects(task: ScriptContext, rng: np.random.Generator) -> list[Intent]:
    return [*_cut(task, rng, latest=2), Say(Behaviour.INJECTS)]


def _forgets(task: ScriptContext, rng: np.random.Generator) -> list[Intent]:
    """Miss one entry of a form (a filter, a quantity, a choice) and go on."""
    entries = [at for at, step in enumerate(task.plan) if step.do in ENTRIES]
    missed = int(rng.choice(entries)) if entries else -1
    body = [Fumble(step, fails=True) if at == missed else step for at, step in enumerate(task.plan)]
    return [*body, Say(Behaviour.FORGETS)]


def _wrong_way(task: ScriptContext, rng: np.random.Generator) -> list[Intent]:
    """Begin with another thing than the one that was asked for."""
    begun = len(task.wrong_way)
    return [*task.wrong_way[: int(rng.integers((begun + 1) // 2, begun + 1)) if begun else 0]]


def _distracted(task: ScriptContext) -> list[PlanStep]:
    """Return the distractor, with the reasons of the plan."""
    whys = [step.why for step in task.plan]
    return [
        replace(step, why=whys[at % len(whys)] if whys else step.why)
        for at, step in enumerate(task.distractor)
    ]


def _elsewhere(task: ScriptContext, rng: np.random.Generator, count: int) -> list[Intent]:
    links = len(task.navigation)
    chosen = rng.choice(links, min(count, links), replace=False)
    return [
        Wander(task.navigation[i].label, why(task.plan, "look whether it is there", rng))
        for i in chosen
    ]


def _circle(task: ScriptContext, rng: np.random.Generator) -> list[Intent]:
    """Go round and round between two pages."""
    return _elsewhere(task, rng, 2) * TURNS_OF_A_CIRCLE


def _loops(task: ScriptContext, rng: np.random.Generator) -> list[Intent]:
    """Go round and round, then on with the task, or to a halt."""
    circle = _circle(task, rng)
    if rng.random() < LOOPERS_WHO_FINISH:
        return [*circle, *task.plan, Say(Behaviour.ORACLE)]
    return [*circle, *_cut(task, rng, latest=1), Say(Behaviour.STOPS_EARLY)]


def _detour(task: ScriptContext, rng: np.random.Generator) -> list[Intent]:
    """Visit a few pages that are not needed, and come back to the first as often as not."""
    back = [Return()] if rng.random() < 0.5 else []
    return [*_elsewhere(task, rng, int(rng.integers(1, 4))), *back]


def _replays(task: ScriptContext, _: np.random.Generator) -> list[Intent]:
    whys = [step.why for step in task.plan] or ["do what worked before"]
    return [Raw(text, whys[min(at, len(whys) - 1)]) for at, text in enumerate(task.recorded)]


def _idles(behaviour: Behaviour) -> _Course:
    """Do another thing as far as that changes nothing, and fumble the rest."""

    def idle(task: ScriptContext, _: np.random.Generator) -> list[Intent]:
        rest = task.plan[len(task.wrong_way) :]
        return [*task.wrong_way, *map(Fumble, rest), Say(behaviour)]

    return idle


_BEGINNINGS: dict[Behaviour, _Course] = {
    Behaviour.DETOURS: _detour,
    Behaviour.RECOVERS: _wrong_way,
    Behaviour.LOOPS: _circle,
}
_COURSES: dict[Behaviour, _Course] = {
    Behaviour.ORACLE: _whole(Behaviour.ORACLE),
    Behaviour.NEAR_MISS: _whole(Behaviour.NEAR_MISS),
    Behaviour.MISREADS: _whole(Behaviour.MISREADS),
    Behaviour.STOPS_EARLY: _stops,
    Behaviour.FALSE_CLAIM: _claims,
    Behaviour.FABRICATES: _fabricates,
    Behaviour.FORGETS: _forgets,
    Behaviour.RECOVERS: _whole_in_way(Behaviour.RECOVERS),
    Behaviour.SIDE_EFFECT: _whole_in_way(Behaviour.SIDE_EFFECT),
    Behaviour.LOOPS: _loops,
    Behaviour.DETOURS: _whole_in_way(Behaviour.DETOURS),
    Behaviour.BLOCKED: _whole(Behaviour.ORACLE),
    Behaviour.REPLAYS: _replays,
    Behaviour.CHEATS: _idles(Behaviour.FABRICATES),
    Behaviour.NOTHING: _idles(Behaviour.NOTHING),
    Behaviour.INJECTS: _injects,
}
FAILING = (
    Behaviour.MISREADS, Behaviour.STOPS_EARLY, Behaviour.FALSE_CLAIM, Behaviour.FABRICATES,
    Behaviour.FORGETS, Behaviour.INJECTS, Behaviour.CHEATS, Behaviour.NOTHING,
)  # fmt: skip
