"""Precision under the attack that hurts most, with a lower limit that holds for all of them.

The least of several estimates is biased down, and its limit must hold for whichever it is: the
limits are simultaneous (max-t; Hothorn, Bretz and Westfall, "Simultaneous inference in general
parametric models", Biometrical Journal 50, 2008). They are made on the scale of log odds, on which
precision near 1 is less skewed, from what each task contributes to it (the linearised variance of a
ratio over clusters), with as many degrees of freedom as there are tasks, less one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trajudge.eval.stats.intervals.clustered_rates import clustered_rates
from trajudge.robustness.measures.pairs import PerturbedPairs

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
    """Counts by task (C,) of the runs as they were: true successes, of which accepted, failures, of
    which accepted; and by task and attack (C, A) the failures under it, those of them accepted, and
    those accepted before."""

    successes: Floats
    accepted: Floats
    failures: Floats
    false: Floats
    tried: Floats
    fooled: Floats
    before: Floats


def worst_case(
    attacks: Sequence[PerturbedPairs], base: PerturbedPairs, rng: np.random.Generator
) -> WorstCase:
    """Measure precision under each attack.

    How many runs are successes, and how many of either are accepted, is that of ``base``, runs as
    they were; to the share of failures that are accepted an attack adds what it adds on the
    failures that it can be tried on, which may be others. A run without a verdict is not accepted.
    """
    counts = _counts(attacks, base)
    accepted, false = counts.accepted.sum(), counts.false.sum()
    clean = float(accepted / (accepted + false)) if accepted + false else None
    recall = float(accepted / counts.successes.sum()) if counts.successes.any() else None
    if not attacks or not accepted:
        return WorstCase(clean, recall, ())
    rates = _precision(counts)
    lows, highs = _limits(counts, rates, rng)
    made = [
        AttackedPrecision(attack.name, float(rate), None if np.isnan(low) else float(low))
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
        added = (counts.fooled - counts.before).sum(axis=0) / counts.tried.sum(axis=0)
        false = np.clip(counts.false.sum() + added * failures, 0, failures)
        return np.asarray(accepted / (accepted + false))


def _limits(counts: _Counts, rates: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Return lower and upper limits (A,), each for all attacks at once."""
    clusters = len(counts.accepted)
    lows, highs = np.full((2, len(rates)), np.nan)
    if clusters < 2:
        return lows, highs
    log_odds, influence = _linearised(counts)
    spread = np.sqrt((influence**2).sum(axis=0) * clusters / (clusters - 1))
    varies = spread > 0
    if varies.any():
        drawn = rng.standard_normal((DRAWS, clusters)) @ influence[:, varies]
        scale = np.sqrt(rng.chisquare(clusters - 1, DRAWS) / (clusters - 1))
        deviations = drawn / np.sqrt((influence[:, varies] ** 2).sum(axis=0)) / scale[:, None]
        quantile = np.quantile(deviations.max(axis=1), 0.95)
        lows[varies] = 1 / (1 + np.exp(quantile * spread[varies] - log_odds[varies]))
        # The deviations are drawn alike on both sides.
        highs[varies] = 1 / (1 + np.exp(-quantile * spread[varies] - log_odds[varies]))
    # Of an attack that changed no verdict on a failure the contributions know no spread.
    still = (counts.fooled == counts.before).all(axis=0) & (counts.tried.sum(axis=0) > 0)
    lows[still] = np.fmin(lows[still], _never_fooled(counts)[still])
    unknown = np.isnan(rates)
    return np.where(unknown, np.nan, lows), np.where(unknown, np.nan, np.maximum(highs, rates))


def _linearised(counts: _Counts) -> tuple[Floats, Floats]:
    """Return the log odds of precision (A,) and what each task adds to them (C, A); less than half
    a run that is accepted counts as half a run."""
    changed = counts.fooled - counts.before
    tried, failures = counts.tried.sum(axis=0), counts.failures.sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        added = changed.sum(axis=0) / tried
        false = np.clip(counts.false.sum() + added * failures, 0.5, max(failures, 0.5))
        true = max(counts.accepted.sum(), 0.5)
        own = failures * (changed - added * counts.tried) / tried
    own += counts.false[:, None] + added * counts.failures[:, None]
    return np.log(true / false), np.nan_to_num(counts.accepted[:, None] / true - own / false)


def _never_fooled(counts: _Counts) -> Floats:
    """Return limits for attacks that fooled the judge nowhere, of which a bootstrap knows no
    spread: the upper limit of the share of failures, over the attacks by Bonferroni."""
    confidence = 1 - 2 * 0.05 / counts.tried.shape[1]
    shares = clustered_rates(
        counts.fooled.T, counts.tried.T, [len(counts.accepted)], confidence
    ).interval.high
    accepted = counts.accepted.sum()
    return np.asarray(accepted / (accepted + shares * counts.failures.sum()))


def _counts(attacks: Sequence[PerturbedPairs], base: PerturbedPairs) -> _Counts:
    everyone = np.concatenate([base.cluster, *(one.cluster for one in attacks)])
    size = int(everyone.max(initial=-1)) + 1
    success, failure = base.truth == 1, base.truth == 0
    yes = base.clean == 1
    tried, fooled, before = np.zeros((3, size, len(attacks)))
    for place, one in enumerate(attacks):
        fails = one.truth == 0
        tried[:, place] = np.bincount(one.cluster, fails, size)
        fooled[:, place] = np.bincount(one.cluster, fails & (one.perturbed == 1), size)
        before[:, place] = np.bincount(one.cluster, fails & (one.clean == 1), size)
    columns = (success, success & yes, failure, failure & yes)
    counted = [np.bincount(base.cluster, column, size).astype(float) for column in columns]
    whole = _Counts(counted[0], counted[1], counted[2], counted[3], tried, fooled, before)
    present = np.bincount(everyone, minlength=size) > 0
    return _Counts(*(column[present] for column in whole))
