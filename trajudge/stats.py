"""Statistics for judges of trajectories: numpy in, numpy out, tasks as clusters.

Only what covers where runs of a task depend on each other is exported: rates and their differences
over tasks, McNemar's test by task, hierarchical intervals of suites. ``trajudge.eval.stats`` holds
the rest; every function there names its source.
"""

from __future__ import annotations

from trajudge.eval.stats.intervals.cluster_bootstrap import cluster_bootstrap
from trajudge.eval.stats.intervals.clustered_differences import differences_by_cluster
from trajudge.eval.stats.intervals.clustered_rates import rates_by_cluster
from trajudge.eval.stats.judging.agreement import krippendorff_alpha
from trajudge.eval.stats.judging.comparison import TaskRuns, holm, mcnemar_by_task
from trajudge.eval.stats.judging.prediction_powered import powered_rate
from trajudge.eval.stats.suites.hierarchical import hierarchical_bootstrap
from trajudge.eval.stats.suites.profiles import performance_profile
from trajudge.eval.stats.suites.tree import interquartile_mean, tree_from_rollouts

__all__ = [
    "TaskRuns",
    "cluster_bootstrap",
    "differences_by_cluster",
    "hierarchical_bootstrap",
    "holm",
    "interquartile_mean",
    "krippendorff_alpha",
    "mcnemar_by_task",
    "performance_profile",
    "powered_rate",
    "rates_by_cluster",
    "tree_from_rollouts",
]
