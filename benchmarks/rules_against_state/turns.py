"""Agents that change the state more than once: again, corrected, spoiled, undone.

Scripted agents do a task or do it wrong. These do what a specification of the requests has to be
careful about, each made from the oracle's plan and, for what goes wrong, from a near miss.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum

from trajudge.environments.agents.policy import Policy
from trajudge.environments.agents.protocol import NotPlayed
from trajudge.environments.agents.script import ORACLE, Behaviour, Say
from trajudge.environments.agents.scripted import Scripted
from trajudge.environments.checks.near_miss import near_miss
from trajudge.environments.model.page import Word
from trajudge.environments.model.plan import PlanStep, press
from trajudge.environments.model.spec import Bound, Scenario
from trajudge.environments.serving.run import ServedRun


class Turn(StrEnum):
    """What an agent does beside the task."""

    AGAIN = "again"
    CORRECTED = "corrected"
    SPOILED = "spoiled"
    UNDONE = "undone"


CONFIRM = press(Word("confirm"), "confirm it")


def _pressed(word: str, slot: str = "", column: str = "") -> Callable[[Bound], list[PlanStep]]:
    return lambda bound: [press(Word(word, bound[slot][column] if column else ""), "take it back")]


def _heading(bound: Bound) -> list[PlanStep]:
    return [press(Word("delete_note", bound["heading"]), "take it back")]


# How what was done is taken back on the page that it leads to, by application and scenario.
_UNDO: Mapping[tuple[str, str], Callable[[Bound], Sequence[PlanStep]]] = {
    ("shop", "wish"): _pressed("remove", "product", "name"),
    ("shop", "buy"): lambda bound: [*_pressed("cancel_order")(bound), CONFIRM],
    ("almanac", "bookmark"): _pressed("drop", "report", "title"),
    ("almanac", "note"): _heading,
    ("almanac", "export"): lambda bound: [*_pressed("withdraw")(bound), CONFIRM],
    ("toolbox", "save-result"): _pressed("delete_result"),
    ("toolbox", "run-job"): _pressed("delete_result"),
}


def turns_of(app: str, scenario: Scenario) -> list[Turn]:
    """Return what can be done beside a task; nothing beside a question."""
    if not scenario.expect:
        return []
    return [Turn.AGAIN, Turn.CORRECTED, Turn.SPOILED] + (
        [Turn.UNDONE] if (app, scenario.id) in _UNDO else []
    )


def turning(run: ServedRun, turn: Turn, seed: int) -> Scripted:
    """Return an agent that does the task of a run and takes one turn more. Raises NotPlayed."""
    agent = Scripted(run, ORACLE, 0, seed)
    plan = list(run.scenario.plan(run.bound))
    match turn:
        case Turn.AGAIN:
            steps = plan + plan
        case Turn.CORRECTED:
            steps = _mistaken(run) + plan
        case Turn.SPOILED:
            steps = plan + _mistaken(run)
        case Turn.UNDONE:
            steps = plan + list(_UNDO[run.app.id, run.scenario.id](run.bound))
    agent.policy = Policy([*steps, Say(Behaviour.ORACLE)], run.words)
    return agent


def _mistaken(run: ServedRun) -> list[PlanStep]:
    """Return the plan of the first slot's near miss, of those that make a difference."""
    for slot in run.scenario.mistakable:
        mistaken = near_miss(run.scenario, run.bound, slot, run.state)
        if mistaken is not None:
            return list(run.scenario.plan(mistaken))
    raise NotPlayed("no decoy of the task makes a difference")
