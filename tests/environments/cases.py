"""Sound cases for tests, and jobs on them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from trajudge.environments.agents.protocol import Job
from trajudge.environments.agents.script import AGENTS, Behaviour
from trajudge.environments.apps import load_app
from trajudge.environments.checks.integrity import check
from trajudge.environments.model.case import Case
from trajudge.environments.model.config import PROFILES, Config
from trajudge.environments.model.spec import FormSubmission, Rejected, Success


@cache
def sound(scenario: str, app: str = "shop", **axes: int) -> Case:
    """The first sound case of a scenario in the given axes (the plain ones by default, another
    data profile where the plain one has none)."""
    for index in range(40 * PROFILES):
        plain = {"instance": index % 40, "profile": index // 40}
        config = Config(app=app, scenario=scenario, **{**plain, **axes})
        found = check(load_app(app), config)
        if isinstance(found, Case):
            return found
    raise AssertionError(f"{app} {scenario}: no sound case")


def half_done(
    run: Callable[[FormSubmission], Success | Rejected],
) -> Callable[[FormSubmission], Rejected]:
    """An operation that changes the state as ``run`` does and refuses then."""

    def refuse(submission: FormSubmission) -> Rejected:
        run(submission)
        return Rejected("Not today.")

    return refuse


def agent(behaviour: Behaviour) -> str:
    """The name of the agent that behaves so."""
    return next(name for name, known in AGENTS.items() if known is behaviour)


def job(case: Case, name: str, attempt: int = 0) -> Job:
    return Job(
        config=case.config,
        agent=name,
        attempt=attempt,
        goal=case.goal,
        shortest=case.shortest,
        fewest=case.fewest,
    )
