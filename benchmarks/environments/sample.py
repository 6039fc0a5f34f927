"""Sound cases of all applications, on all axes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from trajudge.environments.apps import APPS, load_app
from trajudge.environments.checks.integrity import check
from trajudge.environments.model.axes import generator
from trajudge.environments.model.case import Case
from trajudge.environments.model.config import PROFILES, STATES, THEMES, Config
from trajudge.environments.model.spec import App

TRIED = 60  # configurations of a scenario, of which one has to be sound


def scenarios() -> list[tuple[App, str]]:
    """Return the scenarios of all applications, in an order in which each part is a sample."""
    named = [
        (load_app(name), scenario.id) for name in APPS for scenario in load_app(name).scenarios
    ]
    order = generator("benchmark").permutation(len(named)).tolist()
    return [named[place] for place in order]


def configs(app: App, scenario: str, seed: int) -> Iterator[Config]:
    """Yield configurations of a scenario without end, drawn on all axes."""
    rng = generator("benchmark", app.id, scenario, seed)
    while True:
        instance, profile, theme, ui = rng.integers((1000, PROFILES, THEMES, STATES)).tolist()
        yield Config(
            app=app.id, scenario=scenario, instance=instance, profile=profile, theme=theme, ui=ui
        )


def sound(count: int, seed: int = 0) -> list[Case]:
    """Return a sound case of each of ``count`` scenarios, of all of them several times over for
    more."""
    named = scenarios()
    cases: list[Case] = []
    for turn in range(1 + count // len(named)):
        for app, scenario in named:
            if len(cases) == count:
                return cases
            drawn = islice(configs(app, scenario, seed + 1000 * turn), TRIED)
            checked = (check(app, config) for config in drawn)
            cases += islice((case for case in checked if isinstance(case, Case)), 1)
    return cases
