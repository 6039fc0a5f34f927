"""Few right guesses: whoever looks at no page is right in at most 15 % of the configurations."""

from __future__ import annotations

import pytest

from trajudge.environments.apps import APPS, load_app
from trajudge.environments.checks.guessing import MOST, guessing_floors
from trajudge.environments.model.axes import generator

_FEW = {
    "almanac": ("opening", "busiest-month"),
    "console": ("alerts-in-region", "peak-day"),
    "helpdesk": ("top-spending", "backlog-month"),
    "moderation": ("top-category", "busiest-moderator"),
    "press": ("top-section",),
    "shop": ("units-bought", "count-orders", "cheapest-month"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", _FEW)
def test_scenarios_with_few_candidates_are_seldom_guessed(name: str) -> None:
    app = load_app(name)
    found = guessing_floors(app, [app.scenario(one) for one in _FEW[name]], suites=5)
    for scenario, floor in found.items():
        assert floor.share <= MOST, (scenario, floor)


def test_a_state_or_a_code_is_not_guessed() -> None:
    app = load_app("shop")
    found = guessing_floors(app, [app.scenario("buy"), app.scenario("wish")], suites=1)
    assert {floor.share for floor in found.values()} == {0.0}


@pytest.mark.parametrize("name", APPS)
def test_no_draw_of_a_profile_fails(name: str) -> None:
    """Suite 13 once took more decisions at the moderation desk than there are posts."""
    app = load_app(name)
    for profile in range(0, 12, 4):
        assert app.profile(generator("profile", app.id, profile, 13), profile)
