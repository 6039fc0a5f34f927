"""Statistics for judges of trajectories: numpy in, numpy out, tasks as clusters.

The names below are for runs of a task that depend on each other (rates and their differences over
tasks, McNemar's test by task, hierarchical intervals of suites) and for the difficulty of tasks.
Each is imported on first use; the modules have further functions. Every function names its source,
randomness comes only from a ``numpy.random.Generator`` argument, and results depend neither on the
number of threads nor on the block size.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trajudge.stats.agreement import krippendorff_alpha
    from trajudge.stats.comparison import TaskRuns, holm, mcnemar_by_task, powered_rate
    from trajudge.stats.difficulty import attempts, fit_hazard, select_hard, validate_subset
    from trajudge.stats.intervals import (
        cluster_bootstrap,
        differences_by_cluster,
        rates_by_cluster,
    )
    from trajudge.stats.suites import (
        hierarchical_bootstrap,
        interquartile_mean,
        performance_profile,
        tree_from_rollouts,
    )

_HOMES = {
    "TaskRuns": "comparison",
    "attempts": "difficulty",
    "cluster_bootstrap": "intervals",
    "differences_by_cluster": "intervals",
    "fit_hazard": "difficulty",
    "hierarchical_bootstrap": "suites",
    "holm": "comparison",
    "interquartile_mean": "suites",
    "krippendorff_alpha": "agreement",
    "mcnemar_by_task": "comparison",
    "performance_profile": "suites",
    "powered_rate": "comparison",
    "rates_by_cluster": "intervals",
    "select_hard": "difficulty",
    "tree_from_rollouts": "suites",
    "validate_subset": "difficulty",
}

__all__ = [
    "TaskRuns",
    "attempts",
    "cluster_bootstrap",
    "differences_by_cluster",
    "fit_hazard",
    "hierarchical_bootstrap",
    "holm",
    "interquartile_mean",
    "krippendorff_alpha",
    "mcnemar_by_task",
    "performance_profile",
    "powered_rate",
    "rates_by_cluster",
    "select_hard",
    "tree_from_rollouts",
    "validate_subset",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'trajudge.stats' has no attribute {name!r}")
    value = getattr(import_module(f"trajudge.stats.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
