"""What a run would cost: ``--dry-run`` prices every judgment, the question before a dear run a
sample of them."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from trajudge.eval.runs.jobs import JudgmentJob, LoadReport, jobs_of
from trajudge.eval.runs.plan import RunPlan
from trajudge.eval.runs.settings import BatchConfig, RunRequest
from trajudge.judges.calls.handle import ModelHandle, known_facts
from trajudge.judges.judging import judge_trajectory
from trajudge.judges.model import Call, Status, Usage
from trajudge.judges.models import guesses
from trajudge.trajectories.model import Trajectory
from trajudge.trajectories.tokens import counting_for, encoding_of
from trajudge.util.commands import OK
from trajudge.util.errors import UserError
from trajudge.util.tables import screen_width
from trajudge.util.terminal import count_of, hanging, one_line

ASK_ABOVE = 1.0
SAMPLED = 40
# How a judgment may end before a model is asked; how others end, only replies tell.
_KNOWN_BEFORE = (Status.CONTEXT_OVERFLOW, Status.SKIPPED)


class CostEstimate(NamedTuple):
    """``judgments`` would make ``calls`` for ``cost`` dollars (None: price not known);
    ``cached`` of the calls are answered already, or by an earlier one of them: a caption, key
    points of a task. In batches they take at most ``rounds``, one after the other. ``failing``
    says of which judgments nothing would come, once per status."""

    judgments: int
    calls: int
    cached: int
    usage: Usage
    cost: float | None
    rounds: int = 0
    failing: tuple[str, ...] = ()

    def times(self, judgments: int) -> CostEstimate:
        """Return the same for ``judgments`` of that kind; the usage stays that of the sample."""
        factor = judgments / self.judgments if self.judgments else 0.0
        cost = None if self.cost is None else self.cost * factor
        return CostEstimate(
            judgments,
            round(self.calls * factor),
            round(self.cached * factor),
            self.usage,
            cost,
            self.rounds,
            self.failing,
        )


async def dry_run(runs: Sequence[RunPlan], *, batch: BatchConfig | None = None) -> int:
    """Price every judgment of every run, each prompt rendered and counted, and print it; where
    ``batch`` is on also by the prices of batches."""
    asked: set[str] = set()
    rows = [(plan, await _price_all(plan, asked)) for plan in runs]
    for (plan, found), name in zip(rows, _distinct_names(runs), strict=True):
        sys.stdout.write(described(name, found, model=plan.config.model) + "\n")
    if batch and batch.is_on:
        sys.stdout.write(await _in_batches(runs, to_files=batch.batch_files is not None))
    asked_models = {
        name: handle for plan in runs if plan.model for name, handle in plan.model.handles.items()
    }
    sys.stderr.write("".join(f"{known_facts(handle)}\n" for handle in asked_models.values()))
    windows = {model: one for plan in runs for model, one in plan.manifest.windows.items()}
    sys.stderr.write("".join(f"warning: {one_line(said)}\n" for said in guesses(windows)))
    for plan, found in rows:
        for sentence in found.failing:
            sys.stderr.write(f"warning: {plan.judge_id}: {one_line(sentence)}\n")
    if len(rows) > 1:
        sys.stdout.write(f"total          {_money(_total([found for _, found in rows]))}\n")
    return OK


def _distinct_names(runs: Sequence[RunPlan]) -> list[str]:
    """Return the judges' names; what is drawn how often, where runs of one judge differ in it."""
    often = Counter(plan.judge_id for plan in runs)
    names = []
    for plan in runs:
        name, samples = plan.judge_id, plan.run.samples
        if often[name] > 1:
            name += f", {count_of(samples, 'draw')} at temperature {plan.calls.temperature:g}"
        names.append(name)
    return names


def is_unlimited(request: RunRequest, runs: Sequence[RunPlan]) -> bool:
    """Tell whether the runs may cost what nobody has agreed to: they ask models, without a
    limit."""
    agreed = request.calls.yes or request.calls.max_cost is not None
    return not agreed and any(plan.model is not None for plan in runs)


def may_spend(request: RunRequest, runs: Sequence[RunPlan]) -> bool:
    """Tell whether the runs may begin: after a question, where they could be dear and no limit was
    given."""
    return not is_unlimited(request, runs) or confirm(
        asyncio.run(predict(runs, batch=request.batch.is_on))
    )


async def predict(runs: Sequence[RunPlan], *, batch: bool = False) -> float | None:
    """Extrapolate the cost of all runs from a sample of each, by the prices of batches with
    ``batch``; None if a price is not known."""
    asked: set[str] = set()
    return _total([await _price_sample(plan, asked, batch=batch) for plan in runs])


async def _in_batches(runs: Sequence[RunPlan], *, to_files: bool) -> str:
    """Price the runs that ask a model in batches, and say how they go."""
    asked: set[str] = set()
    lines = ""
    head, end = "in batches", "of at most 24 hours each"
    if to_files:
        head, end = "in files  ", "of  vllm run-batch"
    for plan in (one for one in runs if one.model is not None):
        found = await _price_all(plan, asked, batch=True)
        rounds = count_of(found.rounds, "round")
        lines += f"  {head}    {_money(found.cost)}, at most {rounds} {end}\n"
    return lines


