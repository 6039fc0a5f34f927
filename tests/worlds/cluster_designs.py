"""Designs whose true metrics are known, to measure the coverage of intervals on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

from trajudge.eval.scoring.observations import (
    Observations,
    ReferenceLabels,
    predictions_by_judge,
)
from trajudge.eval.store.published import read_published_folder
from trajudge.stats.intervals import (
    Bools,
    Floats,
    Ints,
    score_statistic,
    sum_clusters,
    verdict_columns,
)

Draw = Callable[[int, np.random.Generator], Floats]


@dataclass(frozen=True, eq=False)
class Design:
    """``draw(B, rng)`` gives counts TP, FP, FN, TN of C tasks (B, C, 4); ``truth`` (4,) has the
    shares (or counts) that the true metrics follow from; ``positives`` are those expected."""

    name: str
    stratum_sizes: Ints
    truth: Floats
    positives: float
    draw: Draw


@dataclass(frozen=True, eq=False)
class ScoreDesign:
    """``draw(B, rng)`` gives the sums of ``sum_scores`` of ``tasks`` tasks (B, tasks, 33), of
    scores with one decimal; ``truth`` has ROC-AUC, average precision and Brier's score."""

    name: str
    tasks: int
    truth: Floats
    draw: Draw


SIZES = {
    "1": np.array([1]),
    "4": np.array([4]),
    "1 to 6": np.arange(1, 7),
    "1 or 12": np.array([1, 1, 1, 12]),
}
JUDGES = ((0.8, 0.1), (0.6, 0.03), (0.95, 0.3))
# The runs of every task of every stratum. The first is that of the bundled sample.
STRATA = {
    "the sample's": [[16, 15, 1, 1], [16, 1], *[[15, 1]] * 5],
    "3 of 10 ragged tasks": [[1, 2, 3, 4, 5, 6, 1, 2, 3, 4]] * 3,
    "40 of one task, 2 of 5": [*[[4]] * 40, *[[4] * 5] * 2],
    "8 of 3 tasks": [[4] * 3] * 8,
    "20 of 2 tasks": [[4] * 2] * 20,
    "one of 60, 20 of 2 runs": [[4] * 60, *[[1, 1]] * 20],
    "5 of 60 tasks": [[4] * 60] * 5,
}


def synthetic_designs(every: int = 1) -> Iterator[Design]:
    """Beta-binomial tasks: the task's success rate, and the judge's rates on it, are Beta."""
    designs = product(
        (10, 20, 40, 100, 300), SIZES, (0.1, 0.3, 0.6), (0.0, 0.3, 0.7), JUDGES, (0.0, 0.3)
    )
    for number, (tasks, sizes, prevalence, icc, (tpr, fpr), judged) in enumerate(designs):
        if number % every:
            continue
        mean = float(SIZES[sizes].mean())
        yield Design(
            name=f"synthetic: {tasks} tasks of {sizes}, prevalence {prevalence}, correlation "
            f"{icc}, TPR {tpr}, FPR {fpr}, judge's correlation {judged}",
            stratum_sizes=np.array([tasks]),
            truth=_shares(prevalence, tpr, fpr),
            positives=tasks * mean * prevalence,
            draw=_beta_binomial(tasks, SIZES[sizes], (prevalence, tpr, fpr), icc, judged),
        )


def stratified_designs(every: int = 1) -> Iterator[Design]:
    """Beta-binomial tasks in strata, whose log odds of success are evenly spread by ``apart``."""
    grid = product(STRATA, (0.1, 0.3, 0.6), (0.0, 0.3, 0.7), JUDGES, (0.0, 4.0))
    for number, (layout, prevalence, icc, judge, apart) in enumerate(grid):
        if number % every:
            continue
        sizes = np.array([len(tasks) for tasks in STRATA[layout]])
        runs = np.concatenate(STRATA[layout])
        places = np.linspace(-apart / 2, apart / 2, len(sizes))
        odds = np.log(prevalence / (1 - prevalence)) + np.random.default_rng(0).permutation(places)
        rates = np.repeat(1 / (1 + np.exp(-odds)), sizes)
        positives = float(rates @ runs)
        yield Design(
            name=f"strata: {layout}, prevalence {prevalence}, correlation {icc}, "
            f"TPR {judge[0]}, FPR {judge[1]}, log odds {apart} apart",
            stratum_sizes=sizes,
            truth=_shares(positives / runs.sum(), *judge),
            positives=positives,
            draw=_in_strata(runs, rates, judge, icc),
        )


def _in_strata(runs: Ints, rates: Floats, judge: tuple[float, float], icc: float) -> Draw:
    def draw(n: int, rng: np.random.Generator) -> Floats:
        shape = (n, len(runs))
        positive = rng.binomial(runs, _beta(rates, icc, shape, rng))
        tp, fp = rng.binomial(positive, judge[0]), rng.binomial(runs - positive, judge[1])
        cells = [tp, fp, positive - tp, runs - positive - fp]
        return np.stack(cells, axis=-1).astype(float)

    return draw


def _shares(prevalence: float, tpr: float, fpr: float) -> Floats:
    negative = 1 - prevalence
    return np.array(
        [prevalence * tpr, negative * fpr, prevalence * (1 - tpr), negative * (1 - fpr)]
    )


