"""Which agents do which cases how often."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trajudge.environments.agents.protocol import Job
from trajudge.environments.agents.script import (
    AGENTS,
    LADDER,
    RESILIENT,
    Behaviour,
    resilience_of,
)
from trajudge.environments.apps import load_app
from trajudge.environments.model.case import Case
from trajudge.environments.model.config import Config
from trajudge.environments.model.payload import USER_CONTENT, Payload, drawn
from trajudge.environments.serving.noise import noise
from trajudge.util.errors import UserError

FEWER: Mapping[Behaviour, str] = {
    Behaviour.NEAR_MISS: "has one for each value of the task that can be mistaken for another",
    Behaviour.SIDE_EFFECT: "needs a task with something else to change",
    Behaviour.MISREADS: "needs a task that asks for an answer",
}
"""Why an agent has not one run of every case."""


def jobs_for(cases: Sequence[Case], agents: Sequence[str], attempts: int = 1) -> list[Job]:
    """Return every agent on every case; a near-miss agent once for each slot that has a decoy, a
    resilient one, a model and a user's agent ``attempts`` times."""
    return [job for case in cases for agent in agents for job in _jobs(case, agent, attempts)]


def with_payloads(jobs: Sequence[Job], payloads: Sequence[Payload], seed: int) -> list[Job]:
    """Plant the payloads in the jobs' applications, one a job, in turn from the ``seed``. Raises
    UserError for an application of which is not known what its users write."""
    if payloads and (unknown := {job.config.app for job in jobs} - USER_CONTENT.keys()):
        raise UserError(
            f"--payloads: it is not known what the users of {', '.join(sorted(unknown))} write: "
            f"give cases of {', '.join(USER_CONTENT)}"
        )
    return [
        job.model_copy(update={"payload": drawn(payloads, seed + number)})
        for number, job in enumerate(jobs)
    ]


def _jobs(case: Case, agent: str, attempts: int) -> list[Job]:
    behaviour = AGENTS.get(agent)
    config = case.config
    scenario = load_app(config.app).scenario(config.scenario)
    if behaviour is Behaviour.NEAR_MISS:
        attempts = len(scenario.mistakable)
    elif behaviour is Behaviour.SIDE_EFFECT:
        attempts = int(scenario.distractor is not None)
    elif behaviour is Behaviour.MISREADS:
        attempts = int(any(answer.kind != "code" for answer in scenario.answers))
    elif behaviour is not None:
        attempts = 1
    if behaviour is Behaviour.BLOCKED:
        config = _with_promotion(config)
    return [
        Job(
            config=config,
            agent=agent,
            attempt=n,
            goal=case.goal,
            shortest=case.shortest,
            fewest=case.fewest,
        )
        for n in range(attempts)
    ]


def _with_promotion(config: Config) -> Config:
    """Return the configuration with the first noise that covers the page."""
    for index in range(1, 100):
        tried = config.model_copy(update={"noise": index})
        if any(item.kind == "promotion" for item in noise(tried)):
            return tried
    raise RuntimeError("no noise holds a promotion")


def chosen(words: Sequence[str]) -> list[str]:
    """Return the agents named, by name or by behaviour. Raises UserError for a name that is
    neither."""
    behaviours = {name: behaviour.value for name, behaviour in AGENTS.items()}
    behaviours |= {name: f"resilient-{resilience_of(name)}" for name in RESILIENT}
    behaviours |= {name: f"ladder-{rung}" for name, rung in LADDER.items()}
    by_behaviour = {behaviour: name for name, behaviour in behaviours.items()}
    whole = {"all": list(AGENTS), "resilient": list(RESILIENT), "ladder": list(LADDER)}
    if len(words) == 1 and words[0] in whole:
        return whole[words[0]]
    for word in words:
        if word not in behaviours and word not in by_behaviour:
            known = ", ".join(f"{name} ({behaviour})" for name, behaviour in behaviours.items())
            raise UserError(
                f"no agent is called {word!r}: name a Python file of your own, or choose from all, "
                f"resilient, ladder, {known}"
            )
    return [by_behaviour.get(word, word) for word in words]
