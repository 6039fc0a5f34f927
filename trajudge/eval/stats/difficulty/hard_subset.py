"""Choosing a hard, category-balanced subset of tasks: WebArena Verified, section 4.5, appendix B.

Tasks are ranked within their category by the probability that they are hard; every category
gives at most a capped number, very easy ones fewer. Tasks of several sites are no part of the
model: append them to the subset afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy
from pydantic import BaseModel, Field

from trajudge.eval.stats.difficulty.attempts import Attempts
from trajudge.eval.stats.difficulty.hazard_model import HazardFit
from trajudge.eval.stats.interval import Bools, Floats, Ints

TIE = 1e-3  # hardness probabilities this close count as equal


class SubsetRules(BaseModel, frozen=True, extra="forbid"):
    """How hard tasks are told and selected; the defaults are the released configuration.

    ``hard`` is the reference success of a hard task, ``easy`` that of a very easy category; ``cap``
    and ``cap_easy`` limit the tasks per category.
    """

    hard: float = Field(default=0.20, gt=0, lt=1)
    easy: float = Field(default=0.85, gt=0, lt=1)
    cap: int = 3
    cap_easy: int = 2
    min_agents: int = 4


@dataclass(frozen=True, eq=False)
class HardSubset:
    """Selected tasks in order of choice; hardness and reference success of all tasks (T,).

    ``very_easy`` (C,) marks the categories with the lower cap.
    """

    selected: Ints
    hardness: Floats
    reference_success: Floats
    very_easy: Bools


def hardness_probability(fit: HazardFit, hard: float = 0.20) -> Floats:
    """P(reference success <= ``hard``) for every task (T,), equation 4.

    The share of the fit's draws, or the normal's where it has none.
    """
    if not 0 < hard < 1:
        raise ValueError(f"the threshold of hardness must lie between 0 and 1, not {hard!r}")
    threshold = np.log(-np.log1p(-hard))
    if fit.draws is not None:
        return np.asarray((fit.draws <= threshold).mean(axis=0))
    return np.asarray(scipy.special.ndtr((threshold - fit.log_hazard) / fit.log_hazard_sd))


def reference_success(fit: HazardFit) -> Floats:
    """Posterior mean of the success of the average agent at reference steps (T,), equation 3."""
    if fit.draws is not None:
        return np.asarray(-np.expm1(-np.exp(fit.draws)).mean(axis=0))
    nodes, weights = np.polynomial.hermite_e.hermegauss(31)
    log_hazard = fit.log_hazard[:, None] + fit.log_hazard_sd[:, None] * nodes
    return np.asarray(-np.expm1(-np.exp(log_hazard)) @ weights / weights.sum())


def select_hard(attempts: Attempts, fit: HazardFit, rules: SubsetRules | None = None) -> HardSubset:
    """Up to a cap of the hardest tasks of each category, hardest categories first.

    Among equally hard candidates the site with the fewest tasks so far is preferred, then the
    lower reference success, then the order of names.
    """
    chosen = rules or SubsetRules()
    hardness, success = hardness_probability(fit, chosen.hard), reference_success(fit)
    eligible = attempts.agents_per_task >= chosen.min_agents
    categories = range(int(attempts.category.max()) + 1)
    medians = np.array([np.median(success[attempts.category == c]) for c in categories])
    very_easy = medians >= chosen.easy
    per_site = np.zeros(len(attempts.site_names), dtype=np.int64)
    selected: list[int] = []
    for c in np.argsort(medians, kind="stable"):
        left = np.flatnonzero((attempts.category == c) & eligible).tolist()
        for _ in range(chosen.cap_easy if very_easy[c] else chosen.cap):
            if not left:
                break
            best = max(hardness[t] for t in left)
            tied = [t for t in left if hardness[t] >= best - TIE]
            task = min(tied, key=lambda t: (per_site[attempts.site[t]], success[t], t))
            selected.append(task)
            per_site[attempts.site[task]] += 1
            left.remove(task)
    return HardSubset(np.array(selected, dtype=np.int64), hardness, success, very_easy)
