"""What an agent says that did not see, or did not read rightly, what it was asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from trajudge.environments.model.binding import Infeasible, bind, parameters
from trajudge.environments.model.operation_codes import ALPHABET, LENGTH
from trajudge.environments.model.spec import AnswerSpec, Bound, Scenario
from trajudge.environments.model.state import AppState
from trajudge.environments.verify.truth import query_answer

OTHERS = 8  # tasks whose answers are tried
TRIED = 50
OFF_BY_ONE = 0.5
UNKNOWN = "not stated"


class Guess(NamedTuple):
    """What a wrong answer is made from: the scenario and the state, a binding (with a decoy, to
    read the wrong row), what is drawn."""

    scenario: Scenario
    state: AppState
    bound: Bound
    rng: np.random.Generator


Values = tuple[str, ...]
Wrong = Callable[[Guess, AnswerSpec, Values], Values]


def made_up(guess: Guess, answer: AnswerSpec, right: Values) -> Values:
    """Return something that looks like an answer and is not the right one by luck: what would be
    right of another task of this scenario, or else something invented."""
    if answer.kind != "code" and answer.when == "before":
        for _ in range(OTHERS):
            there = _of_another(guess, answer)
            if there and set(there) != set(right):
                return there
    for _ in range(TRIED):
        if (text := _invented(guess, answer)) not in right:
            return (text,)
    return (UNKNOWN,)


def misread(guess: Guess, answer: AnswerSpec, right: Values) -> Values:
    """Return an answer from the wrong row, or a count that is off by one; made up where the wrong
    row gives none."""
    if answer.kind == "code" and right:
        return right  # a code is copied as it stands
    counted = answer.kind == "number" and len(right) == 1 and right[0].isdigit()
    if counted and guess.rng.random() < OFF_BY_ONE:
        return (str(abs(int(right[0]) + (1 if guess.rng.random() < OFF_BY_ONE else -1))),)
    if answer.kind != "code" and answer.when == "before":
        there = query_answer(answer, guess.state, parameters(guess.bound)).values
        if there and set(there) != set(right):
            return there
    return made_up(guess, answer, right)


def _of_another(guess: Guess, answer: AnswerSpec) -> Values:
    """Return the answer of the scenario's task with other values in its slots, if it has one."""
    places = {name: float(guess.rng.random()) for name in guess.scenario.slots}
    try:
        bound = bind(guess.scenario, places, guess.state)
    except Infeasible:
        return ()
    return query_answer(answer, guess.state, parameters(bound)).values


def _invented(guess: Guess, answer: AnswerSpec) -> str:
    rng = guess.rng
    match answer.kind:
        case "money":
            return f"${rng.integers(5, 400)}.{rng.integers(100):02}"
        case "number":
            return str(rng.integers(2, 60))
        case "duration":
            return f"{rng.integers(2, 60)} min"
        case "date":
            return f"2026-0{rng.integers(1, 10)}-{rng.integers(10, 29)}"
        case "code":
            return "".join(rng.choice(list(ALPHABET), LENGTH))
        case _:
            return _some_name(guess, answer)


def _some_name(guess: Guess, answer: AnswerSpec) -> str:
    rows = guess.state.rows(answer.among, **parameters(guess.bound)) if answer.among else []
    names = [str(row[0]) for row in rows]
    return str(guess.rng.choice(names)) if names else UNKNOWN
