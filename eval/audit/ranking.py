"""What an evaluator does to success rates, and whether it turns the order of the agents.

Each agent's rate is over its own trajectories that have both verdicts: where agents ran different
tasks, their order says something of the tasks too. Tasks are drawn as wholes for the intervals,
because a task's trajectories share its difficulty.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np

from trajudge.eval.audit.errors import Rate, Verdicts, rate
from trajudge.eval.stats.intervals.cluster_bootstrap import cluster_bootstrap, sum_clusters
from trajudge.trajectories.model import Record, TrajectoryKey

RESAMPLES = 2_000


class AgentRates(Record):
    """An agent's success rate by the expert and by the evaluator, on the same trajectories."""

    agent: str
    expert: Rate
    evaluator: Rate


class Flip(Record):
    """Two agents whom the expert ranks one way and the evaluator the other."""

    better: str
    worse: str
    expert: tuple[float, float]
    evaluator: tuple[float, float]


class Ranking(Record):
    """The agents on one benchmark by one evaluator, ``n`` trajectories in all.

    ``tau`` is Kendall's tau-a between the expert's order of the agents and the evaluator's, with a
    95 % percentile interval over resampled tasks; None where it is not defined. ``shift`` is by
    how much the evaluator's mean success rate lies above the expert's.
    """

    benchmark: str
    evaluator: str
    n: int
    agents: tuple[AgentRates, ...]
    tau: float | None = None
    low: float | None = None
    high: float | None = None
    shift: float
    flips: tuple[Flip, ...] = ()


def ranking(
    benchmark: str,
    evaluator: str,
    keys: Sequence[TrajectoryKey],
    expert: Verdicts,
    verdicts: Verdicts,
    *,
    rng: np.random.Generator,
) -> Ranking:
    """``expert`` and ``verdicts`` have a verdict on each of ``keys``, of which there is one."""
    agents = sorted({key.agent for key in keys})
    clusters = sum_clusters(
        _columns(keys, agents, expert, verdicts),
        [key.task_id for key in keys],
        [key.benchmark for key in keys],
    )
    found = cluster_bootstrap(clusters, tau_of(len(agents)), rng, n_resamples=RESAMPLES)
    rates = _rates(clusters.total, len(agents))
    return Ranking(
        benchmark=benchmark,
        evaluator=evaluator,
        n=len(keys),
        agents=tuple(
            AgentRates(
                agent=agent,
                expert=_rate(keys, expert, agent),
                evaluator=_rate(keys, verdicts, agent),
            )
            for agent in agents
        ),
        tau=_defined(found.estimate[0]),
        low=_defined(found.low[0]),
        high=_defined(found.high[0]),
        shift=float(np.mean([float(verdicts[key]) - float(expert[key]) for key in keys])),
        flips=tuple(_flips(agents, rates[0], rates[1])),
    )


def _columns(
    keys: Sequence[TrajectoryKey], agents: Sequence[str], expert: Verdicts, verdicts: Verdicts
) -> Any:
    """(keys, 3 * agents): whether the agent ran, succeeded by the expert, by the evaluator."""
    place = {agent: number for number, agent in enumerate(agents)}
    columns = np.zeros((len(keys), 3, len(agents)))
    for row, key in enumerate(keys):
        columns[row, :, place[key.agent]] = 1, expert[key], verdicts[key]
    return columns.reshape(len(keys), -1)


def _rate(keys: Sequence[TrajectoryKey], verdicts: Verdicts, agent: str) -> Rate:
    return rate([key for key in keys if key.agent == agent], verdicts)


def _defined(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _rates(totals: Any, agents: int) -> Any:
    """(..., 2, agents): the expert's and the evaluator's success rates."""
    parts = totals.reshape(*totals.shape[:-1], 3, agents)
    with np.errstate(divide="ignore", invalid="ignore"):
        return parts[..., 1:, :] / parts[..., :1, :]


def tau_of(agents: int) -> Any:
    """Totals (..., 3 * agents) to Kendall's tau-a (..., 1): concordant less discordant pairs,
    over all pairs; ``nan`` for fewer than two agents or one without a trajectory."""
    pairs = np.array(list(combinations(range(agents), 2)), dtype=int).reshape(-1, 2)

    def tau(totals: Any) -> Any:
        rates = _rates(totals, agents)
        if len(pairs) == 0:
            return np.full((*totals.shape[:-1], 1), np.nan)
        signs = np.sign(rates[..., pairs[:, 0]] - rates[..., pairs[:, 1]])
        return np.mean(signs[..., 0, :] * signs[..., 1, :], axis=-1, keepdims=True)

    return tau


def _flips(agents: Sequence[str], expert: Any, evaluator: Any) -> list[Flip]:
    found = []
    for one, other in combinations(range(len(agents)), 2):
        by_expert, by_rule = expert[one] - expert[other], evaluator[one] - evaluator[other]
        if by_expert * by_rule < 0:
            better, worse = (one, other) if by_expert > 0 else (other, one)
            found.append(
                Flip(
                    better=agents[better],
                    worse=agents[worse],
                    expert=(float(expert[better]), float(expert[worse])),
                    evaluator=(float(evaluator[better]), float(evaluator[worse])),
                )
            )
    return found
