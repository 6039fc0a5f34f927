"""May a choice made here be transferred to a benchmark without labels?

Where only the share of successes differs, the precision there follows from the true- and
false-positive rates: P' = TPR p / (TPR p + FPR (1 - p)). That holds only where both rates are the
same on every benchmark. That no difference was found does not show it: with few labels none ever
is. So equivalence is tested: each pair of benchmarks has to be shown to differ by at most a stated
margin, and the limits that the transferred target rests on give that margin away.
AgentRewardBench's judges all fail it. Where it is not shown, nothing is transferred, and labels are
asked for.
"""

from __future__ import annotations

import numpy as np
import scipy
from numpy.typing import NDArray

from trajudge.eval.select.decision import Equivalence, Homogeneity, Transport
from trajudge.eval.select.evidence import SelectionData
from trajudge.eval.select.plan import Target
from trajudge.eval.select.rates import (
    lower_limits,
    rate_sums,
    task_labels_needed,
    upper_limits,
)
from trajudge.stats.intervals import Bools


def homogeneity(hits: Bools, trials: Bools, benchmark: NDArray[np.str_]) -> Homogeneity:
    """Test arrays (N,); a rate of 0 or 1 everywhere differs nowhere (p = 1). Trajectories of one
    task count as independent, which errs on the side of refusing."""
    names = [str(name) for name in np.unique(benchmark[trials])]
    n = np.array([(trials & (benchmark == name)).sum() for name in names], dtype=np.int64)
    k = np.array([(hits & trials & (benchmark == name)).sum() for name in names], dtype=np.int64)
    rates = {name: (int(a), int(b)) for name, a, b in zip(names, k, n, strict=True)}
    if len(names) < 2:
        return Homogeneity(rates=rates, chi_square=None, df=0, p_value=None)
    pooled, df = k.sum() / n.sum(), len(names) - 1
    varies = pooled not in (0, 1)
    statistic = (
        float(((k - n * pooled) ** 2 / (n * pooled * (1 - pooled))).sum()) if varies else 0.0
    )
    p = float(scipy.special.chdtrc(df, statistic))
    return Homogeneity(rates=rates, chi_square=statistic, df=df, p_value=p)


def largest_difference(
    evidence: SelectionData, hits: Bools, trials: Bools, alpha: float
) -> float | None:
    """Compute the upper limit at ``alpha`` of the largest difference of a rate, hits / trials (N,
    1), between two benchmarks, from the one-sided limits of each (MOVER, Zou and Donner 2008); None
    where fewer than two have a trial."""
    ends: list[tuple[float, float, float]] = []
    for name in evidence.benchmarks:
        here = evidence.benchmark == name
        part = evidence.within(here)
        sums = rate_sums(part.clusters((hits & trials)[here], trials[here]))
        if sums.trials[0] > 0:
            limits = (lower_limits(sums, alpha), sums.estimate, upper_limits(sums, alpha))
            ends.append((float(limits[0][0]), float(limits[1][0]), float(limits[2][0])))
    if len(ends) < 2:
        return None
    low, rate, high = np.array(ends).T
    reach = np.hypot((high - rate)[:, None], (rate - low)[None, :])
    apart = rate[:, None] - rate[None, :] + reach
    return float(apart[~np.eye(len(ends), dtype=bool)].max())


def transport(
    evidence: SelectionData, candidate: int, target: Target, confidence: float, margin: float
) -> Transport:
    """Say whether candidate number ``candidate`` transfers to other benchmarks."""
    alpha = 1 - confidence
    mine, accepted = evidence.judged[:, [candidate]], evidence.accepted[:, [candidate]]
    failures, successes = mine & ~evidence.success[:, None], mine & evidence.success[:, None]
    rates = [
        homogeneity(accepted[:, 0], trials[:, 0], evidence.benchmark)
        for trials in (failures, successes)
    ]
    equivalence = Equivalence(
        margin=margin,
        false_positive=largest_difference(evidence, accepted, failures, alpha),
        true_positive=largest_difference(evidence, accepted, successes, alpha),
    )
    fp, tp = (rate_sums(evidence.clusters(accepted & t, t)) for t in (failures, successes))
    # Half of alpha each; a rate without a trial may be anything.
    false = min(float(np.nan_to_num(upper_limits(fp, alpha / 2)[0], nan=1.0)) + margin, 1.0)
    true = max(float(np.nan_to_num(lower_limits(tp, alpha / 2)[0], nan=0.0)) - margin, 0.0)
    reason = _refusal(rates[0], rates[1], equivalence, alpha)
    if not reason and target.kind != "precision" and false > target.rate:
        reason = f"the false-positive rate may reach {false:.2g} there, the margin added"
    least = None
    if not reason and target.kind == "precision":
        least = least_success_rate(false, true, target.rate)
    return Transport(
        allowed=not reason,
        reason=reason or f"both rates are equivalent between benchmarks, within {margin:g}",
        false_positive_rate=rates[0],
        true_positive_rate=rates[1],
        least_success_rate=least,
        accepted_to_label=_to_label(evidence, candidate, target, alpha),
        equivalence=equivalence,
        false_positive_limit=None if reason else false,
    )


def _refusal(
    failed: Homogeneity, succeeded: Homogeneity, equivalence: Equivalence, alpha: float
) -> str:
    kinds = (
        ("false-positive", "failures", failed, equivalence.false_positive),
        ("true-positive", "successes", succeeded, equivalence.true_positive),
    )
    for kind, of, tested, apart in kinds:
        if tested.p_value is None or apart is None:
            return f"{of} of a single benchmark say nothing about another"
        if tested.p_value <= alpha:
            return f"the {kind} rate differs between benchmarks (p = {tested.p_value:.2g})"
    for kind, _, _, apart in kinds:
        if apart is not None and apart > equivalence.margin:
            return (
                f"the {kind} rate was not shown to be the same on all benchmarks: by these labels "
                f"it may differ by up to {apart:.2g}, more than the margin of "
                f"{equivalence.margin:g}"
            )
    return ""


def least_success_rate(false: float, true: float, target: float) -> float:
    """Solve P' = target for the success rate; 1 where no success rate reaches it."""
    odds = false * target + true * (1 - target)
    return false * target / odds if odds > 0 else 1.0


def _to_label(evidence: SelectionData, candidate: int, target: Target, alpha: float) -> int | None:
    """Count the labels for a test there at ``alpha`` with power 0.8, were the precision the same as
    here."""
    if target.kind != "precision":
        return None
    accepted = evidence.accepted[:, [candidate]]
    rates = rate_sums(evidence.clusters(accepted & evidence.success[:, None], accepted))
    if not rates.trials[0] > 0 or rates.estimate[0] <= target.rate:
        return None
    return task_labels_needed(rates, 0, target.rate, alpha)
