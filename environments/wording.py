"""The goal of a configuration in words."""

from __future__ import annotations

from environments.axes import Config, generator
from environments.binding import filled
from environments.spec import Bound, Scenario


def worded(scenario: Scenario, config: Config, bound: Bound) -> str:
    """The goal in one of its wordings, chosen by the instance alone. Raises KeyError for a
    placeholder that names no slot or column."""
    rng = generator("wording", config.app, config.scenario, config.instance, config.seed)
    return filled(scenario.goals[int(rng.integers(len(scenario.goals)))], bound)
