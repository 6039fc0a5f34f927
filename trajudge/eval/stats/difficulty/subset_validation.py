"""Whether a subset of tasks ranks and scores agents as the full pool does.

Source: WebArena Verified, appendix B, table 8: Kendall's tau and the mean absolute error of the
agents' success rates, a bootstrap that resamples tasks, and refits without each agent. With
eight agents tau moves in steps of 1/14: .857 is two swapped pairs, and .90 allows one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from trajudge.eval.stats.difficulty.attempts import Attempts
from trajudge.eval.stats.difficulty.hard_subset import HardSubset
from trajudge.eval.stats.interval import Floats, Ints


@dataclass(frozen=True, eq=False)
class SubsetValidation:
    """Agreement of subset and pool, and the share of resamples that meets each threshold."""

    tau: float
    mae: float
    tau_pass_rate: float
    mae_pass_rate: float
    tau_replicates: Floats
    mae_replicates: Floats


@dataclass(frozen=True, eq=False)
class LeaveOneOut:
    """Per left-out agent (A,): tau of the others' ranking on the reselected and the full subset's
    rates (``nan`` where nothing is selected), and the share of the subset selected again."""

    tau: Floats
    overlap: Floats


def kendall_tau(first: Floats, second: Floats) -> Floats:
    """Tau-b of paired rates (..., A), ties corrected; ``nan`` where all of one side are equal."""
    i, j = np.triu_indices(first.shape[-1], 1)
    one = np.sign(np.round(first[..., i] - first[..., j], 12))
    two = np.sign(np.round(second[..., i] - second[..., j], 12))
    pairs = np.sqrt((one**2).sum(axis=-1) * (two**2).sum(axis=-1))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((one * two).sum(axis=-1) / pairs)


def validate_subset(
    attempts: Attempts,
    selected: Ints,
    rng: np.random.Generator,
    *,
    n_resamples: int = 500,
    tau_at_least: float = 0.90,
    mae_at_most: float = 0.06,
) -> SubsetValidation:
    """Compare agents' success on ``selected`` tasks with that on all tasks."""
    n = len(attempts.task_names)
    drawn = rng.integers(0, n, size=(n_resamples, n)) + n * np.arange(n_resamples)[:, None]
    weights = np.bincount(drawn.ravel(), minlength=n_resamples * n).reshape(n_resamples, n)
    taus, errors = _compare(attempts, selected, np.vstack([np.ones(n, dtype=np.int64), weights]))
    return SubsetValidation(
        tau=float(taus[0]),
        mae=float(errors[0]),
        tau_pass_rate=float((taus[1:] >= tau_at_least - 1e-9).mean()),
        mae_pass_rate=float((errors[1:] <= mae_at_most + 1e-9).mean()),
        tau_replicates=taus[1:],
        mae_replicates=errors[1:],
    )


def leave_one_out(
    attempts: Attempts, subset: HardSubset, select: Callable[[Attempts], HardSubset]
) -> LeaveOneOut:
    """Fit and select again (``select``) without each agent, and compare the others' ranking."""
    outcomes = attempts.outcomes()
    chosen = {attempts.task_names[t] for t in subset.selected}
    code = {name: t for t, name in enumerate(attempts.task_names)}
    taus, overlaps = [], []
    for agent in range(len(attempts.agent_names)):
        fewer = attempts.without_agent(agent)
        again = [fewer.task_names[t] for t in select(fewer).selected]
        overlaps.append(len(chosen & set(again)) / max(len(chosen), 1))
        if not again:
            taus.append(float("nan"))
            continue
        others = np.delete(outcomes, agent, axis=0)
        old = np.nanmean(others[:, subset.selected], axis=1)
        new = np.nanmean(others[:, [code[name] for name in again]], axis=1)
        taus.append(float(kendall_tau(old, new)))
    return LeaveOneOut(np.array(taus), np.array(overlaps))


def _compare(attempts: Attempts, selected: Ints, weights: Ints) -> tuple[Floats, Floats]:
    """Tau and mean absolute error (B,) under task weights (B, T)."""
    outcomes = attempts.outcomes()
    won, tried = np.nan_to_num(outcomes).T, (~np.isnan(outcomes)).astype(float).T
    with np.errstate(invalid="ignore", divide="ignore"):
        full = (weights @ won) / (weights @ tried)
        part = (weights[:, selected] @ won[selected]) / (weights[:, selected] @ tried[selected])
    return kendall_tau(full, part), np.abs(full - part).mean(axis=-1)
