"""Coverage of the intervals of comparisons: differences between judges, and Kendall's tau.

Differences: two judges on the same beta-binomial tasks, the second of which repeats the first's
verdict on a share of the trajectories. Tau: agents whose true rates of success are evenly spread
run the same tasks, and an evaluator with known error rates judges them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from tests.worlds.cluster_designs import SIZES
from tests.worlds.coverage import Coverage
from trajudge.eval.audit import tau_limits, tau_of
from trajudge.eval.scoring.metrics import METRICS, f1_from_jaccard
from trajudge.stats.intervals import (
    Clusters,
    Floats,
    cluster_bootstrap,
    clustered_differences,
)

COMPARED = ("precision", "recall", "f1")
_RESAMPLES = 500


class PairDesign(NamedTuple):
    """``judges``: true- and false-positive rates of both; ``alike``: how often they agree by
    design; ``positives`` are those expected."""

    tasks: int
    sizes: str
    prevalence: float
    correlation: float
    judges: tuple[tuple[float, float], tuple[float, float]]
    alike: float

    @property
    def positives(self) -> float:
        return self.tasks * float(SIZES[self.sizes].mean()) * self.prevalence

    @property
    def name(self) -> str:
        (a, b), (c, d) = self.judges
        return (
            f"differences: {self.tasks} tasks of {self.sizes}, prevalence {self.prevalence}, "
            f"correlation {self.correlation}, TPR {a} and {c}, FPR {b} and {d}, alike {self.alike}"
        )


def pair_designs(every: int = 1) -> Iterator[PairDesign]:
    """Yield every Nth design."""
    pairs = (((0.8, 0.1), (0.8, 0.1)), ((0.8, 0.1), (0.6, 0.03)), ((0.95, 0.3), (0.7, 0.1)))
    grid = product((20, 40, 100, 300), SIZES, (0.1, 0.3, 0.6), (0.0, 0.4), pairs, (0.0, 0.6))
    for number, parts in enumerate(grid):
        design = PairDesign(*parts)
        if number % every == 0:
            yield design


def coverage_of_differences(
    design: PairDesign, replicates: int, rng: np.random.Generator
) -> Iterator[Coverage]:
    """Measure the differences of precision, recall and F1 between the judges."""
    truth = _true_metrics(design)
    step = max(1, 60_000 // design.tasks)
    counted = {metric: np.zeros(3, dtype=int) for metric in COMPARED}
    for start in range(0, replicates, step):
        counts = _draw_pair(design, min(step, replicates - start), rng)
        for metric in COMPARED:
            hits, trials = (counts[..., list(p)].sum(axis=-1) for p in _cells(metric))
            transform = f1_from_jaccard if metric == "f1" else np.asarray
            found = clustered_differences(hits, trials, [design.tasks], transform=transform)
            low, high = found.interval.low, found.interval.high
            wanted = truth[0][metric] - truth[1][metric]
            inside = (low - 1e-12 <= wanted) & (wanted <= high + 1e-12)
            defined = ~np.isnan(found.interval.estimate)
            counted[metric] += [(~np.isnan(low)).sum(), inside.sum(), defined.sum()]
    for metric, (n, covered, defined) in counted.items():
        if n:
            yield Coverage(metric, design.name, int(n), int(covered), n / defined)


def _cells(metric: str) -> tuple[tuple[int, ...], ...]:
    return tuple(
        tuple(place for place in part if place < 4)
        for part in (METRICS[metric].hits, METRICS[metric].trials)
    )


def _true_metrics(design: PairDesign) -> list[dict[str, float]]:
    found = []
    for tpr, fpr in design.judges:
        tp, fp = design.prevalence * tpr, (1 - design.prevalence) * fpr
        jaccard = tp / (design.prevalence + fp)
        found.append(
            {"precision": tp / (tp + fp), "recall": tpr, "f1": 2 * jaccard / (1 + jaccard)}
        )
    return found


def _draw_pair(design: PairDesign, n: int, rng: np.random.Generator) -> Floats:
    """Counts TP, FP, FN, TN of both judges by task, (2, n, tasks, 4)."""
    shape = (n, design.tasks)
    runs = rng.choice(SIZES[design.sizes], shape)
    rate: Floats | float = design.prevalence
    if design.correlation:
        size = 1 / design.correlation - 1
        rate = rng.beta(design.prevalence * size, (1 - design.prevalence) * size, shape)
    counts = np.zeros((2, *shape, 4))
    for run in range(int(runs.max())):
        here, right = run < runs, rng.random(shape) < rate
        draws = rng.random((2, *shape))
        # A shared draw makes the judges agree as far as their rates do.
        draws[1] = np.where(rng.random(shape) < design.alike, draws[0], draws[1])
        for judge, (tpr, fpr) in enumerate(design.judges):
            says = draws[judge] < np.where(right, tpr, fpr)
            cells = [says & right, says & ~right, ~says & right, ~says & ~right]
            counts[judge] += np.stack([here & cell for cell in cells], axis=-1)
    return counts


class RankingDesign(NamedTuple):
    """``agents`` with true rates over ``spread`` around 0.4 on ``tasks`` tasks; the evaluator's
    true-positive rate falls by ``worse`` from the first agent to the last, from 0.9."""

    agents: int
    tasks: int
    spread: float
    worse: float

    @property
    def name(self) -> str:
        return (
            f"tau: {self.agents} agents over {self.spread} on {self.tasks} tasks, the evaluator's "
            f"TPR from 0.9 down by {self.worse}"
        )


def ranking_designs(every: int = 1) -> Iterator[RankingDesign]:
    """Yield every Nth design."""
    grid = product((2, 4, 6, 10), (50, 100, 300), (0.0, 0.2, 0.6), (0.0, 0.4))
    for number, parts in enumerate(grid):
        if number % every == 0:
            yield RankingDesign(*parts)


def coverage_of_tau(
    design: RankingDesign, replicates: int, rng: np.random.Generator
) -> Iterator[Coverage]:
    """Measure Kendall's tau, and the bootstrap percentiles that it had before."""
    names, covered = ("tau", "tau, percentiles"), np.zeros(2, dtype=int)
    truth = _true_tau(design)
    for _ in range(replicates):
        clusters = Clusters(_draw_runs(design, rng), np.array([design.tasks]))
        found = cluster_bootstrap(clusters, tau_of(design.agents), rng, n_resamples=_RESAMPLES)
        ends = (tau_limits(clusters, design.agents), (found.low[0], found.high[0]))
        covered += [low - 1e-9 <= truth <= high + 1e-9 for low, high in ends]
    for name, share in zip(names, covered.tolist(), strict=True):
        yield Coverage(name, design.name, replicates, share, 1.0)


