"""The suite mean's interval without resampling: scenarios as clusters, or rollouts alone.

Scenario means already carry the noise of configurations and rollouts, so their spread within
each app is all that is needed. The degrees of freedom are Satterthwaite's (1946). In the
simulation of Statistical Precipice, section 21.2, this covers as the full bootstrap does.
"""

from __future__ import annotations

import numpy as np

from trajudge.eval.stats.interval import Floats, Interval, normal_quantile, t_quantile
from trajudge.eval.stats.suites.hierarchical import ONE_ROLLOUT, ONE_SCENARIO, Estimand
from trajudge.eval.stats.suites.tree import Tree, app_rates, scenario_rates


def cluster_t_interval(
    tree: Tree, confidence: float = 0.95, estimand: Estimand = "new_scenarios"
) -> Interval:
    """Interval of the mean over apps of nested app rates, shape (1,).

    Undefined, with the reason, where an app has one scenario (``new_scenarios``) or a cell one
    rollout (``these_scenarios``).
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
