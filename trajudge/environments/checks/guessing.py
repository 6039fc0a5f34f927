"""The floor of guessing: how often an agent is right that never looks at a page.

It knows the scenario, its goal, how its answers are distributed over the configurations, and the
names that an answer is chosen from. It says what is right most often: the same thing in every
configuration, or, of each configuration's names that the goal does not state, any one. Where
something must be changed, or a run's own code told, guessing comes to nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from contextlib import closing
from math import comb, prod
from typing import NamedTuple

import numpy as np

from trajudge.environments.model.axes import generator, instance, profile
from trajudge.environments.model.binding import Infeasible, bind, parameters
from trajudge.environments.model.config import PROFILES, Config
from trajudge.environments.model.spec import AnswerSpec, App, Bound, Scenario
from trajudge.environments.model.state import AppState
from trajudge.environments.model.wording import worded
from trajudge.environments.verify.truth import column, query_answer

SUITES, EACH = 12, 2  # suites whose data profiles are drawn, and configurations of a profile
MOST = 0.15  # of the guesses may be right; a scenario above it has too few candidates
INSTANCES = 10_000


class GuessingFloor(NamedTuple):
    """Shares of the configurations in which the best guess is right: ``constant`` for what is right
    most often, ``chosen`` for a name drawn from those that are possible."""

    constant: float
    chosen: float

    @property
    def share(self) -> float:
        """The better of the two."""
        return max(self)


class _Drawn(NamedTuple):
    """The right answers of one configuration, and the chance of each name that is drawn. Guesses
    for one ``half`` of the data profiles are learned from the other."""

    half: int
    right: tuple[tuple[str, ...], ...]
    chances: tuple[float | None, ...]


def guessing_floors(
    app: App, scenarios: Sequence[Scenario], suites: int = SUITES
) -> dict[str, GuessingFloor]:
    """Return the floor of each scenario by its id, over configurations of so many suites, drawn
    afresh."""
    asking = [scenario for scenario in scenarios if _guessable(scenario)]
    drawn: dict[str, list[_Drawn]] = {scenario.id: [] for scenario in asking}
    for at in range(suites * PROFILES if asking else 0):
        suite, number = divmod(at, PROFILES)
        with closing(AppState(app.tables, profile(app, number, suite))) as state:
            for scenario in asking:
                config = Config(app=app.id, scenario=scenario.id, profile=number, seed=suite)
                drawn[scenario.id] += _configurations(scenario, config, state)
    floors = {scenario.id: _floor(drawn[scenario.id]) for scenario in asking}
    return {scenario.id: floors.get(scenario.id, GuessingFloor(0.0, 0.0)) for scenario in scenarios}


def _guessable(scenario: Scenario) -> bool:
    late = any(
        answer.kind in ("code", "none") or answer.when == "after" for answer in scenario.answers
    )
    return not scenario.expect and not late


def _floor(drawn: Sequence[_Drawn]) -> GuessingFloor:
    if not drawn:
        return GuessingFloor(0.0, 0.0)
    whole: list[Hashable] = [one.right for one in drawn]
    parts = zip(*(one.right for one in drawn), strict=True)
    usual = [_learned(drawn, part) for part in parts]
    chosen = [
        prod(usual[n] if chance is None else chance for n, chance in enumerate(one.chances))
        for one in drawn
    ]
    return GuessingFloor(_learned(drawn, whole), float(np.mean(chosen)))


def _learned(drawn: Sequence[_Drawn], right: Sequence[Hashable]) -> float:
    """Return how often the most frequent answer of one half is right in the other."""
    pairs = [(one.half, answer) for one, answer in zip(drawn, right, strict=True)]
    hits = 0
    for half in (0, 1):
        seen = Counter(answer for other, answer in pairs if other != half)
        guess = seen.most_common(1)[0][0] if seen else None
        hits += sum(answer == guess for own, answer in pairs if own == half)
    return hits / len(drawn)


def _configurations(scenario: Scenario, plain: Config, state: AppState) -> Iterator[_Drawn]:
    """Yield what is right in drawn configurations of one data profile."""
    rng = generator("guessing", plain.id)
    for number in rng.integers(INSTANCES, size=EACH).tolist():
        config = plain.model_copy(update={"instance": number})
        slots = tuple(scenario.slots)
        try:
            bound = bind(
                scenario, instance(plain.app, scenario.id, slots, number, plain.seed), state
            )
        except Infeasible:
            continue
        goal = worded(scenario, config, bound)
        drawn = _of(scenario, (plain.seed + plain.profile) % 2, bound, state, goal)
        if all(drawn.right):
            yield drawn


def _of(scenario: Scenario, half: int, bound: Bound, state: AppState, goal: str) -> _Drawn:
    values = parameters(bound)
    right = [tuple(sorted(query_answer(a, state, values).values)) for a in scenario.answers]
    chances = [
        _chance(answer, len(taken), bound, state, goal)
        for answer, taken in zip(scenario.answers, right, strict=True)
    ]
    return _Drawn(half, tuple(right), tuple(chances))


def _chance(
    answer: AnswerSpec, size: int, bound: Bound, state: AppState, goal: str
) -> float | None:
    """Return the chance of names drawn from those that the goal leaves; None for other kinds."""
    if not answer.among or not size:
        return None
    names = {str(name) for name in column(state, answer.among, parameters(bound))}
    left = [name for name in names if name not in goal]
    return 1 / comb(max(len(left), size), size)