def _beta_binomial(
    tasks: int, sizes: Ints, rates: tuple[float, float, float], icc: float, judged: float
) -> Draw:
    prevalence, tpr, fpr = rates

    def draw(n: int, rng: np.random.Generator) -> Floats:
        shape = (n, tasks)
        runs = rng.choice(sizes, shape)
        positive = rng.binomial(runs, _beta(prevalence, icc, shape, rng))
        tp = rng.binomial(positive, _beta(tpr, judged, shape, rng))
        fp = rng.binomial(runs - positive, _beta(fpr, judged, shape, rng))
        cells = [tp, fp, positive - tp, runs - positive - fp]
        return np.stack(cells, axis=-1).astype(float)

    return draw


def _beta(
    mean: float | Floats, correlation: float, shape: tuple[int, ...], rng: np.random.Generator
) -> Floats:
    if not correlation:
        return np.full(shape, mean)
    size = 1 / correlation - 1
    return rng.beta(mean * size, (1 - mean) * size, shape)


def real_designs(folder: Path) -> Iterator[Design]:
    """AgentRewardBench's judges, and the official reward on the same trajectories: overall, by
    benchmark and by agent."""
    source = read_published_folder(folder, with_labels=True)
    reference = ReferenceLabels.of(source.judgments.keys, source.labels, source.rewards)
    for judge in predictions_by_judge(source.judgments, reference, {}):
        seen = judge.observe("success", "negative")
        rule = seen.rewarded().as_rule_based()
        for name, one in ((judge.judge, seen), (f"rule-based beside {judge.judge}", rule)):
            yield from _groups(name, one, reference)


def _groups(name: str, seen: Observations, reference: ReferenceLabels) -> Iterator[Design]:
    agent = reference.agent[seen.index]
    places: list[tuple[str, Bools]] = [("overall", np.ones(len(seen), dtype=bool))]
    places += [(b, seen.benchmark == i) for i, b in enumerate(reference.benchmarks)]
    places += [(a, agent == i) for i, a in enumerate(reference.agents)]
    for place, chosen in places:
        if not chosen.any():
            continue
        here = seen.at(chosen)
        columns = verdict_columns(here.predictions[:, None], here.labels[:, None])[:, 0, :4]
        clusters = sum_clusters(columns, here.task, here.benchmark)
        yield Design(
            name=f"real: {name}, {place}",
            stratum_sizes=clusters.stratum_sizes,
            truth=clusters.total,
            positives=float(here.labels.sum()),
            draw=_resampled(clusters.sums, clusters.stratum_sizes),
        )


def _resampled(sums: Floats, stratum_sizes: Ints) -> Draw:
    starts = np.cumsum(stratum_sizes) - stratum_sizes

    def draw(n: int, rng: np.random.Generator) -> Floats:
        parts = [
            rng.integers(start, start + size, (n, size))
            for start, size in zip(starts, stratum_sizes, strict=True)
        ]
        return np.asarray(sums[np.concatenate(parts, axis=1)])

    return draw


def score_designs(every: int = 1) -> Iterator[ScoreDesign]:
    """Logistic scores rounded to tenths, whose latent value is shared within the task in part."""
    places = ((20, 4, 0.3), (40, 3, 0.5), (100, 1, 0.3), (60, 4, 0.1), (300, 4, 0.3))
    separations = ((1.5, 0.3), (2.5, 0.0), (3.5, 0.3))
    for number, ((tasks, runs, prevalence), icc, (apart, shared)) in enumerate(
        product(places, (0.0, 0.4), separations)
    ):
        if number % every:
            continue
        draw = _logistic(tasks, runs, (prevalence, icc), (apart, shared))
        large = _logistic(200_000, runs, (prevalence, icc), (apart, shared))
        total = large(1, np.random.default_rng([2, number])).sum(axis=(0, 1))
        yield ScoreDesign(
            name=f"synthetic: scores, {tasks} tasks of {runs}, prevalence {prevalence}, "
            f"correlation {icc}, classes {apart} apart, {shared} of the noise shared",
            tasks=tasks,
            truth=np.asarray(score_statistic()(total))[:3],
            draw=draw,
        )


def _logistic(
    tasks: int, runs: int, rates: tuple[float, float], separation: tuple[float, float]
) -> Draw:
    (prevalence, icc), (apart, shared) = rates, separation

    def draw(n: int, rng: np.random.Generator) -> Floats:
        true = rng.random((n, tasks, runs)) < _beta(prevalence, icc, (n, tasks, 1), rng)
        noise = shared**0.5 * rng.normal(size=(n, tasks, 1))
        noise = noise + (1 - shared) ** 0.5 * rng.normal(size=true.shape)
        score = np.round(1 / (1 + np.exp(-1.7 * (apart * (true - 0.5) - 0.3 + noise))), 1)
        sums = np.zeros((n, tasks, 33))
        at = np.ix_(np.arange(n), np.arange(tasks))
        for run in range(runs):
            value, right = score[..., run], true[..., run]
            level = np.round(10 - 10 * value).astype(int)
            sums[(*at, np.where(right, level, 11 + level))] += 1
            sums[..., 22] += (value - right) ** 2
            place = np.minimum((value * 10).astype(int), 9)
            sums[(*at, 23 + place)] += right - value
        return sums

    return draw
