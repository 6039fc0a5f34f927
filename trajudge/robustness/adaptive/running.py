"""The adaptive attacker against the judge of a run, through the run's engine."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from pydantic_core import to_json

from trajudge.eval.runs.jobs import run_interruptible
from trajudge.eval.runs.plan import RunPlan
from trajudge.eval.sources import read_last_judgments
from trajudge.judges.judging import NoModel, RecordedClient, judge_trajectory
from trajudge.judges.model import Judgment
from trajudge.robustness.adaptive.attack import arsenal, attack
from trajudge.robustness.adaptive.bandit import ThompsonBandit
from trajudge.robustness.measures.adaptive import AdaptiveSuccess, Query, adaptive_success
from trajudge.robustness.measures.pairs import verdicts_of
from trajudge.robustness.sources import Subjects
from trajudge.trajectories.model import Trajectory
from trajudge.trajectories.tokens import counting_for, encoding_of
from trajudge.util.files import replacing

QUERIES_FILE = "adaptive.jsonl"


def attacked_adaptively(
    planned: RunPlan, subjects: Subjects, queries: int, seed: int, spent: float = 0.0
) -> AdaptiveSuccess | None:
    """Attack every failure that the run's judge rejected, write the queries beside its judgments
    and summarise them; None if it rejected none. ``spent`` dollars went to the run.

    Raises UserError for what ends a run, BudgetSpent where ``--max-cost`` is reached.
    """
    verdicts = verdicts_of(read_last_judgments(planned.folder)[0])
    rejected = [
        one
        for one in subjects.trajectories
        if subjects.facts[one.key].success is False
        and one.key in verdicts
        and verdicts[one.key].success is False
    ]
    if not rejected:
        return None
    log = run_interruptible(
        _attack(planned, subjects, rejected, queries=queries, seed=seed, spent=spent)
    )
    _write(planned.folder / QUERIES_FILE, log)
    within = sorted({1, min(5, queries), queries})
    return adaptive_success([one.key for one in rejected], log, within)


async def _attack(
    planned: RunPlan,
    subjects: Subjects,
    rejected: Sequence[Trajectory],
    *,
    queries: int,
    seed: int,
    spent: float,
) -> list[Query]:
    plan, model = planned, planned.model
    arms = arsenal()
    engines = model.open_engines(spent) if model else None
    # A limit of calls at once is the engine's; judges without a model are asked as they come.
    gate = asyncio.Semaphore(planned.calls.concurrency)

    async def ask(trajectory: Trajectory) -> Judgment:
        client: RecordedClient = NoModel()
        if model and engines:
            client = model.ask(engines, 0, refresh=())
        async with gate:
            with counting_for(encoding_of(model.model) if model else None):
                return await judge_trajectory(
                    plan.judge_id, plan.judge, trajectory, client, 0, needs=plan.needs
                )

    try:
        log = await attack(
            rejected,
            subjects.facts,
            ask,
            ThompsonBandit(list(arms)),
            list(arms.values()),
            queries=queries,
            seed=seed,
        )
    finally:
        if engines:
            await engines.close()
    return log


def _write(path: Path, log: Sequence[Query]) -> None:
    with replacing(path) as lines:
        lines.writelines(to_json(one._asdict()) + b"\n" for one in log)