def _rates(design: RankingDesign) -> tuple[Floats, Floats, Floats]:
    """Success rates by the expert, the evaluator's true-positive rates, success rates by it."""
    success = 0.4 + np.linspace(-design.spread / 2, design.spread / 2, design.agents)
    tpr = np.linspace(0.9, 0.9 - design.worse, design.agents)
    return success, tpr, success * tpr + (1 - success) * 0.1


def _true_tau(design: RankingDesign) -> float:
    success, _, judged = (np.round(each, 9) for each in _rates(design))
    pairs = combinations(range(design.agents), 2)
    signs = [np.sign(success[a] - success[b]) * np.sign(judged[a] - judged[b]) for a, b in pairs]
    return float(np.mean(signs))


def _draw_runs(design: RankingDesign, rng: np.random.Generator) -> Floats:
    """Whether each agent ran, succeeded, and was judged to, by task: (tasks, 3 * agents)."""
    success, tpr, _ = _rates(design)
    shape = (design.tasks, design.agents)
    latent = 0.3**0.5 * rng.normal(size=(design.tasks, 1)) + 0.7**0.5 * rng.normal(size=shape)
    good = latent < ndtri(success)
    judged = rng.random(shape) < np.where(good, tpr, 0.1)
    return np.concatenate([np.ones(shape), good, judged], axis=1)
