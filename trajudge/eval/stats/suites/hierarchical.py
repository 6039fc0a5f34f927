"""The hierarchical bootstrap of Statistical Precipice, section 4.3, on any tree.

Within every app: scenarios with replacement; in each drawn scenario the levels of every enabled
axis independently; in each drawn configuration its rollouts. Apps are a curated set and stay
fixed. What the interval speaks about is declared:

* ``new_scenarios``: other scenarios like these, the paper's reading;
* ``these_scenarios``: this very set, run again; only rollouts vary, with the variance
  p (1 - p) / (R - 1), so at least two rollouts per cell are needed.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from typing import Literal

import numpy as np

from trajudge.eval.stats.blas import one_thread
from trajudge.eval.stats.interval import Floats, Interval, Ints
from trajudge.eval.stats.intervals.cluster_bootstrap import percentile_interval
from trajudge.eval.stats.intervals.clustered_rates import clustered_rates
from trajudge.eval.stats.streams import chunk_size, stream, stream_key
from trajudge.eval.stats.suites import tree as trees
from trajudge.eval.stats.suites.balanced import BalancedApp, balanced_app
from trajudge.eval.stats.suites.binomial_tables import BinomialTables, binomial_tables
from trajudge.eval.stats.suites.levels import Configurations, Leaf, Levels
from trajudge.eval.stats.suites.ragged import RaggedApp, RaggedScenario

ENDS = ("estimate", "low", "high")
Estimand = Literal["new_scenarios", "these_scenarios"]
FULL, ROLLOUTS = Levels(), Levels(scenarios=False, axes=False)
ENOUGH_SCENARIOS = 8
"""Scenarios of an app from which percentiles cover (``benchmarks.suite_intervals``)."""
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
    """A tree made ready to resample: draw as often as you like."""

    apps: tuple[BalancedApp | RaggedApp, ...]
    levels: Levels
    leaf: Leaf
    chunk: int

    def draw(self, rng: np.random.Generator, n_resamples: int, threads: int = 1) -> Floats:
        """Replicates of every app's success rate, (B, A); ``threads`` never change a digit."""
        key = stream_key(rng)
        rates = np.empty((n_resamples, len(self.apps)))

        def fill(job: tuple[int, int]) -> None:
            part, chunk = job
            values = self.apps[part].draw(
                self.chunk, self.levels, self.leaf, stream(key, part, chunk)
            )
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
    tree: trees.Tree,
    rng: np.random.Generator,
    *,
    estimand: Estimand = "new_scenarios",
    statistic: trees.SuiteStatistic = trees.mean,
    weighting: trees.Weighting = "nested",
    configurations: Configurations | Literal["auto"] = "auto",
    leaf: Leaf = "exact",
    n_resamples: int = 1000,
    confidence: float = 0.95,
    threads: int = 1,
) -> SuiteBootstrap:
    """Percentile intervals of a suite statistic and of each app's success rate.

    Percentiles of few scenarios are too narrow: the mean over apps, and every app's rate, get
    ``clustered_success`` where an app has fewer than ``ENOUGH_SCENARIOS``.
    """
    how, notes = _configurations(tree, configurations, estimand)
    levels = FULL if estimand == "new_scenarios" else ROLLOUTS
    sampler = prepare(
        tree,
        levels,
        weighting=weighting,
        configurations=how,
        leaf=leaf,
        unbiased=estimand == "these_scenarios",
    )
    rates = sampler.draw(rng, n_resamples, threads)
    point = trees.app_rates(tree, weighting)
    notes = [*notes, *_limits(tree, estimand, statistic)]
    if CLUSTERED in notes:
        suite, apps = clustered_success(tree, weighting, confidence)
        suite = replace(suite, estimate=statistic(point)[None], notes=(*notes, *suite.notes))
        return SuiteBootstrap(suite, replace(apps, notes=tuple(notes)), how, estimand)
    suite = _interval(statistic(point)[None], statistic(rates)[None], confidence, notes)
    apps = _interval(point, np.ascontiguousarray(rates.T), confidence, notes)
    return SuiteBootstrap(suite, apps, how, estimand)


def clustered_success(
    tree: trees.Tree, weighting: trees.Weighting = "nested", confidence: float = 0.95
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
        own, rates = np.ones(len(starts)), trees.scenario_rates(tree)
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
    tree: trees.Tree,
    levels: Levels = FULL,
    *,
    weighting: trees.Weighting = "nested",
    configurations: Configurations = "axes",
    leaf: Leaf = "exact",
    unbiased: bool = False,
) -> Sampler:
    """Build the tables for drawing: a quick exact form for balanced apps, else a general one."""
    whole = configurations == "whole"
    switches = levels.axis_switches(tree.levels.shape[1])
    if whole:
        switches = (any(switches),)
    tabled = levels.rollouts and leaf == "exact"
    most = int(np.bincount(tree.app).max())
    binomials = cache(lambda rollouts: binomial_tables(rollouts, most) if tabled else None)
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
        tuple(apps), levels, leaf, chunk_size(max((len(s.levels) for s in general), default=1))
    )


def _scenarios(tree: trees.Tree, starts: Ints, whole: bool) -> tuple[RaggedScenario, ...]:
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
    tree: trees.Tree,
    starts: Ints,
    whole: bool,
    axes: tuple[bool, ...],
    binomials: Callable[[int], BinomialTables | None],
) -> BalancedApp | None:
    """Build the quick form of the scenarios that ``starts`` separates; None if they forbid it."""
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
    tree: trees.Tree, configurations: Configurations | Literal["auto"], estimand: Estimand
) -> tuple[Configurations, list[str]]:
    share = tree.filled_share()
    if configurations != "auto" or estimand == "these_scenarios":
        return ("axes" if configurations == "auto" else configurations), []
    return ("whole", [WHOLE.format(share)]) if share < SPARSE else ("axes", [])


def _limits(tree: trees.Tree, estimand: Estimand, statistic: trees.SuiteStatistic) -> list[str]:
    if estimand == "these_scenarios":
        return [ONE_ROLLOUT] if (tree.rollouts == 1).any() else []
    fewest = np.bincount(tree.scenario_app).min()
    notes = [ONE_SCENARIO] if fewest == 1 else []
    if fewest < ENOUGH_SCENARIOS:
        notes.append(CLUSTERED if statistic is trees.mean else TOO_NARROW)
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
