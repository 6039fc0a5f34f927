"""Statistics of benchmark suites: trees of outcomes, hierarchical bootstraps, performance
profiles, template-macro success, regret and sensitivity."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from itertools import pairwise, product
from math import prod
from typing import Literal

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from trajudge.stats.intervals import (
    Bools,
    Counts,
    Floats,
    Interval,
    Ints,
    Multiplicities,
    chunk_size,
    clustered_rates,
    normal_quantile,
    one_thread,
    percentile_interval,
    stream,
    stream_key,
    t_quantile,
    uniform_indices,
)

BUCKETS = 2**10

BASE = 16

MAX_ROLLOUTS = 64

SPLIT = 2**15

"""Flag of buckets that hold more than one outcome: the rest of the entry is the first of them."""

NATS = 40.0

"""Outcomes further out than Bernstein's bound at exp(-NATS) are left out: less than a rounding."""


@dataclass(frozen=True, eq=False)
class _Digit:
    """The distributions of one digit: rows are (k, value of the digit) pairs in that order.

    ``outcomes`` (rows, BUCKETS); ``ends`` (rows, W) is the row's number plus the cumulative
    probability of ``first`` (rows,) and of the outcomes after it.
    """

    values: int
    outcomes: NDArray[np.uint16]
    ends: Floats
    first: Ints

    def draw(self, law: Ints, value: NDArray[np.uint16], rng: np.random.Generator) -> Counts:
        """Draw one outcome (U, n) for each value of the digit (U, n), under the distributions of
        k (U,)."""
        bucket = uniform_indices(BUCKETS, value.size, rng).reshape(value.shape)
        index = (value * BUCKETS + bucket) + (law * self.values * BUCKETS)[:, None]
        drawn = self.outcomes.reshape(-1).take(index)
        split = np.flatnonzero(drawn >= SPLIT)
        row, inside = np.divmod(index.reshape(-1)[split], BUCKETS)
        sought = row + (inside + rng.random(len(split))) / BUCKETS
        below = np.nextafter(row + 1.0, 0)  # rounding must not reach the next row
        index = np.searchsorted(self.ends.reshape(-1), np.minimum(sought, below), side="right")
        drawn.reshape(-1)[split] = index - row * self.ends.shape[1] + self.first[row]
        return drawn.astype(np.float32)


