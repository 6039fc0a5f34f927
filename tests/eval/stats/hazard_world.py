"""Attempts drawn from the hazard model itself, with the truth kept."""

from __future__ import annotations

import numpy as np

from trajudge.stats.difficulty import Attempts, attempts, step_bin
from trajudge.stats.intervals import Floats


def simulate(seed: int, tasks: int = 200, agents: int = 8) -> tuple[Attempts, Floats]:
    """Attempts on four sites, and every task's true reference success."""
    rng = np.random.default_rng(seed)
    template = np.arange(tasks) // 3
    site = template % 4
    category = site * 100 + rng.integers(0, 5, tasks)
    effects = (
        -4.0
        - rng.normal(0, 1, tasks)
        + rng.normal(0, 0.4, 4)[site]
        + rng.normal(0, 0.5, template.max() + 1)[template]
        + rng.normal(0, 0.5, 500)[category]
    )
    ability = rng.normal(0, 0.8, agents)
    ability -= ability.mean()
    bins = rng.normal(0, 0.2, 5)
    who, what = np.repeat(np.arange(agents), tasks), np.tile(np.arange(tasks), agents)
    steps = rng.integers(1, 31, agents * tasks)
    log_hazard = np.log1p(steps) + effects[what] + ability[who] + bins[step_bin(steps)]
    success = rng.random(agents * tasks) < -np.expm1(-np.exp(log_hazard))
    names = range(tasks)
    data = attempts(
        who,
        what,
        steps,
        success,
        site={t: f"site {site[t]}" for t in names},
        template={t: int(template[t]) for t in names},
        category={t: int(category[t]) for t in names},
    )
    reference = data.reference_steps()[data.site]
    truth = np.log1p(reference) + effects + bins[step_bin(reference)]
    return data, np.asarray(-np.expm1(-np.exp(truth)))
