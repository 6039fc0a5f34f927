"""What an evaluator does to success rates, and whether it turns the order of the agents.

Each agent's rate is over its own trajectories that have both verdicts: where agents ran different
tasks, their order says something of the tasks too. Intervals of rates take tasks as clusters,
because a task's trajectories share its difficulty.

Kendall's tau gets no bootstrap percentiles: with six agents whose rates lie within 0.2 on 50 tasks,
and an evaluator that finds nine in ten successes of the first and half of the last one's, they
cover the true tau in 2 % of the samples, for every resample swaps neighbours that the sample has in
order (``python -m benchmarks.coverage`` prints it). Its interval comes from the pairs of agents
instead, which is wider and holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np

from trajudge.annotations.agentrewardbench import benchmark_of, family_of
from trajudge.eval.audit.errors import ClusteredRate, Verdicts, Weights, rate
from trajudge.eval.stats.interval import Floats, Ints
from trajudge.eval.stats.intervals.cluster_bootstrap import Clusters, sum_clusters
from trajudge.eval.stats.intervals.clustered_differences import clustered_differences
from trajudge.eval.stats.judging.comparison import holm
from trajudge.trajectories.model import Record, TrajectoryKey

LEVEL = 0.05


class AgentRates(Record):
    """An agent's success rate by the expert and by the evaluator, on the same trajectories."""

    agent: str
    expert: ClusteredRate
    evaluator: ClusteredRate


class Flip(Record):
    """Two agents whom the expert ranks one way and the evaluator the other. ``p_value`` is the
    larger of those of both differences on the tasks that both agents ran, adjusted for all pairs of
    agents (Holm 1979); None where there are not two such tasks."""

    better: str
    worse: str
    expert: tuple[float, float]
    evaluator: tuple[float, float]
    p_value: float | None = None

    @property
    def shown(self) -> bool:
        """Whether the order is reversed by more than chance."""
        return self.p_value is not None and self.p_value <= LEVEL


