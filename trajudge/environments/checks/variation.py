"""Configurations of the same scenario in which axes are others: for replays, blind or measured."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Literal

from trajudge.environments.apps import load_app
from trajudge.environments.checks.integrity import check
from trajudge.environments.checks.near_miss import Outcome, outcome
from trajudge.environments.checks.profiles import replayable_state
from trajudge.environments.model.axes import instance
from trajudge.environments.model.binding import bind
from trajudge.environments.model.case import Case
from trajudge.environments.model.config import PROFILES, STATES, THEMES, Config

Axis = Literal["instance", "profile", "theme", "ui"]
AXES: tuple[Axis, ...] = ("instance", "profile", "theme", "ui")
_SIZES = {"profile": PROFILES, "theme": THEMES, "ui": STATES}
TRIED = PROFILES - 1  # steps after which an axis would come round to itself


def axis_neighbours(config: Config, axes: Collection[Axis]) -> Iterator[Case]:
    """Yield the sound cases in which each of ``axes`` is 1, 2, ... further, and nothing else."""
    app = load_app(config.app)
    for step in range(1, TRIED + 1):
        further: dict[str, int] = {axis: getattr(config, axis) + step for axis in axes}
        update = {axis: at % _SIZES.get(axis, at + 1) for axis, at in further.items()}
        checked = check(app, config.model_copy(update=update))
        if isinstance(checked, Case):
            yield checked


def changed_case(config: Config) -> Case | None:
    """Return a case in which every axis is another and so is what the task comes to, where there is
    one: what was right there is wrong here, and not right by chance."""
    here = expected_outcome(config)
    return next(
        (case for case in axis_neighbours(config, AXES) if expected_outcome(case.config) != here),
        None,
    )


def expected_outcome(config: Config) -> Outcome:
    """Return the answers and the wanted rows of a configuration. Raises Infeasible."""
    app = load_app(config.app)
    scenario = app.scenario(config.scenario)
    places = instance(app.id, scenario.id, tuple(scenario.slots), config.instance, config.seed)
    state = replayable_state(app, config.profile, config.seed)
    with state.rollback():
        return outcome(scenario, bind(scenario, places, state), state)
