"""Stage 3: other words and noise for a checked case, and the rules that both keep to."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trajudge.environments.apps import load_app
from trajudge.environments.checks.integrity import Reject, check
from trajudge.environments.kit.theme import theme, wordings
from trajudge.environments.model.case import Case

NOISES = 100  # indices of noise that are drawn from; 0 is none


def refine(
    case: Case, further: Sequence[str], rng: np.random.Generator, *, noise: bool
) -> Case | Reject:
    """Return the case in one of the scenario's own wordings or of ``further`` ones, with noise if
    it is wanted. Another wording is checked as the configuration was: it must not give the answer
    away."""
    app = load_app(case.config.app)
    try:
        wordings(app, theme(case.config.theme, case.config.seed))
    except ValueError as error:
        return Reject(reason="theme", detail=str(error))
    drawn, disturbed = rng.random(), int(rng.integers(1, NOISES))
    own = len(app.scenario(case.config.scenario).goals)
    place = int(drawn * (own + len(further))) - own
    if place >= 0:
        checked = check(app, case.config, further[place])
        if isinstance(checked, Reject):
            return checked
        case = checked
    if not noise:
        return case
    return case.model_copy(update={"config": case.config.model_copy(update={"noise": disturbed})})
