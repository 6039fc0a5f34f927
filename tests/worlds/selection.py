"""Draw labelled trajectories of one candidate judge from worlds in which its precision is known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import Literal, NamedTuple

import numpy as np
from scipy import special

from trajudge.eval.select.rates import RateSums, TaskSums, binomial_p, p_values, rate_sums
from trajudge.stats.intervals import Floats, Ints

ALPHA, ALLOWED, BETTER = 0.05, 0.055, 0.1

Dependence = Literal["all-or-nothing", "beta", "judge", "size"]
Runs = int | Literal["1 to 20", "2 to 60"]


class Design(NamedTuple):
    """``tasks`` in ``benchmarks``, ``runs`` of each: as many, any number of 1 to 20, or 2 to 60 as
    sites have (evenly spread logarithms). ``all-or-nothing``: with probability
    ``correlation`` all accepted runs of a task succeed or fail together. ``beta``: a task's rate is
    drawn from a beta distribution with that intraclass correlation. ``judge``: so is the rate at
    which its runs succeed (0.4 on average), and a judge accepts 0.8 of the successes and as many
    failures as make its precision; ``acceptance`` is the share accepted elsewhere. ``size``: as
    all-or-nothing with precision by task, which is the higher the fewer runs are accepted: its odds
    change by a factor of e with each standard deviation."""

    dependence: Dependence
    benchmarks: int
    tasks: int
    runs: Runs
    correlation: float
    acceptance: float
    target: float


class Cell(NamedTuple):
    """Rates of rejection in one design: at the target, and ``BETTER`` above it (None: that is 1 or
    more)."""

    design: Design
    plain: float
    now: float
    plain_power: float | None
    power: float | None
    strict_power: float | None


def grid(tasks: Iterable[int] = (16, 24, 40, 100, 300)) -> Iterator[Design]:
    """Every design; those that are the same world under two names once."""
    kinds: tuple[Dependence, ...] = ("all-or-nothing", "beta", "judge", "size")
    sizes: tuple[Runs, ...] = (1, 3, 12, "1 to 20", "2 to 60")
    clusters = product(kinds, (1, 5, 20), tuple(tasks), sizes)
    rates = product((0.0, 0.2, 0.5), (0.15, 0.5, 0.9), (0.7, 0.8, 0.9, 0.95))
    for (kind, benchmarks, count, runs), rest in product(clusters, rates):
        design = Design(kind, benchmarks, count, runs, *rest)
        alone = design.runs == 1 and (design.correlation or design.dependence == "beta")
        same = design.dependence == "beta" and not design.correlation
        named = design.dependence == "judge" and design.acceptance != 0.5
        sized = design.dependence == "size" and (runs == 1 or runs == "2 to 60")
        if not (alone or same or named or sized):
            yield design


def draw(design: Design, precision: float, size: int, rng: np.random.Generator) -> TaskSums:
    """``size`` worlds at once: columns hits | trials by task (tasks, 2 * size)."""
    shape = (design.tasks, size)
    hits: Ints
    trials: Ints
    if design.dependence == "judge":
        hits, trials = _judged(design, precision, shape, rng)
    else:
        runs = _runs(design, shape, rng)
        trials = np.asarray(rng.binomial(runs, design.acceptance, shape), np.int64)
        if design.dependence == "beta":
            each = _beta(precision, design.correlation, shape, rng)
            hits = np.asarray(rng.binomial(trials, each), np.int64)
        else:
            rate = np.full(shape, precision)
            if design.dependence == "size":
                rate = _rate_by_size(trials, precision)
            together = rng.random(shape) < design.correlation
            shared = np.where(rng.random(shape) < rate, trials, 0)
            hits = np.where(together, shared, rng.binomial(trials, rate))
    sizes = [len(part) for part in np.array_split(np.arange(design.tasks), design.benchmarks)]
    table = np.concatenate([hits, trials], axis=1).astype(float)
    picked = ((rng.random(trials.shape) * trials < hits) & (trials > 0)).sum(axis=0)
    return TaskSums(
        table, np.array([each for each in sizes if each], dtype=np.int64), picked.astype(float)
    )


def _rate_by_size(trials: Ints, precision: float) -> Floats:
    """Success rates (tasks, size) that fall with the number of trials; over trials their mean is
    ``precision``."""
    spread = (trials - trials.mean()) / trials.std()
    low, high = -20.0, 20.0
    for _ in range(50):
        middle = (low + high) / 2
        rate = special.expit(middle - spread)
        reached = (rate * trials).sum() / trials.sum() >= precision
        low, high = (low, middle) if reached else (middle, high)
    return np.asarray(rate)


def _runs(design: Design, shape: tuple[int, int], rng: np.random.Generator) -> Ints:
    """Runs of every task in every world, (tasks, size)."""
    if design.runs == "1 to 20":
        return rng.integers(1, 21, shape)
    if design.runs == "2 to 60":
        sites = np.geomspace(2, 60, design.tasks).round().astype(np.int64)
        return np.broadcast_to(sites[:, None], shape)
    return np.full(shape, design.runs)


def _beta(
    mean: float, correlation: float, shape: tuple[int, int], rng: np.random.Generator
) -> Floats:
    if not correlation:
        return np.full(shape, mean)
    total = (1 - correlation) / correlation
    return np.asarray(rng.beta(mean * total, (1 - mean) * total, shape))


def _judged(
    design: Design, precision: float, shape: tuple[int, int], rng: np.random.Generator
) -> tuple[Ints, Ints]:
    rate, kept = 0.4, 0.8
    wrong = kept * rate * (1 - precision) / (precision * (1 - rate))
    runs = _runs(design, shape, rng)
    successes = rng.binomial(runs, _beta(rate, design.correlation, shape, rng))
    hits = np.asarray(rng.binomial(successes, kept), np.int64)
    return hits, hits + rng.binomial(runs - successes, wrong)


def plain_p(rates: RateSums, bound: float) -> Floats:
    """P-values of the exact binomial and of the uncorrected cluster t, the larger of the two."""
    at = np.full(rates.hits.shape, bound)
    spread = np.sqrt(rates.variance(at))
    excess = rates.hits - at * rates.trials
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(spread > 0, excess / spread, np.where(excess > 0, np.inf, -np.inf))
    tail = special.stdtr(np.where(rates.df > 0, rates.df, np.nan), -t)
    tails = (binomial_p(rates.hits, rates.trials, at), np.where(np.isnan(tail), 1.0, tail))
    return np.maximum(*tails)


def measure(designs: Sequence[Design], size: int, seed: int) -> tuple[list[Cell], float]:
    """The cells, and the level at which the plain test errs at most ``ALLOWED`` in all of them."""
    worlds = np.random.SeedSequence(seed).spawn(2 * len(designs))
    errors, level = [], ALPHA
    for design, world in zip(designs, worlds[::2], strict=True):
        rates = rate_sums(draw(design, design.target, size, np.random.default_rng(world)))
        before = plain_p(rates, design.target)
        now = p_values(rates, design.target)
        level = min(level, float(np.quantile(before, ALLOWED, method="lower")))
        errors.append((float((before <= ALPHA).mean()), float((now <= ALPHA).mean())))
    cells = []
    for design, world, (before_, now_) in zip(designs, worlds[1::2], errors, strict=True):
        powers: tuple[float | None, float | None, float | None] = (None, None, None)
        if design.target + BETTER < 1:
            better = np.random.default_rng(world)
            rates = rate_sums(draw(design, design.target + BETTER, size, better))
            plain, new = plain_p(rates, design.target), p_values(rates, design.target)
            powers = (
                float((plain <= ALPHA).mean()),
                float((new <= ALPHA).mean()),
                float((plain < level).mean()),
            )
        cells.append(Cell(design, before_, now_, *powers))
    return cells, level