class AgentRanking(Record):
    """The agents on one benchmark by one evaluator, ``n`` trajectories in all.

    ``tau`` is Kendall's tau-a between the expert's order of the agents and the evaluator's, None
    where it is not defined; ``low`` and ``high`` are the limits of ``tau_limits``. ``shift`` is by
    how much the evaluator's mean success rate lies above the expert's. ``flips`` are all pairs
    whose rates are in opposite orders, shown to be or not.
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
    weights: Weights = None,
) -> AgentRanking:
    """Rank the agents by both; ``expert`` and ``verdicts`` have a verdict on each of ``keys``, of
    which there is at least one."""
    agents = sorted({key.agent for key in keys})
    weight = np.array([1.0 if weights is None else weights[key] for key in keys])
    columns = _columns(keys, agents, expert, verdicts)
    parts = [columns * weight[:, None]]
    if weights is not None:
        parts.append(columns[:, : len(agents)] * weight[:, None] ** 2)
    whole = sum_clusters(
        np.concatenate(parts, axis=1),
        [family_of(key) for key in keys],
        [benchmark_of(key) for key in keys],
    )
    sums, squares = np.split(whole.sums, [columns.shape[1]], axis=1)
    clusters = Clusters(sums, whole.stratum_sizes)
    weighted = squares if weights else None
    low, high = tau_limits(clusters, len(agents), squares=weighted)
    rates = _rates(clusters.total, len(agents))
    return AgentRanking(
        benchmark=benchmark,
        evaluator=evaluator,
        n=len(keys),
        agents=tuple(
            AgentRates(
                agent=agent,
                expert=_rate(keys, expert, agent, weights),
                evaluator=_rate(keys, verdicts, agent, weights),
            )
            for agent in agents
        ),
        tau=_defined(tau_of(len(agents))(clusters.total)[0]),
        low=_defined(low),
        high=_defined(high),
        shift=float(
            np.average([float(verdicts[key]) - float(expert[key]) for key in keys], weights=weight)
        ),
        flips=tuple(_flips(agents, rates[0], rates[1], _reversal(clusters, len(agents), weighted))),
    )


def _columns(
    keys: Sequence[TrajectoryKey], agents: Sequence[str], expert: Verdicts, verdicts: Verdicts
) -> Any:
    """Make (keys, 3 * agents): whether the agent ran, succeeded by the expert, by the evaluator."""
    place = {agent: number for number, agent in enumerate(agents)}
    columns = np.zeros((len(keys), 3, len(agents)))
    for row, key in enumerate(keys):
        columns[row, :, place[key.agent]] = 1, expert[key], verdicts[key]
    return columns.reshape(len(keys), -1)


def _rate(
    keys: Sequence[TrajectoryKey], verdicts: Verdicts, agent: str, weights: Weights
) -> ClusteredRate:
    return rate([key for key in keys if key.agent == agent], verdicts, weights=weights)


def _defined(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _rates(totals: Any, agents: int) -> Any:
    """Compute (..., 2, agents): the expert's and the evaluator's success rates."""
    parts = totals.reshape(*totals.shape[:-1], 3, agents)
    with np.errstate(divide="ignore", invalid="ignore"):
        return parts[..., 1:, :] / parts[..., :1, :]


def tau_of(agents: int) -> Any:
    """Map totals (..., 3 * agents) to Kendall's tau-a (..., 1): concordant less discordant pairs,
    over all pairs; ``nan`` for fewer than two agents or one without a trajectory."""
    pairs = _pairs(agents)

    def tau(totals: Any) -> Any:
        rates = _rates(totals, agents)
        if len(pairs) == 0:
            return np.full((*totals.shape[:-1], 1), np.nan)
        signs = np.sign(rates[..., pairs[:, 0]] - rates[..., pairs[:, 1]])
        return np.mean(signs[..., 0, :] * signs[..., 1, :], axis=-1, keepdims=True)

    return tau


def tau_limits(
    clusters: Clusters, agents: int, confidence: float = 0.95, squares: Floats | None = None
) -> tuple[float, float]:
    """Compute limits of tau-a from ``clusters`` with the columns of ``tau_of``; ``nan`` below two
    agents.

    Every pair of agents is tested for its order, by the expert and by the evaluator
    (``clustered_differences``, two-sided, Bonferroni over all of these tests). With probability
    ``confidence`` no order that is shown is wrong; pairs whose order is not shown by both may count
    anything from -1 to 1.
    """
    pairs = _pairs(agents)
    if not len(pairs):
        return np.nan, np.nan
    ran, *hits = clusters.sums.reshape(len(clusters.sums), 3, agents).transpose(1, 2, 0)
    level = (1 - confidence) / (2 * len(pairs))
    shown = [
        _order_shown(each, ran, pairs, clusters.stratum_sizes, level=level, squares=squares)
        for each in hits
    ]
    products = shown[0] * shown[1]
    unknown = (products == 0).sum()
    return (
        float((products.sum() - unknown) / len(pairs)),
        float((products.sum() + unknown) / len(pairs)),
    )


def _order_shown(
    hits: Floats,
    trials: Floats,
    pairs: Ints,
    stratum_sizes: Ints,
    *,
    level: float,
    squares: Floats | None,
) -> Floats:
    """Find the sign of each pair's difference of rates (P,), 0 where the test at ``level`` shows
    none."""
    both = [(hits[place], trials[place]) for place in pairs.T]
    differences = clustered_differences(
        np.stack([h for h, _ in both]),
        np.stack([n for _, n in both]),
        stratum_sizes,
        squares=None if squares is None else squares.T[pairs.T],
    )
    return np.where(differences.p_value <= level, np.sign(differences.interval.estimate), 0.0)


def _pairs(agents: int) -> Ints:
    return np.array(list(combinations(range(agents), 2)), dtype=np.int64).reshape(-1, 2)


def _reversal(clusters: Clusters, agents: int, squares: Floats | None = None) -> Floats:
    """Compute p-values (P,) of "not both differences of a pair are there, in opposite directions",
    on the tasks that both agents ran; ``nan`` where there are not two. Of weighted runs,
    ``squares`` (tasks, agents) are the sums of squared weights.

    All pairs are adjusted for, those in one order too: which are reversed was seen in the data.
    """
    ran, *hits = clusters.sums.reshape(len(clusters.sums), 3, agents).transpose(1, 2, 0)
    stratum = np.repeat(np.arange(len(clusters.stratum_sizes)), clusters.stratum_sizes)
    values = []
    for one, other in _pairs(agents):
        shared = (ran[one] > 0) & (ran[other] > 0)
        if shared.sum() < 2:
            values.append(np.nan)
            continue
        pair = [one, other]
        # First and second agent, by expert and evaluator: (2, 2, tasks).
        both = np.stack([each[pair][:, shared] for each in hits], axis=1)
        trials = np.stack([ran[pair][:, shared]] * 2, axis=1)
        sizes = np.unique(stratum[shared], return_counts=True)[1]
        squared = None
        if squares is not None:
            squared = np.stack([squares.T[pair][:, shared]] * 2, axis=1)
        apart = clustered_differences(both, trials, sizes, squares=squared)
        by_expert, by_rule = apart.interval.estimate
        values.append(float(apart.p_value.max()) if by_expert * by_rule < 0 else 1.0)
    return holm(values)


def _flips(agents: Sequence[str], expert: Any, evaluator: Any, p_values: Floats) -> list[Flip]:
    flips = []
    for (one, other), p in zip(_pairs(len(agents)).tolist(), p_values.tolist(), strict=True):
        by_expert, by_rule = expert[one] - expert[other], evaluator[one] - evaluator[other]
        if by_expert * by_rule < 0:
            better, worse = (one, other) if by_expert > 0 else (other, one)
            flips.append(
                Flip(
                    better=agents[better],
                    worse=agents[worse],
                    expert=(float(expert[better]), float(expert[worse])),
                    evaluator=(float(evaluator[better]), float(evaluator[worse])),
                    p_value=_defined(p),
                )
            )
    return flips
