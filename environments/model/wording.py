"""The goal of a configuration in words."""

from __future__ import annotations

from trajudge.environments.model.axes import generator
from trajudge.environments.model.binding import filled
from trajudge.environments.model.config import Config
from trajudge.environments.model.spec import Bound, Scenario


def worded(scenario: Scenario, config: Config, bound: Bound) -> str:
    """Return the goal in one of its wordings, chosen by the instance alone. Raises KeyError for a
    placeholder that names no slot or column."""
    rng = generator("wording", config.app, config.scenario, config.instance, config.seed)
    return filled(scenario.goals[int(rng.integers(len(scenario.goals)))], bound)
