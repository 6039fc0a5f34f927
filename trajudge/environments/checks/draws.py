"""What an episode is about: a configuration drawn for one of three splits that share nothing.

A split is held apart in three layers, so that three kinds of generalisation can be measured. Data:
the seed of a configuration is of the split's residue class, and with it every row and instance;
people and products of the test split are in no other. Looks: a few structures of pages are drawn in
the test split alone. Tasks: a fifth of the scenarios is in the test split alone; of the others the
last wording is its own, and where there are three or more the last but one is the validation
split's.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import Literal, NamedTuple, get_args

import numpy as np

from trajudge.environments.apps import APPS, load_app, mistakes_of
from trajudge.environments.checks.integrity import check
from trajudge.environments.kit.theme import theme, wordings
from trajudge.environments.model.case import Case
from trajudge.environments.model.config import PROFILES, SPLITS, STATES, THEMES, Config, Split
from trajudge.environments.model.spec import App, Scenario
from trajudge.util.errors import UserError, did_you_mean

Axis = Literal["profile", "theme", "ui", "instance", "noise"]
AXES: tuple[Axis, ...] = get_args(Axis)
USUAL_AXES: tuple[Axis, ...] = AXES[:-1]

LEVELS = ("level1", "level2", "level3")
WORLDS = 2  # seeds of a split: each has data profiles and looks of its own
INSTANCES = 1_000_000
NOISES = 100  # indices of noise that are drawn; 0 is none
TRIES = 400  # configurations until a scenario counts as one that cannot be drawn
HELD_OUT_SCENARIOS = 5  # one in so many is in the test split alone
HELD_OUT_LOOKS = frozenset(
    {("table", "side", "list"), ("cards", "bottom", "radio"), ("lines", "top", "radio")}
)
"""How lists, navigation and choices look in the test split, and in no other."""


class NoSuchTask(UserError):
    """No task fits what was asked for; the message says which there are."""


class Template(NamedTuple):
    """A scenario of an application, with the wordings of its goal that a split may use."""

    app: str
    scenario: str
    goals: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.app}.{self.scenario}"

    @property
    def level(self) -> int:
        return load_app(self.app).scenario(self.scenario).demand


def held_out(app: str, scenario: str) -> bool:
    """Tell whether a scenario is drawn in the test split alone."""
    return sha256(f"{app}.{scenario}".encode()).digest()[0] % HELD_OUT_SCENARIOS == 0


def goals_of(app: str, scenario: Scenario, split: Split) -> tuple[str, ...]:
    """Return the wordings that a split may use; none where the scenario is not drawn in it."""
    goals = scenario.goals
    if held_out(app, scenario.id):
        return goals if split == "test" else ()
    if split == "test":
        return goals[1:][-1:]
    if split == "validation" and len(goals) > 2:
        return goals[-2:-1]
    return goals[: -2 if len(goals) > 2 else 1]


def templates(
    tasks: str, split: Split, *, pictures: bool
) -> tuple[tuple[Template, ...], int | None]:
    """Return the scenarios that a name stands for, and the level that it asks for, if any.

    ``tasks`` is ``all``, ``level1`` to ``level3``, an application, or ``application.scenario``.
    Without ``pictures`` scenarios whose charts must be read are left out. Raises NoSuchTask for a
    name that stands for none.
    """
    level = int(tasks[-1]) if tasks in LEVELS else None
    app, _, wanted = tasks.partition(".")
    apps = [*APPS] if level or tasks == "all" else [app]
    try:
        known = [(name, scenario) for name in apps for scenario in load_app(name).scenarios]
    except UserError as error:
        raise NoSuchTask(str(error)) from error
    if wanted:
        known = [(app, _existing(app, wanted))]
    readable = [(name, scenario) for name, scenario in known if pictures or not scenario.charts]
    if not readable:
        raise NoSuchTask(
            f"{tasks}: its charts must be read in pictures, which takes engine='chromium'"
        )
    drawn = [(name, scenario.id, goals_of(name, scenario, split)) for name, scenario in readable]
    offered = tuple(Template(*parts) for parts in drawn if parts[2])
    if not offered:
        others = [one for one in SPLITS if any(goals_of(n, s, one) for n, s in readable)]
        names = " or ".join(map(repr, others))
        raise NoSuchTask(f"{tasks} is not in split={split!r}: name {names}")
    return offered, level


def _existing(app: str, name: str) -> Scenario:
    scenarios = {scenario.id: scenario for scenario in load_app(app).scenarios}
    if name not in scenarios:
        close = did_you_mean(name, [*scenarios]) or f": choose from {', '.join(scenarios)}"
        raise NoSuchTask(f"no scenario of {app} is called {name!r}{close}")
    return scenarios[name]


@lru_cache(maxsize=64)
def looks(split: Split, seed: int) -> tuple[int, ...]:
    """Return the themes of this seed that a split may show."""
    shown = [(index, theme(index, seed)) for index in range(THEMES)]
    return tuple(
        index
        for index, look in shown
        if ((look.items, look.nav, look.choice) in HELD_OUT_LOOKS) == (split == "test")
    )


@lru_cache
def worlds(split: Split) -> tuple[int, ...]:
    """Return the seeds of a split: the first of its residue class that have looks for it."""
    seeds = range(SPLITS.index(split), 1000, len(SPLITS))
    return tuple([seed for seed in seeds if looks(split, seed)][:WORLDS])


def draw(
    rng: np.random.Generator,
    offered: Sequence[Template],
    split: Split,
    axes: Collection[Axis] = USUAL_AXES,
    level: int | None = None,
) -> Case:
    """Draw a sound configuration and its goal. Axes that are not in ``axes`` stand still.

    All axes are drawn anew until ``checks.integrity`` finds a fair task of the ``level``; raises
    NoSuchTask where ``TRIES`` were none, and UserError for what a user's application raises.
    """
    fitting = [one for one in offered if level in (None, one.level)]
    for _ in range(TRIES if fitting else 0):
        template = fitting[int(rng.integers(len(fitting)))]
        config, goal = configuration(rng, template, split, axes)
        app = load_app(config.app)
        with mistakes_of(app.id, f"{config.id} cannot be checked"):
            checked = check(app, config, goal)
        if isinstance(checked, Case) and _worded(app, config):
            return checked
    named = offered[0].name if len(offered) == 1 else f"{len(offered)} scenarios"
    wish = f" of level {level}" if level else ""
    raise NoSuchTask(
        f"{named}: none of {TRIES} configurations{wish} is a fair task in split={split!r} with "
        f"axes={sorted(axes)}: let more axes move, or name another level"
    )


def configuration(
    rng: np.random.Generator, template: Template, split: Split, axes: Collection[Axis]
) -> tuple[Config, str]:
    """Draw a configuration, which may be no fair task, and a wording of its goal."""
    seeds = worlds(split)
    limits = (len(seeds), INSTANCES, PROFILES, STATES, NOISES, len(template.goals))
    world, instance, profile, ui, noise, wording = rng.integers(limits).tolist()
    place = rng.random()
    seed = seeds[world if "profile" in axes else 0]
    shown = looks(split, seed)
    config = Config(
        app=template.app,
        scenario=template.scenario,
        instance=instance if "instance" in axes else 0,
        profile=profile if "profile" in axes else 0,
        theme=shown[int(place * len(shown)) if "theme" in axes else 0],
        ui=ui if "ui" in axes else 0,
        noise=noise if "noise" in axes else 0,
        seed=seed,
    )
    return config, template.goals[wording]


def _worded(app: App, config: Config) -> bool:
    """Tell whether the theme has words for all labels, no two the same."""
    try:
        wordings(app, theme(config.theme, config.seed))
    except ValueError:
        return False
    return True
