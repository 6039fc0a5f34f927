"""The tasks that a server offers: the cases of a file, or what a seed draws of the applications."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from trajudge.environments.apps import APPS, load_app, mistakes_of
from trajudge.environments.checks.integrity import check
from trajudge.environments.model.case import Case
from trajudge.environments.model.config import PROFILES, STATES, THEMES, Config
from trajudge.util.errors import UserError

TRIES = 400  # configurations, until a scenario counts as one that cannot be drawn
INSTANCES = 1_000_000


class NoSuchTask(Exception):
    """No task fits what was asked for; the message says which there are."""


class Tasks:
    """Tasks by name. With ``cases`` these are all; without, a name is an application or
    ``application.scenario``, and its seed draws the rest."""

    def __init__(self, cases: Sequence[Case] = ()) -> None:
        self._cases = {case.id: case for case in cases}

    def listed(self, level: str | None = None) -> list[dict[str, Any]]:
        """Return the tasks; scenarios have no level before they are drawn."""
        if self._cases:
            return [
                {"task": case.id, "goal": case.goal, "level": case.level}
                for case in self._cases.values()
                if level in (None, str(case.level))
            ]
        return [{"task": f"{app}.{s.id}"} for app in APPS for s in load_app(app).scenarios]

    def find(
        self, task: str | None, level: int | None, seed: int, *, pictures: bool = True
    ) -> Case:
        """Return the task of a name, or one that is drawn; without ``pictures`` none is drawn whose
        charts must be read. Raises NoSuchTask."""
        rng = np.random.default_rng(seed)
        if not self._cases:
            return _drawn(task or "", level, rng, pictures=pictures)
        if task is not None:
            if task not in self._cases:
                raise NoSuchTask(f"no task is called {task!r}: GET /v1/tasks lists them")
            return self._cases[task]
        fitting = [case for case in self._cases.values() if level in (None, case.level)]
        if not fitting:
            raise NoSuchTask(f"no task is of level {level}: GET /v1/tasks lists them")
        return fitting[int(rng.integers(len(fitting)))]


def _drawn(task: str, level: int | None, rng: np.random.Generator, *, pictures: bool) -> Case:
    app_name, _, scenario_name = task.partition(".")
    try:
        apps = [load_app(name) for name in ([app_name] if app_name else APPS)]
    except UserError as error:
        raise NoSuchTask(str(error)) from error
    scenarios = [
        (app, scenario.id)
        for app in apps
        for scenario in app.scenarios
        if scenario_name in ("", scenario.id)
        and (pictures or not scenario.charts)
        and level in (None, scenario.demand)
    ]
    if not scenarios:
        wish = f" of level {level}" if level else ""
        raise NoSuchTask(f"no task is called {task!r}{wish}: GET /v1/tasks lists them")
    for _ in range(TRIES):
        app, scenario_id = scenarios[int(rng.integers(len(scenarios)))]
        limits = (INSTANCES, PROFILES, THEMES, STATES, INSTANCES)
        instance, profile, look, ui, world = rng.integers(limits).tolist()
        config = Config(
            app=app.id,
            scenario=scenario_id,
            instance=instance,
            profile=profile,
            theme=look,
            ui=ui,
            seed=world,
        )
        with mistakes_of(app.id, f"{config.id} cannot be checked"):
            checked = check(app, config)
        if isinstance(checked, Case):
            return checked
    raise NoSuchTask(f"none of {TRIES} configurations of {task or 'all'} is a fair task")
