"""Baselines that read no page: what a judge has to beat before it can be said to read one.

``trivial_baselines`` judges labelled runs by them, ``with_baselines`` puts them into a report.
"""

from trajudge.eval.baselines.trivial import BASELINES, TrivialBaselines, trivial_baselines

__all__ = ["BASELINES", "TrivialBaselines", "trivial_baselines"]
