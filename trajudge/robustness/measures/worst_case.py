"""Precision under the attack that hurts most, with a lower limit that holds for all of them.

The least of several estimates is biased down, and its limit must hold for whichever it is: the
limits are simultaneous (max-t; Hothorn, Bretz and Westfall, "Simultaneous inference in general
parametric models", Biometrical Journal 50, 2008). They are made on the scale of log odds, on which
precision near 1 is less skewed, from what each task contributes to it (the linearised variance of a
ratio over clusters within strata, the benchmarks), and never narrower than of as many independent
runs, as the limits of the precision without an attack: where every task has the same share of
successes by design, tasks differ less than runs do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trajudge.robustness.measures.pairs import PerturbedPairs
from trajudge.stats.intervals import clustered_rates, defined, degrees_of_freedom, strata_of
from trajudge.trajectories.model import TrajectoryKey

DRAWS = 4_000
Floats = NDArray[np.float64]


class AttackedPrecision(NamedTuple):
    """Precision if every failure came with an attack: the share of true successes among the
    accepted. ``low`` holds for all attacks at once, with 95 %; None where it cannot be told."""

    name: str
    precision: float
    low: float | None


class WorstCase(NamedTuple):
    """Clean precision and recall, and precision under each attack, the worst first. ``low`` is the
    least of the attacks' lower limits, ``high`` that of their upper ones, which are made like
    them."""

    precision: float | None
    recall: float | None
    attacks: tuple[AttackedPrecision, ...]
    low: float | None = None
    high: float | None = None


class _Counts(NamedTuple):
    """Counts by task or run (C,), benchmark after benchmark: true successes, of which accepted,
    failures, of which accepted; and by attack too (A, C) the failures under it, those of them
    accepted, and those accepted before. ``strata`` (H,): how many there are of each benchmark."""

    successes: Floats
    accepted: Floats
    failures: Floats
    false: Floats
    tried: Floats
    fooled: Floats
    before: Floats
    strata: NDArray[np.int64]


def worst_case(
    attacks: Sequence[PerturbedPairs], base: PerturbedPairs, rng: np.random.Generator
) -> WorstCase:
    """Measure precision under each attack that was tried on a failure: one that denies successes
    has no part in it.

    How many runs are successes, and how many of either are accepted, is that of ``base``, runs as
    they were; to the share of failures that are accepted an attack adds what it adds on the
    failures that it can be tried on, which may be others. A run without a verdict is not accepted.
    """
    attacks = [one for one in attacks if (one.truth == 0).any()]
    runs = [base, *attacks]
    counts = _counts(attacks, base, [one.cluster for one in runs])
    accepted, false = counts.accepted.sum(), counts.false.sum()
    clean = float(accepted / (accepted + false)) if accepted + false else None
    recall = float(accepted / counts.successes.sum()) if counts.successes.any() else None
    if not attacks or not accepted:
        return WorstCase(clean, recall, ())
    rates = _precision(counts)
    lows, highs = _limits(counts, _counts(attacks, base, _numbered(runs)), rates, rng)
    made = [
        AttackedPrecision(attack.name, float(rate), defined(low))
        for attack, rate, low in zip(attacks, rates, lows, strict=True)
    ]
    known = [one.low for one in made if one.low is not None]
    above = [float(high) for high in highs if not np.isnan(high)]
    ordered = tuple(sorted(made, key=lambda one: (one.precision, one.name)))
    return WorstCase(clean, recall, ordered, min(known, default=None), min(above, default=None))


def _precision(counts: _Counts) -> Floats:
    """Return precision under each attack (A,)."""
    accepted, failures = counts.accepted.sum(), counts.failures.sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        added = (counts.fooled - counts.before).sum(axis=1) / counts.tried.sum(axis=1)
        false = np.clip(counts.false.sum() + added * failures, 0, failures)
        return np.asarray(accepted / (accepted + false))


def _limits(
    tasks: _Counts, runs: _Counts, rates: Floats, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Return lower and upper limits (A,), each for all attacks at once."""
    df = float(degrees_of_freedom(tasks.failures + tasks.successes, tasks.strata))
    lows, highs = np.full((2, len(rates)), np.nan)
    if np.isnan(df):
        return lows, highs
    log_odds, deviations = _deviations(tasks)
    between_tasks = (deviations**2).sum(axis=1)
    spread = np.sqrt(np.maximum(between_tasks, (_deviations(runs)[1] ** 2).sum(axis=1)))
    varies = spread > 0
    if varies.any():
        size = np.sqrt(between_tasks[varies])
        drawn = rng.standard_normal((DRAWS, deviations.shape[1])) @ deviations[varies].T
        apart = size < 1e-9  # tasks do not differ: drawn by itself, which makes no limit too high
        drawn[:, apart], size[apart] = rng.standard_normal((DRAWS, apart.sum())), 1.0
        scale = np.sqrt(rng.chisquare(df, DRAWS) / df)
        quantile = np.quantile((drawn / size / scale[:, None]).max(axis=1), 0.95)
        lows[varies] = 1 / (1 + np.exp(quantile * spread[varies] - log_odds[varies]))
        # The deviations are drawn alike on both sides.
        highs[varies] = 1 / (1 + np.exp(-quantile * spread[varies] - log_odds[varies]))
    # Of an attack that changed no verdict on a failure the contributions know no spread.
    still = (tasks.fooled == tasks.before).all(axis=1) & (tasks.tried.sum(axis=1) > 0)
    lows[still] = np.fmin(lows[still], _never_fooled(tasks)[still])
    unknown = np.isnan(rates)
    return np.where(unknown, np.nan, lows), np.where(unknown, np.nan, np.maximum(highs, rates))


