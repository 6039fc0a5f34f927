"""What an agent says that did not see, or did not read rightly, what it was asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from trajudge.environments.model.binding import parameters
from trajudge.environments.model.operation_codes import ALPHABET, LENGTH
from trajudge.environments.model.spec import AnswerSpec, Bound
from trajudge.environments.model.state import AppState
from trajudge.environments.verify.truth import query_answer

TRIED = 50
OFF_BY_ONE = 0.5
UNKNOWN = "not stated"


class Guess(NamedTuple):
    """What a wrong answer is made from: the state, a binding (with a decoy, to read the wrong row),
    what is drawn."""

    state: AppState
    bound: Bound
    rng: np.random.Generator


Wrong = Callable[[Guess, AnswerSpec, Sequence[str]], str]


def made_up(guess: Guess, answer: AnswerSpec, right: Sequence[str]) -> str:
    """Return something that looks like an answer and is not the right one by luck."""
    for _ in range(TRIED):
        if (text := _invented(guess, answer)) not in right:
            return text
    return UNKNOWN


def misread(guess: Guess, answer: AnswerSpec, right: Sequence[str]) -> str:
    """Return an answer from the wrong row, or a count that is off by one; made up where the wrong
    row gives none."""
    if answer.kind == "code" and right:
        return right[0]  # a code is copied as it stands
    counted = answer.kind == "number" and len(right) == 1 and right[0].isdigit()
    if counted and guess.rng.random() < OFF_BY_ONE:
        return str(max(0, int(right[0]) + (1 if guess.rng.random() < OFF_BY_ONE else -1)))
    if answer.kind != "code" and answer.when == "before":
        there = query_answer(answer, guess.state, parameters(guess.bound)).values
        if there and set(there) != set(right):
            return ", ".join(there)
    return made_up(guess, answer, right)


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
