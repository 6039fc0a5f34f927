"""Near misses: the binding of a scenario with one slot mistaken so that it makes a difference."""

from __future__ import annotations

from typing import Any

from trajudge.environments.model.binding import Infeasible, decoyed, parameters, typed
from trajudge.environments.model.spec import Bound, Scenario
from trajudge.environments.model.state import AppState
from trajudge.environments.verify.truth import column

TRIED = 60  # decoys of a slot

Outcome = tuple[Any, ...]


def near_miss(scenario: Scenario, bound: Bound, slot: str, state: AppState) -> Bound | None:
    """Return the binding with the first decoy of ``slot``, in its ring, that asks for another
    answer or another state; None where no decoy does. ``state`` is as it was before the run."""
    right = outcome(scenario, bound, state)
    for step in range(1, TRIED + 1):
        try:
            near = decoyed(scenario, bound, slot, state, step)
        except Infeasible:
            continue
        if near[slot] == bound[slot]:
            return None
        if outcome(scenario, near, state) != right:
            return near
    return None


def outcome(scenario: Scenario, bound: Bound, state: AppState) -> Outcome:
    """Return what a run that takes ``bound`` for its task ends with: the answers that the state
    gives, and the rows that are wanted."""
    values = parameters(bound)
    answers = tuple(
        _unordered(column(state, answer.sql, values))
        for answer in scenario.answers
        if answer.kind != "code" and answer.when == "before"
    )
    wanted = tuple(
        (typed(expect.key, bound), *(_typed(value, bound) for value in expect.values.values()))
        for expect in scenario.expect
    )
    return answers, wanted


def _unordered(cells: list[Any]) -> tuple[Any, ...]:
    """Sort: the same names in another order are the same answer."""
    return tuple(sorted(cells, key=str))


def _typed(value: str | int, bound: Bound) -> Any:
    """Return the wanted value; as it is written where it names a row that is yet to be made."""
    try:
        return typed(value, bound)
    except KeyError:
        return value
