"""May a choice made here be carried to a benchmark without labels?

Where only the share of successes differs, the precision there follows from the true- and
false-positive rates: P' = TPR p / (TPR p + FPR (1 - p)). That holds only where both rates are the
same on every benchmark, which is tested first; AgentRewardBench rejects it for every published
judge. Where it is rejected, nothing is carried over, and labels are asked for.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import special

from eval.select.evidence import Evidence
from eval.select.labels_needed import labels_needed
from eval.select.plan import Target
from eval.select.rates import design_effects, lower_limits, rate_sums, upper_limits
from eval.stats.interval import Bools, Floats, Ints
from trajectories.model import Record


class Homogeneity(Record):
    """Pearson's chi-square test that a rate is the same on every benchmark. ``p_value`` is None
    where fewer than two benchmarks have a trial. ``rates`` by benchmark: hits and trials."""

    rates: dict[str, tuple[int, int]]
    chi_square: float | None
    df: int
    p_value: float | None


class Transport(Record):
    """``allowed`` only where neither rate was shown to differ. ``least_success_rate``: the target
    holds there if at least that share of rollouts succeeds (both rates at their limits).
    ``accepted_to_label``: how many accepted trajectories to label on a new benchmark."""

    allowed: bool
    reason: str
    false_positive_rate: Homogeneity
    true_positive_rate: Homogeneity
    least_success_rate: float | None
    accepted_to_label: int | None


def homogeneity(hits: Bools, trials: Bools, benchmark: NDArray[np.str_]) -> Homogeneity:
    """Arrays (N,); a rate of 0 or 1 everywhere differs nowhere (p = 1). Trajectories of one task
    count as independent, which errs on the side of refusing."""
    names = [str(name) for name in np.unique(benchmark[trials])]
    n = np.array([(trials & (benchmark == name)).sum() for name in names], dtype=np.int64)
    k = np.array([(hits & trials & (benchmark == name)).sum() for name in names], dtype=np.int64)
    rates = {name: (int(a), int(b)) for name, a, b in zip(names, k, n, strict=True)}
    if len(names) < 2:
        return Homogeneity(rates=rates, chi_square=None, df=0, p_value=None)
    statistic, df = _chi_square(k, n), len(names) - 1
    p = float(special.chdtrc(df, statistic))
    return Homogeneity(rates=rates, chi_square=statistic, df=df, p_value=p)


def _chi_square(k: Ints, n: Ints) -> float:
    pooled = k.sum() / n.sum()
    if pooled in (0, 1):
        return 0.0
    return float(((k - n * pooled) ** 2 / (n * pooled * (1 - pooled))).sum())


def transport(evidence: Evidence, candidate: int, target: Target, confidence: float) -> Transport:
    """Whether candidate number ``candidate`` may be carried over."""
    mine = evidence.judged[:, candidate]
    accepted = evidence.accepted[:, candidate]
    failed = homogeneity(accepted, mine & ~evidence.success, evidence.benchmark)
    succeeded = homogeneity(accepted, mine & evidence.success, evidence.benchmark)
    alpha = 1 - confidence
    reason = _refusal(failed, succeeded, alpha)
    least = None
    if not reason and target.kind == "precision":
        least = _least_success_rate(evidence, candidate, target.rate, alpha)
    return Transport(
        allowed=not reason,
        reason=reason or "neither rate was shown to differ between benchmarks",
        false_positive_rate=failed,
        true_positive_rate=succeeded,
        least_success_rate=least,
        accepted_to_label=_to_label(evidence, candidate, target, alpha),
    )


def _refusal(failed: Homogeneity, succeeded: Homogeneity, alpha: float) -> str:
    if failed.p_value is None:
        return "failures of a single benchmark say nothing about another"
    if failed.p_value <= alpha:
        return f"the false-positive rate differs between benchmarks (p = {failed.p_value:.2g})"
    if succeeded.p_value is None:
        return "successes of a single benchmark say nothing about another"
    if succeeded.p_value <= alpha:
        return f"the true-positive rate differs between benchmarks (p = {succeeded.p_value:.2g})"
    return ""


def _least_success_rate(
    evidence: Evidence, candidate: int, target: float, alpha: float
) -> float | None:
    """Solves P' = target at the upper limit of the false- and the lower of the true-positive
    rate, half of alpha for each."""
    one = evidence.judged[:, [candidate]]
    accepted, success = evidence.accepted[:, [candidate]], evidence.success[:, None]
    limits: list[Floats] = []
    for trials, limit in ((one & ~success, upper_limits), (one & success, lower_limits)):
        limits.append(limit(rate_sums(evidence.clusters(accepted & trials, trials)), alpha / 2))
    false, true = float(limits[0][0]), float(limits[1][0])
    odds = false * target + true * (1 - target)
    return false * target / odds if odds > 0 else None


def _to_label(evidence: Evidence, candidate: int, target: Target, alpha: float) -> int | None:
    """For a test there at ``alpha`` with power 0.8, were the precision the same as here."""
    if target.kind != "precision":
        return None
    accepted = evidence.accepted[:, [candidate]]
    rates = rate_sums(evidence.clusters(accepted & evidence.success[:, None], accepted))
    if not rates.trials[0] > 0 or rates.estimate[0] <= target.rate:
        return None
    n = labels_needed(target.rate, float(rates.estimate[0]), alpha=alpha)
    return None if n is None else math.ceil(n * float(design_effects(rates)[0]))
