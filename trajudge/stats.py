"""Statistics for judges of trajectories: numpy in, numpy out, tasks as clusters.

``trajudge.eval.stats`` holds the rest; every function there names its source.
"""

from __future__ import annotations

from trajudge.eval.stats.intervals.binomial import wilson
from trajudge.eval.stats.intervals.cluster_bootstrap import cluster_bootstrap
from trajudge.eval.stats.intervals.clustered_rates import rates_by_cluster
from trajudge.eval.stats.judging.agreement import krippendorff_alpha
from trajudge.eval.stats.judging.comparison import holm, mcnemar
from trajudge.eval.stats.judging.prediction_powered import powered_rate
from trajudge.eval.stats.suites.profiles import performance_profile

__all__ = [
    "cluster_bootstrap",
    "holm",
    "krippendorff_alpha",
    "mcnemar",
    "performance_profile",
    "powered_rate",
    "rates_by_cluster",
    "wilson",
]