def _deviations(counts: _Counts) -> tuple[Floats, Floats]:
    """Return the log odds of precision (A,) and how what each task or run adds to them deviates
    from the mean of its benchmark (A, C), the squares of which add up to the variance; less than
    half a run that is accepted counts as half a run."""
    changed = counts.fooled - counts.before
    tried, failures = counts.tried.sum(axis=1), counts.failures.sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        added = (changed.sum(axis=1) / tried)[:, None]
        false = np.clip(counts.false.sum() + added * failures, 0.5, max(failures, 0.5))
        true = max(counts.accepted.sum(), 0.5)
        own = failures * (changed - added * counts.tried) / tried[:, None]
    own += counts.false + added * counts.failures
    influence = np.nan_to_num(counts.accepted / true - own / false)
    for place in strata_of(tuple(counts.strata.tolist())):
        if len(place) > 1:
            among = influence[:, place]
            scale = np.sqrt(len(place) / (len(place) - 1))
            influence[:, place] = scale * (among - among.mean(axis=1, keepdims=True))
    return np.log(true / false[:, 0]), influence


def _never_fooled(counts: _Counts) -> Floats:
    """Return limits for attacks that fooled the judge nowhere, of which a bootstrap knows no
    spread: the upper limit of the share of failures, over the attacks by Bonferroni."""
    confidence = 1 - 2 * 0.05 / len(counts.tried)
    shares = clustered_rates(counts.fooled, counts.tried, counts.strata, confidence).interval.high
    accepted = counts.accepted.sum()
    return np.asarray(accepted / (accepted + shares * counts.failures.sum()))


def _numbered(runs: Sequence[PerturbedPairs]) -> list[NDArray[np.int64]]:
    """Return a number per source, over all pairs; one array per pairs."""
    numbers: dict[TrajectoryKey, int] = {}
    return [
        np.array([numbers.setdefault(source, len(numbers)) for source in one.sources], np.int64)
        for one in runs
    ]


def _counts(
    attacks: Sequence[PerturbedPairs],
    base: PerturbedPairs,
    groups: Sequence[NDArray[np.int64]],
) -> _Counts:
    """Count by group; ``groups`` numbers those of the base, then those of each attack."""
    runs = [base, *attacks]
    benchmarks = np.concatenate([one.benchmark for one in runs])
    benchmark = np.unique(benchmarks, return_inverse=True)[1]
    group = np.concatenate(groups)
    ordered, place = np.unique(benchmark * (group.max() + 1) + group, return_inverse=True)
    of_base, *of_attacks = np.split(place, np.cumsum([len(one.clean) for one in runs])[:-1])
    columns = [
        *((of_base, column) for column in _outcomes(base, base.clean)),
        *(
            (places, column)
            for places, one in zip(of_attacks, attacks, strict=True)
            for column in (*_outcomes(one, one.perturbed)[2:], *_outcomes(one, one.clean)[3:])
        ),
    ]
    sums = np.array([np.bincount(*column, len(ordered)) for column in columns])
    strata = np.bincount(ordered // (group.max() + 1))
    success, accepted, failure, false = sums[:4]
    under = (sums[4::3], sums[5::3], sums[6::3])
    return _Counts(success, accepted, failure, false, *under, strata)


def _outcomes(pairs: PerturbedPairs, verdict: Floats) -> tuple[NDArray[np.bool_], ...]:
    """Tell of each run whether it is a success, one that is accepted, a failure, one of those that
    is accepted (N,)."""
    success, failure, yes = pairs.truth == 1, pairs.truth == 0, verdict == 1
    return success, success & yes, failure, failure & yes
