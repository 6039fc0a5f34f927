"""Other configurations of a scenario: sound, and different where they should be."""

from __future__ import annotations

import pytest

from tests.environments.cases import sound
from trajudge.environments.checks.variation import (
    AXES,
    Axis,
    axis_neighbours,
    changed_case,
    expected_outcome,
)
from trajudge.environments.model.config import PROFILES


@pytest.mark.parametrize("axis", AXES)
def test_one_axis_moves_alone(axis: Axis) -> None:
    config = sound("spent", profile=PROFILES - 1).config
    case = next(axis_neighbours(config, [axis]))
    moved = {name for name in AXES if getattr(case.config, name) != getattr(config, name)}
    assert moved == {axis}
    assert (case.config.noise, case.config.seed) == (config.noise, config.seed)


@pytest.mark.parametrize("scenario", ["spent", "count-orders", "units-bought", "unwish"])
def test_elsewhere_every_axis_and_the_end_is_another(scenario: str) -> None:
    config = sound(scenario).config
    case = changed_case(config)
    assert case is not None
    assert all(getattr(case.config, axis) != getattr(config, axis) for axis in AXES)
    assert expected_outcome(case.config) != expected_outcome(config)
    assert expected_outcome(config) == expected_outcome(
        config.model_copy(update={"theme": 5, "ui": 5})
    )
