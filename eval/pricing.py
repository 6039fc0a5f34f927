"""What a run would cost: ``--dry-run`` prices every judgment, the question before a dear run a
sample of them."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import islice
from typing import NamedTuple

import numpy as np

from eval.jobs import Job, Reading, jobs_of
from eval.model_side import ModelSide
from eval.plan import Plan
from judges.judging import judge_trajectory
from judges.model import Call, Usage
from trajectories.errors import UserError
from trajectories.model import Trajectory

ASK_ABOVE = 1.0
SAMPLED = 40


class Prediction(NamedTuple):
    """``judgments`` would make ``calls`` for ``cost`` dollars (None: price not known);
    ``cached`` of the calls are answered already."""

    judgments: int
    calls: int
    cached: int
    usage: Usage
    cost: float | None

    def times(self, judgments: int) -> Prediction:
        """The same for ``judgments`` of that kind; the usage stays that of the sample."""
        factor = judgments / self.judgments if self.judgments else 0.0
        cost = None if self.cost is None else self.cost * factor
        return Prediction(
            judgments, round(self.calls * factor), round(self.cached * factor), self.usage, cost
        )


def price_run(model: ModelSide, plan: Plan, samples: int, *, strict: bool) -> Prediction:
    """The prediction for every judgment of the run, each prompt rendered and counted."""
    jobs = jobs_of(plan, samples, (), Reading(), strict=strict)
    return asyncio.run(_price(model, plan, jobs))


def price_sample(model: ModelSide, plan: Plan, samples: int, seed: int) -> Prediction:
    """An extrapolation from at most ``SAMPLED`` trajectories, drawn with ``seed``."""
    rng = np.random.default_rng(seed)
    count = min(SAMPLED, len(plan.keys))
    drawn = {plan.keys[i] for i in rng.choice(len(plan.keys), size=count, replace=False)}
    some = plan.with_keys([key for key in plan.keys if key in drawn])
    jobs = jobs_of(some, 1, (), Reading(), strict=False)
    found = asyncio.run(_price(model, some, islice(jobs, count)))
    return found.times(len(plan.keys) * samples)


async def _price(model: ModelSide, plan: Plan, jobs: Iterable[Job]) -> Prediction:
    cache = model.open_cache()
    calls: list[Call] = []
    judged = 0
    try:
        for job in jobs:
            judged += 1
            if isinstance(job.item, Trajectory):
                ask = model.dry_ask(cache, job.sample)
                await judge_trajectory(plan.judge_id, plan.judge, job.item, ask, job.sample)
                calls += ask.calls
    finally:
        await cache.close()
    return _sum(judged, calls)


def _sum(judged: int, calls: Sequence[Call]) -> Prediction:
    fresh = [call for call in calls if not call.cached]
    costs = [call.cost for call in fresh if call.cost is not None]
    cost = sum(costs) if len(costs) == len(fresh) else None
    usage = sum((call.usage for call in fresh), Usage())
    return Prediction(judged, len(calls), len(calls) - len(fresh), usage, cost)


def confirm(prediction: Prediction, *, yes: bool, max_cost: float | None) -> bool:
    """Whether to go on with a run of that price: dear ones are asked about on a terminal.

    Raises UserError where nobody can be asked and neither ``--max-cost`` nor ``--yes`` is given.
    """
    cost = prediction.cost
    if cost is None:
        sys.stderr.write("the price of this model is not known: the cost is not counted\n")
        return True
    if cost <= ASK_ABOVE or yes or max_cost is not None:
        return True
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UserError(
            f"this run is predicted to cost ${cost:.2f}: give --max-cost DOLLARS or --yes"
        )
    sys.stderr.write(f"this run is predicted to cost ${cost:.2f}; go on? [y/N] ")
    sys.stderr.flush()
    with suppress(EOFError):
        return sys.stdin.readline().strip().lower() in ("y", "yes")
    return False