async def _price_all(plan: RunPlan, asked: set[str], *, batch: bool = False) -> CostEstimate:
    """Price every judgment. ``asked`` are the requests of the runs before, which the cache will
    answer; this run's are added."""
    if plan.model is None:
        return CostEstimate(len(plan.keys), 0, 0, Usage(), 0.0)
    done = np.zeros((len(plan.keys), plan.run.samples), dtype=bool)
    return await _price(plan.model, plan, jobs_of(plan, done, LoadReport()), asked, batch=batch)


async def _price_sample(plan: RunPlan, asked: set[str], *, batch: bool = False) -> CostEstimate:
    """Extrapolate from at most ``SAMPLED`` trajectories, drawn with the run's seed."""
    if plan.model is None:
        return await _price_all(plan, asked)
    rng = np.random.default_rng(plan.calls.seed)
    count = min(SAMPLED, len(plan.keys))
    drawn = rng.choice(len(plan.keys), size=count, replace=False)
    some = replace(plan, keys=plan.keys.at(np.sort(drawn)))
    done = np.ones((count, plan.run.samples), dtype=bool)
    done[:, 0] = False
    found = await _price(plan.model, some, jobs_of(some, done, LoadReport()), asked, batch=batch)
    return found.times(plan.total)


def _total(predictions: Sequence[CostEstimate]) -> float | None:
    costs = [found.cost for found in predictions if found.cost is not None]
    return sum(costs) if len(costs) == len(predictions) else None


def _money(cost: float | None) -> str:
    return "unknown, for the model's price is not" if cost is None else f"${cost:.4f}"


def described(
    judge: str, found: CostEstimate, what: str = "judgments", *, model: str | None = None
) -> str:
    """Describe a prediction, under the name of what would ask; ``what`` it would make, by which
    ``model``."""
    known = model is None or encoding_of(model) is not None
    how = "estimated" if known else f"a guess: the tokenizer of {model} is not public"
    facts = {
        what: str(found.judgments),
        "calls": f"{found.calls}, {found.cached} of them answered by the cache",
        "input tokens": f"{found.usage.input:,} ({how})",
        "output tokens": f"{found.usage.output:,} (assumed)",
        "cost": _money(found.cost),
    }
    width = screen_width()
    lines = hanging("", judge, width)
    for name, fact in facts.items():
        lines += hanging(f"  {name:<13} ", fact, width)
    return "\n".join(lines)


async def _price(
    model: ModelHandle,
    plan: RunPlan,
    jobs: Iterable[JudgmentJob],
    asked: set[str],
    *,
    batch: bool = False,
) -> CostEstimate:
    cache = model.open_cache()
    calls: list[Call] = []
    failed: dict[Status, list[str]] = {status: [] for status in _KNOWN_BEFORE}
    judged = rounds = 0
    try:
        for job in jobs:
            judged += 1
            if isinstance(job.item, Trajectory):
                ask = model.dry_ask(cache, job.draw, batch=batch)
                with counting_for(encoding_of(model.model)):
                    judgment = await judge_trajectory(
                        plan.judge_id, plan.judge, job.item, ask, job.sample, needs=plan.needs
                    )
                if judgment.status in failed:
                    failed[judgment.status].append(judgment.detail)
                calls += ask.calls
                rounds = max(rounds, sum(not call.cached for call in ask.calls))
    finally:
        cache.close()
    failing = tuple(
        f"{len(why)} of {judged} judgments would be {status}, the first because: {why[0]}"
        for status, why in failed.items()
        if why
    )
    return priced(judged, calls, asked)._replace(rounds=rounds, failing=failing)


def priced(judged: int, calls: Sequence[Call], asked: set[str]) -> CostEstimate:
    """Sum the calls of so many judgments; ``asked`` gains their requests."""
    new = {c.request: c for c in calls if not c.cached and c.request not in asked}
    asked.update(new)
    fresh = list(new.values())
    costs = [call.cost for call in fresh if call.cost is not None]
    cost = sum(costs) if len(costs) == len(fresh) else None
    usage = sum((call.usage for call in fresh if call.usage), Usage())
    return CostEstimate(judged, len(calls), len(calls) - len(fresh), usage, cost)


def confirm(cost: float | None) -> bool:
    """Ask whether to go on with runs of that price: dear ones are asked about on a terminal.

    Raises UserError where nobody can be asked.
    """
    if cost is None:
        sys.stderr.write("the price of a model is not known: its cost is not counted\n")
        return True
    if cost <= ASK_ABOVE:
        return True
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UserError(f"predicted to cost ${cost:.2f}: give --max-cost DOLLARS or --yes")
    sys.stderr.write(f"predicted to cost ${cost:.2f}; go on? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")