@dataclass(frozen=True, eq=False)
class BinomialTables:
    """The distributions of Binomial(R * copies, k / R) for every k up to R / 2; larger k are
    mirrored."""

    rollouts: int
    digits: tuple[_Digit, ...]

    def successes(self, copies: NDArray[np.uint16], k: Ints, rng: np.random.Generator) -> Ints:
        """Return the successes of ``copies`` (U, n) of cells with ``k`` (U,) successes each,
        summed, (n,)."""
        mirrored = k > self.rollouts // 2
        law = np.where(mirrored, self.rollouts - k, k) - 1
        total = self.rollouts * copies[mirrored].sum(axis=0, dtype=np.int64)
        sign = np.where(mirrored, -1, 1).astype(np.float32)
        for index, digit in enumerate(self.digits):
            value = (copies // BASE**index) & (BASE - 1)
            if value.any():
                total += (sign @ digit.draw(law, value, rng)).astype(np.int64)
        return np.asarray(total)


def binomial_tables(rollouts: int, most_copies: int) -> BinomialTables | None:
    """Return tables for up to ``most_copies``, or None if they would be too large."""
    if rollouts > MAX_ROLLOUTS or rollouts * most_copies >= SPLIT:
        return None
    units = [BASE**index for index in range(4) if BASE**index <= most_copies and rollouts > 1]
    digits = (_digit(rollouts, unit, min(BASE - 1, most_copies // unit)) for unit in units)
    return BinomialTables(rollouts, tuple(digits))


def _digit(rollouts: int, unit: int, largest: int) -> _Digit:
    """Laws of Binomial(R * unit * d, k / R): k from 1 to R / 2, d from 0 to ``largest``."""
    k = np.arange(1, rollouts // 2 + 1)
    tries = np.tile(rollouts * unit * np.arange(largest + 1), len(k))
    chance = np.repeat(k / rollouts, largest + 1)
    ends, first = _cumulative(tries, chance)
    rows = np.arange(len(tries))[:, None]
    scaled = ends * BUCKETS
    edge = np.ceil(scaled).astype(np.int64)
    counts = np.bincount(
        (edge + rows * (BUCKETS + 1)).reshape(-1), minlength=len(tries) * (BUCKETS + 1)
    )
    start = counts.reshape(len(tries), -1)[:, :BUCKETS].astype(np.uint16)
    start[:, 0] += first.astype(np.uint16)
    outcomes = np.cumsum(start, axis=1, dtype=np.uint16)
    row, index = np.nonzero(edge > scaled)
    outcomes[row, edge[row, index] - 1] |= SPLIT
    return _Digit(largest + 1, outcomes, ends + rows, first)


def _cumulative(tries: Ints, chance: Floats) -> tuple[Floats, Ints]:
    """P(X <= first + w) for each law (rows, W), and ``first`` (rows,)."""
    mean, variance = tries * chance, tries * chance * (1 - chance)
    reach = NATS / 3 + np.sqrt((NATS / 3) ** 2 + 2 * NATS * variance)
    first = np.maximum(np.floor(mean - reach), 0).astype(np.int64)
    last = np.minimum(np.ceil(mean + reach).astype(np.int64), tries)
    outcome = first[:, None] + np.arange((last - first).max())
    odds = (chance / (1 - chance))[:, None]
    log_p = np.zeros((len(tries), outcome.shape[1] + 1))  # up to a constant
    with np.errstate(divide="ignore"):  # past the last outcome
        ratio = np.maximum(tries[:, None] - outcome, 0) * odds / (outcome + 1)
        np.cumsum(np.log(ratio), axis=1, out=log_p[:, 1:])
    cumulative = np.cumsum(np.exp(log_p), axis=1)
    return cumulative / cumulative[:, -1:], first


Configurations = Literal["axes", "whole"]

"""Levels of each axis drawn independently (a full factorial was run), or configurations drawn
whole (a few were sampled out of a large grid)."""


@dataclass(frozen=True)
class Levels:
    """Which levels are resampled within every (fixed) app; all of them is section 4.3.

    ``axes`` is one switch for all environmental axes, or one per axis.
    """

    scenarios: bool = True
    axes: bool | tuple[bool, ...] = True
    rollouts: bool = True

    def axis_switches(self, n_axes: int) -> tuple[bool, ...]:
        """Return one switch per axis. Raises ValueError if their number does not match."""
        if isinstance(self.axes, bool):
            return (self.axes,) * n_axes
        if len(self.axes) != n_axes:
            raise ValueError(f"{len(self.axes)} switches for {n_axes} axes")
        return self.axes


MAX_DRAWS = 2**16

"""Distinct ordered draws over all axes that one lookup table may list."""

MAX_COUNTS = 2**22

"""Counts that an app's table may hold: 4 to 8 MB. Larger apps take the general form."""


@dataclass(frozen=True, eq=False)
class BalancedApp:
    """The tables for a draw; rows of ``copies`` are (type, scenario) pairs in that order.

    ``first_row`` (D,) is the position in ``copies`` (T * S, U) of the type of an ordered draw of
    all axes; ``copies`` counts the cells with ``k`` (U,) successes, ascending, with k > 0;
    ``rollouts`` is R and ``cells`` the number of configurations of each of ``scenarios``.
    ``binomials`` draw rollouts by lookup if they are given.
    """

    first_row: Ints
    copies: NDArray[np.unsignedinteger]
    k: Ints
    scenarios: int
    cells: int
    rollouts: int
    binomials: BinomialTables | None = None

    def draw(self, n: int, levels: Levels, rng: np.random.Generator) -> Floats:
        """``n`` replicates of the app's success rate, (n,)."""
        copies = self._count(n, levels.scenarios, rng)
        if levels.rollouts:
            successes = self._resampled_successes(copies, rng)
        else:
            successes = copies.astype(np.int64) @ self.k
        return np.asarray(successes / (self.scenarios * self.cells * self.rollouts))

    def _resampled_successes(self, copies: NDArray[np.uint16], rng: np.random.Generator) -> Ints:
        """One binomial for each replicate and number of successes, summed, (n,)."""
        unsure = self.k < self.rollouts
        counts, k = np.ascontiguousarray(copies[:, unsure].T), self.k[unsure]
        sure = self.rollouts * copies[:, ~unsure].sum(axis=1, dtype=np.int64)
        if self.binomials is not None:
            return np.asarray(sure + self.binomials.successes(counts, k, rng))
        tries = counts.astype(np.int64) * self.rollouts
        return np.asarray(sure + rng.binomial(tries, k[:, None] / self.rollouts).sum(axis=0))

    def _count(
        self, n: int, resample_scenarios: bool, rng: np.random.Generator
    ) -> NDArray[np.uint16]:
        """Cells by number of successes over all drawn scenarios, (n, U)."""
        size = (self.scenarios, n)
        row = self.first_row[uniform_indices(len(self.first_row), n * size[0], rng)].reshape(size)
        if resample_scenarios:
            row += uniform_indices(self.scenarios, n * size[0], rng).reshape(size)
        else:
            row += np.arange(self.scenarios)[:, None]
        counted = np.zeros((n, len(self.k)), dtype=np.uint16)
        part, drawn = (np.empty(counted.shape, dtype=self.copies.dtype) for _ in range(2))
        room = np.iinfo(part.dtype).max // self.cells  # slots that a narrow sum can hold
        for start in range(0, len(row), room):
            np.take(self.copies, row[start], axis=0, out=part, mode="clip")
            for slot in row[start + 1 : start + room]:
                part += np.take(self.copies, slot, axis=0, out=drawn, mode="clip")
            counted += part
        return counted


def balanced_app(
    successes: Ints,
    levels: Ints,
    rollouts: Ints,
    axes: tuple[bool, ...],
    binomials: Callable[[int], BinomialTables | None],
) -> BalancedApp | None:
    """Return tables for an app from its cells, or None if the app does not have this shape.

    ``successes`` and ``rollouts`` (S, C), ``levels`` (S, C, X); ``axes`` (X,) are the resampled
    axes. Rows of cells are in lexicographic order of their levels.
    """
    scenarios, cells = successes.shape
    grid = [np.unique(axis) for axis in levels[0].T]
    if (levels != levels[0]).any() or np.prod([len(axis) for axis in grid]) != cells:
        return None
    if (rollouts != rollouts[0, 0]).any() or scenarios * cells >= 2**16:
        return None
    sizes = [len(axis) for axis, on in zip(grid, axes, strict=True) if on]
    if np.prod([float(size) ** size for size in sizes]) > MAX_DRAWS:
        return None
    types, draws = _types(tuple(len(axis) for axis in grid), axes)
    k = np.unique(successes[successes > 0]) if successes.any() else rollouts[0, :1]
    if math.prod(map(len, draws)) * scenarios * len(k) > MAX_COUNTS:
        return None
    marks = successes.T[:, :, None] == k
    tries = int(rollouts[0, 0])
    return BalancedApp(
        first_row=types.astype(np.int64) * scenarios,
        copies=_copies(marks.reshape(cells, -1), draws).reshape(-1, len(k)),
        k=k,
        scenarios=scenarios,
        cells=cells,
        rollouts=tries,
        binomials=binomials(tries),
    )


def _copies(marks: Bools, draws: tuple[Ints, ...]) -> NDArray[np.unsignedinteger]:
    """Sum the ``marks`` (C, M) of the cells that each combined type draws, (T, M).

    Sums are taken axis by axis: the cells of a draw of levels are the sum over its levels.
    """
    cells, width = marks.shape
    counted: NDArray[np.unsignedinteger] = marks.astype(np.min_scalar_type(cells))[None]
    for drawn in draws:
        levels = counted.reshape(len(counted), drawn.shape[1], -1)
        summed = levels[:, drawn[:, 0]]
        for level in drawn.T[1:]:
            summed += levels[:, level]
        counted = summed.reshape(len(counted) * len(drawn), -1, width)
    return counted.reshape(-1, width)


@lru_cache(maxsize=16)
def _types(
    sizes: tuple[int, ...], axes: tuple[bool, ...]
) -> tuple[NDArray[np.uint16], tuple[Ints, ...]]:
    """Return the combined type of every ordered draw (D,), and each axis' draws by type (T, L)."""
    types, draws = np.zeros(1, dtype=np.uint16), []
    for size, resampled in zip(sizes, axes, strict=True):
        ordered = np.arange(size)[None]
        if resampled:
            ordered = np.array(list(product(range(size), repeat=size)))
        unordered, kind = np.unique(np.sort(ordered, axis=1), axis=0, return_inverse=True)
        types = (types[:, None] * len(unordered) + kind.ravel()).ravel().astype(np.uint16)
        draws.append(unordered)
    return types, tuple(draws)


Weighting = Literal["nested", "pooled"]

SuiteStatistic = Callable[[Floats], Floats]

"""App rates (..., A) to one number each (...)."""


@dataclass(frozen=True, eq=False)
class Tree:
    """One row per cell (configuration of a scenario), scenarios contiguous within apps.

    ``app`` and ``scenario`` (M,) are codes from 0 (scenarios counted over the whole suite),
    ``levels`` (M, X) codes on the X axes, ``successes`` and ``rollouts`` (M,) counts.
    ``app_names`` (A,) are the labels in the order of the codes.
    """

    app: Ints
    scenario: Ints
    levels: Ints
    successes: Ints
    rollouts: Ints
    app_names: tuple[object, ...]

    @cached_property
    def rates(self) -> Floats:
        """Success rate of every cell, (M,)."""
        return np.asarray(self.successes / self.rollouts)

    @cached_property
    def scenario_starts(self) -> Ints:
        """First cell of every scenario, (S,)."""
        return np.flatnonzero(np.diff(self.scenario, prepend=-1))

    @cached_property
    def scenario_app(self) -> Ints:
        """The app of every scenario, (S,)."""
        return self.app[self.scenario_starts]

    def filled_share(self) -> float:
        """Return the share of the product of each scenario's levels that was run."""
        possible = np.ones(len(self.scenario_starts))
        for axis in self.levels.T:
            base = axis.max() + 1
            used = np.unique(self.scenario * base + axis)
            possible *= np.bincount(used // base)
        return float(len(self.app) / possible.sum())


def tree_from_rollouts(
    app: ArrayLike, scenario: ArrayLike, success: ArrayLike, axes: ArrayLike | None = None
) -> Tree:
    """Build a tree from one row per rollout: labels (N,), 0/1 outcomes (N,), axis labels (N, X)."""
    outcome = np.asarray(success)
    if not np.isin(outcome, (0, 1)).all():
        raise ValueError("every rollout's outcome must be 0 or 1: settle failed rollouts first")
    return tree_from_cells(app, scenario, outcome, np.ones(len(outcome)), axes)


def tree_from_cells(
    app: ArrayLike,
    scenario: ArrayLike,
    successes: ArrayLike,
    rollouts: ArrayLike,
    axes: ArrayLike | None = None,
) -> Tree:
    """Build a tree from counts, with rows of one cell summed; shapes as in
    ``tree_from_rollouts``."""
    k, n = np.asarray(successes, dtype=np.int64), np.asarray(rollouts, dtype=np.int64)
    if not len(k):
        raise ValueError("no rollouts: a tree needs at least one")
    if not ((k >= 0) & (k <= n) & (n > 0)).all():
        raise ValueError("every cell needs at least one rollout and 0 <= successes <= rollouts")
    names, app_code = np.unique(np.asarray(app), return_inverse=True)
    table = np.zeros((len(k), 0)) if axes is None else np.asarray(axes).reshape(len(k), -1)
    levels = [np.unique(axis, return_inverse=True)[1] for axis in table.T]
    columns = [app_code, np.unique(np.asarray(scenario), return_inverse=True)[1], *levels]
    codes = np.stack(columns, axis=1).astype(np.int64)
    cells, inverse = _distinct_rows(codes)
    new = (np.diff(cells[:, :2], axis=0, prepend=-1) != 0).any(axis=1)
    return Tree(
        app=cells[:, 0],
        scenario=np.cumsum(new) - 1,
        levels=cells[:, 2:],
        successes=np.bincount(inverse, weights=k).astype(np.int64),
        rollouts=np.bincount(inverse, weights=n).astype(np.int64),
        app_names=tuple(names.tolist()),
    )


def _distinct_rows(codes: Ints) -> tuple[Ints, Ints]:
    """Return the sorted distinct rows of ``codes`` (N, K), and the index of each row among them.
    Rows are encoded as one number each if possible, which is faster to sort."""
    sizes = codes.max(axis=0) + 1
    if prod(sizes.tolist()) >= 2**62:
        cells, inverse = np.unique(codes, axis=0, return_inverse=True)
        return cells, inverse.ravel()
    numbers = np.ravel_multi_index(tuple(codes.T), tuple(sizes.tolist()))
    _, first, inverse = np.unique(numbers, return_index=True, return_inverse=True)
    return codes[first], inverse


def scenario_rates(tree: Tree) -> Floats:
    """Mean over configurations of the mean over rollouts, (S,)."""
    cells = np.diff(np.r_[tree.scenario_starts, len(tree.scenario)])
    return np.asarray(np.add.reduceat(tree.rates, tree.scenario_starts) / cells)


def app_rates(tree: Tree, weighting: Weighting = "nested") -> Floats:
    """Success rate of every app, (A,).

    "nested" is the mean of means: each scenario counts once, as in the template-macro mean.
    "pooled" is the flat mean over rollouts. The two agree on balanced trees.
    """
    if weighting == "pooled":
        return np.asarray(
            np.bincount(tree.app, tree.successes) / np.bincount(tree.app, tree.rollouts)
        )
    scenarios = np.bincount(tree.scenario_app)
    return np.asarray(np.bincount(tree.scenario_app, scenario_rates(tree)) / scenarios)


def mean(rates: Floats) -> Floats:
    """Compute the suite statistic of section 4.3: every app counts the same."""
    return np.asarray(rates.mean(axis=-1))


def median(rates: Floats) -> Floats:
    """Median over apps."""
    return np.asarray(np.median(rates, axis=-1))


def trimmed_mean(share: float) -> SuiteStatistic:
    """Mean without the ``floor(share * A)`` lowest and highest apps (section 21.2)."""
    if not 0 <= share < 0.5:
        raise ValueError(f"the share trimmed from each end must be in [0, 0.5), not {share!r}")

    def statistic(rates: Floats) -> Floats:
        cut = int(share * rates.shape[-1])
        middle = np.sort(rates, axis=-1)[..., cut : rates.shape[-1] - cut]
        return np.asarray(middle.mean(axis=-1))

    return statistic


def interquartile_mean(rates: Floats) -> Floats:
    """Mean of the middle half of apps' rates (..., A): a quarter is trimmed from each end (...)."""
    return trimmed_mean(0.25)(rates)


REDRAWS = 100


@dataclass(frozen=True, eq=False)
class RaggedScenario:
    """One scenario's cells: ``successes`` and ``rollouts`` (C,), ``levels`` (C, X)."""

    successes: Ints
    rollouts: Ints
    levels: Ints


@dataclass(frozen=True, eq=False)
class RaggedApp:
    """An app's scenarios, and how its cells are averaged and their rollout noise scaled.

    ``axes`` (X,) are the resampled axes. ``unbiased`` multiplies the rollout variance by R / (R -
    1), because resampling R outcomes underestimates it by that factor.
    """

    scenarios: tuple[RaggedScenario, ...]
    axes: tuple[bool, ...]
    weighting: Weighting = "nested"
    unbiased: bool = False

    def draw(self, n: int, levels: Levels, rng: np.random.Generator) -> Floats:
        """``n`` replicates of the app's success rate, (n,)."""
        size = (n, len(self.scenarios))
        drawn = np.broadcast_to(np.arange(size[1]), size)
        if levels.scenarios:
            drawn = rng.integers(0, size[1], size=size)
        order = np.argsort(drawn.ravel(), kind="stable")
        counts = np.bincount(drawn.ravel(), minlength=size[1])
        earned, possible = np.zeros(n * size[1]), np.zeros(n * size[1])
        for scenario, places in zip(
            self.scenarios, np.split(order, np.cumsum(counts)[:-1]), strict=True
        ):
            weights = _cell_weights(scenario, self.axes, len(places), rng)
            earned[places], possible[places] = self._outcomes(
                scenario, weights, levels.rollouts, rng
            )
        earned, possible = earned.reshape(size), possible.reshape(size)
        if self.weighting == "pooled":
            return np.asarray(earned.sum(axis=1) / possible.sum(axis=1))
        return np.asarray((earned / possible).mean(axis=1))

    def _outcomes(
        self, scenario: RaggedScenario, weights: Floats, rollouts: bool, rng: np.random.Generator
    ) -> tuple[Floats, Floats]:
        """Successes earned and possible in each drawn copy, both (D,), from weights (D, C).

        Pooled weighting counts rollouts; nested weighting counts every cell once.
        """
        k, r = scenario.successes, scenario.rollouts
        worth = r.astype(float) if self.weighting == "pooled" else np.ones(len(r))
        possible = weights @ worth
        expected = weights @ (worth * k / r)
        if not rollouts:
            return expected, possible
        with np.errstate(divide="ignore", invalid="ignore"):
            widen = np.sqrt(r / (r - 1)) if self.unbiased else np.ones(len(r))
        scale = worth * widen / r
        unsure = (k > 0) & (k < r)
        kinds, member = np.unique(np.stack([k, r])[:, unsure], axis=1, return_inverse=True)
        marks = (member.ravel()[:, None] == np.arange(kinds.shape[1])).astype(float)
        tries = (weights[:, unsure] @ marks).astype(np.int64) * kinds[1]
        chance = kinds[0] / kinds[1]
        noise = rng.binomial(tries, chance) - tries * chance
        first = np.argmax(marks, axis=0) if marks.size else np.zeros(0, dtype=np.int64)
        return expected + noise @ scale[unsure][first], possible


def _cell_weights(
    scenario: RaggedScenario, axes: tuple[bool, ...], n: int, rng: np.random.Generator
) -> Floats:
    """Count how often each of ``n`` copies draws each cell, (n, C); never all zero."""
    weights = _axis_product(scenario.levels, axes, n, rng)
    for _ in range(REDRAWS):
        empty = np.flatnonzero(weights.sum(axis=1) == 0)
        if not len(empty):
            return weights
        weights[empty] = _axis_product(scenario.levels, axes, len(empty), rng)
    weights[weights.sum(axis=1) == 0] = 1
    return weights


def _axis_product(
    levels: Ints, axes: tuple[bool, ...], n: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    weights = np.ones((n, len(levels)))
    for axis, resampled in zip(levels.T, axes, strict=True):
        values, code = np.unique(axis, return_inverse=True)
        if resampled and len(values) > 1:
            weights *= Multiplicities([len(values)], n).draw(rng)[:, code.ravel()]
    return weights


ENDS = ("estimate", "low", "high")

Estimand = Literal["new_scenarios", "these_scenarios"]

FULL, ROLLOUTS = Levels(), Levels(scenarios=False, axes=False)

ENOUGH_SCENARIOS = 8

"""Scenarios of an app from which percentiles cover (``benchmarks.coverage``)."""

SPARSE = 0.5

"""Below this share of filled cells a tree was sampled, not crossed."""

ONE_ROLLOUT = "a cell has one rollout: its noise on these scenarios cannot be estimated"

ONE_SCENARIO = "an app has one scenario: how scenarios vary there is seen in other apps alone"

FEW_SCENARIOS = f"an app has fewer than {ENOUGH_SCENARIOS} scenarios: "

CLUSTERED = FEW_SCENARIOS + "Wilson's interval over scenarios instead of the bootstrap"

TOO_NARROW = FEW_SCENARIOS + "the bootstrap of this statistic may be too narrow"

WHOLE = "configurations were sampled, not crossed ({:.0%} of the grid): they are resampled whole"


@dataclass(frozen=True, eq=False)
class Sampler:
    """A tree prepared for resampling."""

    apps: tuple[BalancedApp | RaggedApp, ...]
    levels: Levels
    chunk: int

    def draw(self, rng: np.random.Generator, n_resamples: int, threads: int = 1) -> Floats:
        """Draw replicates of every app's success rate, (B, A); ``threads`` never change the
        result."""
        key = stream_key(rng)
        rates = np.empty((n_resamples, len(self.apps)))

        def fill(job: tuple[int, int]) -> None:
            part, chunk = job
            values = self.apps[part].draw(self.chunk, self.levels, stream(key, part, chunk))
            rows = rates[chunk * self.chunk : (chunk + 1) * self.chunk]
            rows[:, part] = values[: len(rows)]

        chunks = range(-(-n_resamples // self.chunk))
        jobs = [(part, chunk) for part in range(len(self.apps)) for chunk in chunks]
        with one_thread(), np.errstate(divide="ignore", invalid="ignore"):
            _run(fill, jobs, threads)
        return rates


@dataclass(frozen=True, eq=False)
class SuiteBootstrap:
    """The suite's interval (1,), every app's (A,), and how configurations were resampled."""

    suite: Interval
    apps: Interval
    configurations: Configurations
    estimand: Estimand


def hierarchical_bootstrap(
    tree: Tree,
    rng: np.random.Generator,
    *,
    estimand: Estimand = "new_scenarios",
    statistic: SuiteStatistic = mean,
    weighting: Weighting = "nested",
    configurations: Configurations | Literal["auto"] = "auto",
    n_resamples: int = 1000,
    confidence: float = 0.95,
    threads: int = 1,
) -> SuiteBootstrap:
    """Return percentile intervals of a suite statistic and of each app's success rate.

    Percentiles of few scenarios are too narrow: the mean over apps, and every app's rate, have the
    intervals of ``clustered_success`` if an app has fewer than ``ENOUGH_SCENARIOS``.
    """
    how, notes = _configurations(tree, configurations, estimand)
    levels = FULL if estimand == "new_scenarios" else ROLLOUTS
    sampler = prepare(
        tree,
        levels,
        weighting=weighting,
        configurations=how,
        unbiased=estimand == "these_scenarios",
    )
    rates = sampler.draw(rng, n_resamples, threads)
    point = app_rates(tree, weighting)
    notes = [*notes, *_limits(tree, estimand, statistic)]
    if CLUSTERED in notes:
        suite, apps = clustered_success(tree, weighting, confidence)
        suite = replace(suite, estimate=statistic(point)[None], notes=(*notes, *suite.notes))
        return SuiteBootstrap(suite, replace(apps, notes=tuple(notes)), how, estimand)
    suite = _interval(statistic(point)[None], statistic(rates)[None], confidence, notes)
    apps = _interval(point, np.ascontiguousarray(rates.T), confidence, notes)
    return SuiteBootstrap(suite, apps, how, estimand)


def clustered_success(
    tree: Tree, weighting: Weighting = "nested", confidence: float = 0.95
) -> tuple[Interval, Interval]:
    """Intervals of the mean over apps (1,) and of every app's rate (A,) without resampling: the
    rollouts of a scenario are a cluster of its app (``clustered_rates``), weighted as in the
    estimate. Undefined for a single scenario, and for an app that has one."""
    starts, of_app = tree.scenario_starts, tree.scenario_app
    rollouts = np.add.reduceat(tree.rollouts, starts).astype(float)
    successes = np.add.reduceat(tree.successes, starts).astype(float)
    if weighting == "pooled":
        own, rates = rollouts, successes / rollouts
        totals = np.bincount(of_app, rollouts)[of_app]
    else:
        own, rates = np.ones(len(starts)), scenario_rates(tree)
        totals = np.bincount(of_app)[of_app].astype(float)
    suite = _weighted(rates, rollouts, own / totals, np.bincount(of_app), confidence)
    apps = [
        _weighted(rates[here], rollouts[here], own[here], here.sum(keepdims=True), confidence)
        for here in (of_app == app for app in range(len(tree.app_names)))
    ]
    estimate, low, high = (np.concatenate([getattr(one, end) for one in apps]) for end in ENDS)
    notes = tuple(dict.fromkeys(note for one in apps for note in one.notes))
    return suite, Interval(estimate, low, high, confidence, notes)


def _weighted(
    rates: Floats, rollouts: Floats, weights: Floats, stratum_sizes: Ints, confidence: float
) -> Interval:
    """Interval (1,) of the mean of scenarios' ``rates`` (S,) with ``weights`` (S,)."""
    each = weights / rollouts
    if np.ptp(each) <= 1e-9 * each.max():
        return clustered_rates(
            (rates * rollouts)[None], rollouts[None], stratum_sizes, confidence
        ).interval
    scale = rollouts.sum() / weights.sum()
    hits, trials, squares = scale * weights * rates, scale * weights, scale**2 * weights * each
    return clustered_rates(
        hits[None], trials[None], stratum_sizes, confidence, squares[None]
    ).interval


def prepare(
    tree: Tree,
    levels: Levels = FULL,
    *,
    weighting: Weighting = "nested",
    configurations: Configurations = "axes",
    unbiased: bool = False,
) -> Sampler:
    """Build the tables for drawing: a fast exact form for balanced apps, else a general one."""
    whole = configurations == "whole"
    switches = levels.axis_switches(tree.levels.shape[1])
    if whole:
        switches = (any(switches),)
    most = int(np.bincount(tree.app).max())
    binomials = cache(lambda rollouts: binomial_tables(rollouts, most) if levels.rollouts else None)
    starts = np.append(tree.scenario_starts, len(tree.app))
    of_app = np.searchsorted(tree.scenario_app, np.arange(len(tree.app_names) + 1)).tolist()
    apps: list[BalancedApp | RaggedApp] = []
    with one_thread():
        for first, last in pairwise(of_app):
            cells = starts[first : last + 1]
            fast = None if unbiased else _balanced(tree, cells, whole, switches, binomials)
            slow = _scenarios(tree, cells, whole) if fast is None else ()
            apps.append(fast or RaggedApp(slow, switches, weighting, unbiased))
    general = [s for app in apps if isinstance(app, RaggedApp) for s in app.scenarios]
    return Sampler(
        tuple(apps), levels, chunk_size(max((len(s.levels) for s in general), default=1))
    )


def _scenarios(tree: Tree, starts: Ints, whole: bool) -> tuple[RaggedScenario, ...]:
    """Split the cells at ``starts``, (S + 1,), into scenarios."""
    return tuple(
        RaggedScenario(
            tree.successes[first:last],
            tree.rollouts[first:last],
            np.arange(last - first)[:, None] if whole else tree.levels[first:last],
        )
        for first, last in pairwise(starts.tolist())
    )


def _balanced(
    tree: Tree,
    starts: Ints,
    whole: bool,
    axes: tuple[bool, ...],
    binomials: Callable[[int], BinomialTables | None],
) -> BalancedApp | None:
    """Build the fast form of the scenarios that ``starts`` separates; None if they are not
    balanced."""
    sizes = np.diff(starts)
    if (sizes != sizes[0]).any():
        return None
    cells, shape = slice(starts[0], starts[-1]), (len(sizes), int(sizes[0]))
    levels = tree.levels[cells].reshape(*shape, -1)
    if whole:
        levels = np.broadcast_to(np.arange(shape[1])[:, None], (*shape, 1))
    return balanced_app(
        tree.successes[cells].reshape(shape),
        levels,
        tree.rollouts[cells].reshape(shape),
        axes,
        binomials,
    )


def _run(
    work: Callable[[tuple[int, int]], None], jobs: list[tuple[int, int]], threads: int
) -> None:
    if threads == 1:
        for job in jobs:
            work(job)
        return
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, jobs))


def _configurations(
    tree: Tree, configurations: Configurations | Literal["auto"], estimand: Estimand
) -> tuple[Configurations, list[str]]:
    share = tree.filled_share()
    if configurations != "auto" or estimand == "these_scenarios":
        return ("axes" if configurations == "auto" else configurations), []
    return ("whole", [WHOLE.format(share)]) if share < SPARSE else ("axes", [])


def _limits(tree: Tree, estimand: Estimand, statistic: SuiteStatistic) -> list[str]:
    if estimand == "these_scenarios":
        return [ONE_ROLLOUT] if (tree.rollouts == 1).any() else []
    fewest = np.bincount(tree.scenario_app).min()
    notes = [ONE_SCENARIO] if fewest == 1 else []
    if fewest < ENOUGH_SCENARIOS:
        notes.append(CLUSTERED if statistic is mean else TOO_NARROW)
    return notes


def _interval(
    estimate: Floats, replicates: Floats, confidence: float, notes: list[str]
) -> Interval:
    if ONE_ROLLOUT in notes:
        nothing = np.full(estimate.shape, np.nan)
        return Interval(estimate, nothing, nothing, confidence, tuple(notes))
    interval = percentile_interval(estimate, replicates, confidence)
    return Interval(
        interval.estimate, interval.low, interval.high, confidence, tuple(notes) + interval.notes
    )


TIE = 1e-12

"""Rates this close to a threshold are equal to it: 3 / 10 computed two ways must not differ."""


def performance_profile(rates: ArrayLike, thresholds: ArrayLike) -> Floats:
    """Share of the apps (..., A) with rate >= tau, for every tau (T,): (..., T)."""
    ordered = np.asarray(rates, dtype=float)[..., None, :]
    return np.asarray((ordered >= np.asarray(thresholds)[:, None] - TIE).mean(axis=-1))


Halves = Literal["rollouts", "scenarios"]


@dataclass(frozen=True, eq=False)
class Regret:
    """Of every app (A,): first rate minus second, P(the worse is selected), their product."""

    gap: Floats
    wrong: Floats
    regret: Floats


def expected_regret(
    first: Tree,
    second: Tree,
    rng: np.random.Generator,
    n_splits: int = 500,
    halves: Halves = "rollouts",
) -> Regret:
    """Compute the regret of selecting on half the data at one cell per scenario: half the rollouts
    of each (at least one), or of every app half the scenarios (at least one) with all their
    rollouts.

    Both trees must have the same cells. A tie selects either with equal probability.
    """
    for name in ("app", "scenario", "levels"):
        if not np.array_equal(getattr(first, name), getattr(second, name)):
            raise ValueError("the two agents were not run on the same cells: match them first")
    cells = np.diff(np.r_[first.scenario_starts, len(first.scenario)])
    wrong = np.zeros(len(first.app_names))
    gap = app_rates(first) - app_rates(second)
    step = chunk_size(len(cells))
    for start in range(0, n_splits, step):
        n = min(step, n_splits - start)
        chosen = first.scenario_starts + rng.integers(0, cells, size=(n, len(cells)))
        if halves == "rollouts":
            shown = _half_rates(first, chosen, rng) - _half_rates(second, chosen, rng)
        else:
            shown = (first.rates[chosen] - second.rates[chosen]) * _half(first.scenario_app, n, rng)
        sums = np.add.reduceat(shown, np.flatnonzero(np.diff(first.scenario_app, prepend=-1)), 1)
        lead = np.where(np.abs(sums) < 1e-12, 0, np.sign(sums))
        wrong += ((1 - np.sign(gap) * lead) / 2).sum(axis=0)
    wrong = np.where(gap == 0, 0.0, wrong / n_splits)
    return Regret(gap, wrong, wrong * np.abs(gap))


def _half_rates(tree: Tree, cells: Ints, rng: np.random.Generator) -> Floats:
    """Success rate on a random half of each chosen cell's rollouts, same shape as ``cells``."""
    k, n = tree.successes[cells], tree.rollouts[cells]
    half = np.maximum(n // 2, 1)
    return np.asarray(rng.hypergeometric(k, n - k, half) / half)


def _half(app: Ints, n: int, rng: np.random.Generator) -> Bools:
    """Return which scenarios are used in each of ``n`` splits (n, S): half of every app's, which
    ``app`` (S,) lists in order."""
    sizes = np.bincount(app)
    order = np.lexsort((rng.random((n, len(app))), np.broadcast_to(app, (n, len(app)))))
    rank = np.argsort(order, axis=1) - (np.cumsum(sizes) - sizes)[app]
    return np.asarray(rank < np.maximum(sizes // 2, 1)[app])


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """Mean absolute difference along one axis, its noise floor, and their difference.

    ``differences`` (P,) are signed, first level minus second. All ``nan`` without a pair.
    """

    mad: float
    floor: float
    excess: float
    differences: Floats


def mad_decomposition(tree: Tree, axis: int) -> Sensitivity:
    """Equation 2 along ``axis``, with the exact permutation floor."""
    first, second = matched_pairs(tree, axis)
    differences = tree.rates[first] - tree.rates[second]
    if not len(first):
        return Sensitivity(np.nan, np.nan, np.nan, differences)
    floor = float(noise_floor(tree, first, second).mean())
    mad = float(np.abs(differences).mean())
    return Sensitivity(mad, floor, mad - floor, differences)


def matched_pairs(tree: Tree, axis: int) -> tuple[Ints, Ints]:
    """Cells (P,) and (P,) of one scenario that differ on ``axis`` and on nothing else."""
    others = np.delete(tree.levels, axis, axis=1)
    keys = np.column_stack([tree.scenario, others])
    order = np.lexsort((tree.levels[:, axis], *keys.T[::-1]))
    group = np.cumsum((np.diff(keys[order], axis=0, prepend=-1) != 0).any(axis=1))
    reach = np.arange(1, np.bincount(group).max())
    starts = [np.flatnonzero(group[:-step] == group[step:]) for step in reach]
    first = np.concatenate([np.zeros(0, dtype=np.int64), *starts])
    steps = np.repeat(reach, [len(each) for each in starts])
    return order[first], order[first + steps]


def noise_floor(tree: Tree, first: Ints, second: Ints) -> Floats:
    """Return E|difference| of every pair (P,) if its successes are randomly assigned
    (hypergeometric)."""
    total = tree.successes[first] + tree.successes[second]
    deals = np.stack([total, tree.rollouts[first], tree.rollouts[second]], axis=1)
    kinds, which = np.unique(deals, axis=0, return_inverse=True)
    expected = [_expected_gap(int(k), int(n), int(m)) for k, n, m in kinds]
    return np.asarray(expected)[which.ravel()]


def _expected_gap(successes: int, n: int, m: int) -> float:
    k = np.arange(max(0, successes - m), min(n, successes) + 1)
    log_pmf = (
        _log_choose(n, k) + _log_choose(m, successes - k) - _log_choose(n + m, np.array(successes))
    )
    return float(np.exp(log_pmf) @ np.abs(k / n - (successes - k) / m))


def _log_choose(n: int, k: Ints) -> Floats:
    return np.asarray(-np.log1p(n) - scipy.special.betaln(n - k + 1, k + 1))


def t_half_width(values: ArrayLike) -> float | None:
    """Return half of the 95 % t-interval of the mean of units (n,); None for fewer than two."""
    units = np.asarray(values, dtype=float)
    n = len(units)
    return float(t_quantile(0.95, n - 1) * units.std(ddof=1) / n**0.5) if n > 1 else None


def cluster_t_interval(
    tree: Tree, confidence: float = 0.95, estimand: Estimand = "new_scenarios"
) -> Interval:
    """Return the interval of the mean over apps of nested app rates, shape (1,).

    Undefined, with the reason, if an app has one scenario (``new_scenarios``) or a cell one rollout
    (``these_scenarios``).
    """
    estimate = app_rates(tree).mean(keepdims=True)
    if estimand == "these_scenarios":
        if (tree.rollouts == 1).any():
            return _undefined(estimate, confidence, ONE_ROLLOUT)
        half = normal_quantile(confidence) * np.sqrt(_rollout_variance(tree))
        return Interval(estimate, estimate - half, estimate + half, confidence)
    scenarios = np.bincount(tree.scenario_app)
    if (scenarios == 1).any():
        return _undefined(estimate, confidence, ONE_SCENARIO)
    deviation = scenario_rates(tree) - app_rates(tree)[tree.scenario_app]
    spread = np.bincount(tree.scenario_app, deviation**2) / (scenarios - 1)
    parts = spread / scenarios
    if not parts.any():
        note = "scenarios within every app have one and the same rate: a spread of zero"
        return Interval(estimate, estimate, estimate, confidence, (note,))
    df = parts.sum() ** 2 / (parts**2 / (scenarios - 1)).sum()
    half = t_quantile(confidence, float(df)) * np.sqrt(parts.sum()) / len(scenarios)
    return Interval(estimate, estimate - half, estimate + half, confidence)


def _rollout_variance(tree: Tree) -> float:
    """Variance of the suite mean from rollouts alone: sum of weight^2 p (1 - p) / (R - 1)."""
    apps, scenarios = len(tree.app_names), np.bincount(tree.scenario_app)
    cells = np.bincount(tree.scenario)
    weight = 1 / (apps * scenarios[tree.app] * cells[tree.scenario])
    return float((weight**2 * tree.rates * (1 - tree.rates) / (tree.rollouts - 1)).sum())


def _undefined(estimate: Floats, confidence: float, note: str) -> Interval:
    nothing = np.full(estimate.shape, np.nan)
    return Interval(estimate, nothing, nothing, confidence, (note,))
