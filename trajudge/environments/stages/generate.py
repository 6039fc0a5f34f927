"""Stage 2: checked configurations of the planned scenarios."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trajudge.environments.apps import load_app, mistakes_of
from trajudge.environments.checks.integrity import Reject, check
from trajudge.environments.model.case import Case
from trajudge.environments.model.config import PROFILES, STATES, THEMES, Config
from trajudge.environments.stages.model import Template

INSTANCES = 10_000


def generate(template: Template, seed: int, rng: np.random.Generator) -> Iterator[Case | Reject]:
    """Yield what the checks made of configurations of one scenario, each tried once. Endless: all
    axes are drawn anew each time. Raises UserError for what a user's application raises."""
    app = load_app(template[0])
    drawn: set[str] = set()
    while True:
        instance, profile, theme, ui = rng.integers((INSTANCES, PROFILES, THEMES, STATES)).tolist()
        config = Config(
            app=app.id,
            scenario=template[1],
            instance=instance,
            profile=profile,
            theme=theme,
            ui=ui,
            seed=seed,
        )
        if config.id not in drawn:
            drawn.add(config.id)
            with mistakes_of(app.id, f"{config.id} cannot be checked"):
                checked = check(app, config)
            yield checked
