"""Made-up evidence whose truth is known: tasks that differ, judges whose precision is set."""

from __future__ import annotations

import numpy as np

from trajudge.eval.select.evidence import SelectionData
from trajudge.eval.select.plan import CandidateFamily, SelectionPlan, Target
from trajudge.eval.select.scores import Rule
from trajudge.stats.intervals import Bools


def evidence(
    success: object,
    accepted: object,
    *,
    task: object = None,
    benchmark: object = None,
    judged: object = None,
    price: float | None = 0.0,
) -> SelectionData:
    """From lists: ``accepted`` (N, L); one task a trajectory and one benchmark by default."""
    truth = np.asarray(success, dtype=bool)
    says = np.asarray(accepted, dtype=bool).reshape(len(truth), -1)
    has = np.ones_like(says) if judged is None else np.asarray(judged, dtype=bool)
    return SelectionData(
        success=truth,
        task=np.arange(len(truth)) if task is None else np.asarray(task),
        benchmark=np.asarray(["webarena"] * len(truth) if benchmark is None else benchmark),
        judged=has.reshape(says.shape),
        accepted=says,
        prices=(price,) * says.shape[1],
    )


def plan(*thresholds: tuple[float, ...], rate: float = 0.8, **fields: object) -> SelectionPlan:
    """A family ``judge 1``, ``judge 2``, ... for each tuple of thresholds."""
    families = tuple(
        CandidateFamily(name=f"judge {n}", rule=Rule(judges=(f"judge {n}",)), thresholds=given)
        for n, given in enumerate(thresholds, start=1)
    )
    target = fields.pop("target", Target(rate=rate))
    return SelectionPlan.model_validate({"target": target, "families": families, **fields})


def clustered(
    rng: np.random.Generator, precision: float, *, tasks: int, each: int, correlation: float
) -> tuple[Bools, Bools, np.ndarray[tuple[int], np.dtype[np.int64]]]:
    """Success and acceptance (N,) by task (N,): every trajectory is accepted with probability one
    half, and those that are succeed with probability ``precision``, all of a task together with
    probability ``correlation``."""
    task = np.repeat(np.arange(tasks), each)
    shared = (rng.random(tasks) < precision)[task]
    own = rng.random(tasks * each) < precision
    together = (rng.random(tasks) < correlation)[task]
    accepted = rng.random(tasks * each) < 0.5
    return np.where(together, shared, own), accepted, task
