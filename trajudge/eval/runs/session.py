"""One session of a run: jobs in, judgments into the journal, results out."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from trajudge.annotations import frame_of
from trajudge.eval.runs.jobs import (
    Interrupted,
    JudgmentJob,
    LoadReport,
    StopSignal,
    jobs_done,
    jobs_of,
    judge_all,
    skipped,
    to_refresh,
    with_unreached,
    without_unreached,
    workers_for,
)
from trajudge.eval.runs.outputs import (
    are_too_many,
    failures,
    notes_of,
    warnings_of,
    write_results,
)
from trajudge.eval.runs.plan import RunPlan
from trajudge.eval.runs.progress import RunProgress, telling
from trajudge.eval.scoring.records import ScoreReport
from trajudge.eval.scoring.usage import unattributed_cost
from trajudge.eval.store.labels import RewardColumns, Rewards, RunLabels
from trajudge.eval.store.manifest import EffectiveParameters, earlier_sent, merged, open_folder
from trajudge.eval.store.run_folder import (
    REWARDS,
    JudgmentJournal,
    RunDollars,
    dollars_in_all,
    in_all,
    locked_folder,
    paid,
    read_rewards,
    run_log,
    spent_in,
    write_labels,
    write_rewards,
    write_unreadable,
)
from trajudge.eval.store.table import PAYMENTS, JudgmentTable
from trajudge.eval.store.task_goals import write_goals
from trajudge.judges.calls.handle import ModelHandle
from trajudge.judges.engine.budget import Payments, read_payments
from trajudge.judges.engine.engine import Engine, Engines
from trajudge.judges.judging import NoModel, RecordedClient, judge_trajectory
from trajudge.judges.model import Judgment
from trajudge.trajectories.model import TrajectoryKey, Unreadable
from trajudge.trajectories.tokens import counting_for, encoding_of
from trajudge.util.commands import FAILURES, INTERRUPTED, OK
from trajudge.util.terminal import progress_bar

log = logging.getLogger(__name__)

Record = Callable[[Judgment], None]
Refresh = Mapping[tuple[TrajectoryKey, int], frozenset[str]]
"""Requests to ask again, by trajectory and sample."""

NONE: frozenset[str] = frozenset()


class RunResult(NamedTuple):
    """What a run, as ``plan``, has come to: its exit code, what it is scored from, and what to
    tell the user: ``warnings`` of the data and the judgments, ``notes`` on where the run stands.
    ``spent`` is nothing where dollars are not limited."""

    plan: RunPlan
    code: int
    judgments: JudgmentTable
    rewards: Rewards
    scores: ScoreReport
    warnings: tuple[str, ...]
    notes: tuple[str, ...]
    spent: RunDollars

    def __repr__(self) -> str:
        """Tell no more than where it stands: when a signal's handler is taken off, the standard
        library prints it, with its task and what the task returned."""
        return f"RunResult(code={self.code}, judgments={len(self.judgments)})"


class RunSession:
    """Judges what the run's folder does not hold yet, then scores all of it.

    ``elsewhere`` is what other runs of the same command have spent, and ``spent`` what this one
    has, where dollars are limited, else nothing; ``waiting`` what this one paid by request for
    replies whose judgments are still to come (nan: unknown), and ``reserved`` what it may have to
    pay for those that are still to come, likewise; ``stop`` ends it early. Signals are the
    caller's: a loop may be in any thread.
    """

    def __init__(self, plan: RunPlan, elsewhere: Sequence[RunDollars], stop: StopSignal) -> None:
        self.plan = plan
        self.model = plan.model
        self.elsewhere = elsewhere
        self.stop = stop
        self.report = LoadReport()
        self.is_limited = plan.calls.max_cost is not None
        self.spent = RunDollars({}, {})
        self.waiting: dict[str, float] = {}
        self.reserved: dict[str, float] = {}
        self.refresh: Refresh = {}
        self.total = plan.total
        self.begun = time.time()

    async def execute(self) -> RunResult:
        """Judge, score, write the results.

        Raises UserError for a folder of another run or one that another process is at work in, an
        unreadable trajectory under ``--strict``, and what ends the run as a whole (no key, no
        server, a full disk). The journal keeps whatever was judged until then.
        """
        if self.model:  # before there is a folder, which would hold no judgment
            self.model.check_prices()
        with locked_folder(self.plan.folder), run_log(self.plan.folder):
            return await self._execute()

    async def _execute(self) -> RunResult:
        judgments, rewards = await self._judged()
        unattributed = unattributed_cost(self.plan.folder / PAYMENTS, judgments.calls, self.waiting)
        with progress_bar("scoring"):
            scores = await asyncio.to_thread(
                write_results, self.plan, judgments, rewards, unattributed
            )
        warnings = tuple(warnings_of(self.plan, self.report, judgments))
        notes = tuple(notes_of(self.plan, judgments, self.stop.reason))
        return RunResult(
            plan=self.plan,
            code=self._code(judgments),
            judgments=judgments,
            rewards=rewards,
            scores=scores,
            warnings=warnings,
            notes=notes,
            spent=self.spent,
        )

    async def _judged(self) -> tuple[JudgmentTable, Rewards]:
        """Judge what is left, and write everything but the results."""
        plan = self.plan
        sent = merged(earlier_sent(plan.folder))
        open_folder(plan.folder, plan.manifest.model_copy(update={"sent": sent}))
        labels = plan.labels
        each = labels if isinstance(labels, RunLabels) else labels.values()
        write_labels(plan.folder, each, frame_of(plan.source.labels))
        write_unreadable(plan.folder, plan.unreadable)
        written = read_rewards(plan.folder) if (plan.folder / REWARDS).is_file() else None
        with JudgmentJournal(plan.folder) as journal:
            if written is not None:
                judged = journal.judgments().keys
                self.report.earlier = without_unreached(written, judged)
            is_whole = False
            try:
                await self._judge(journal)
                is_whole = self.stop.reason is None
            finally:
                rewards = self._rewards()
                if not is_whole:
                    rewards = with_unreached(rewards, plan.keys, journal.judgments().keys)
                if rewards is not written:
                    write_rewards(plan.folder, rewards)
                write_goals(plan.folder, *self.report.goals(plan.keys))
            return journal.finish(plan.keys), rewards

    def _rewards(self) -> Rewards:
        """Return the official rewards of all sessions: those from before, if there is no news."""
        earlier, read = self.report.earlier, self.report.rewards(self.plan.keys)
        if RewardColumns.of(earlier).hold(read.columns):  # no key is made where columns suffice
            return earlier
        return {**earlier, **read} if earlier else read

    async def _judge(self, journal: JudgmentJournal) -> None:
        plan = self.plan
        samples, retry_failed = plan.run.samples, plan.run.retry_failed
        earlier = journal.judgments()
        self.journal = journal
        self.done = jobs_done(plan, earlier)
        if self.is_limited:
            self.spent = spent_in(plan.folder, earlier)
        ok = earlier.ok()
        if retry_failed:
            self.refresh = {(j.key, j.sample): to_refresh(j) for j in earlier.at(~ok)}
        self.before = int(self.done.sum())
        # Of those that ended well none is made again.
        self.failed_before = self.before - int((ok & (earlier.sample < samples)).sum())
        payments = Payments(plan.folder / PAYMENTS)
        spent = dollars_in_all([*self.elsewhere, self.spent])
        engines = self._open_engines(self.model, spent, payments) if self.model else None
        with self.stop.heard_by(engines.stop if engines else None):
            try:
                await self._judge_with(engines)
            finally:
                if engines:
                    await engines.close()
                payments.close()
                if self.is_limited:
                    noted = in_all([read_payments(plan.folder / PAYMENTS), self.reserved])
                    self.spent = self.spent._replace(noted=noted)

    def _open_engines(self, model: ModelHandle, spent: float, payments: Payments) -> Engines:
        return model.open_engines(spent, payments, prompts_repeat=self.plan.run.samples > 1)

    async def _judge_with(self, engines: Engines | None) -> None:
        plan = self.plan
        effective = EffectiveParameters(plan.folder, engines.sent) if engines else None
        if engines:  # without a model there is nothing to wait for, and no log
            log.info("%s: begun, %d of %d judged", plan.judge_id, self.before, self.total)
        name = plan.judge_id
        counts = (self.total, self.before, self.failed_before)
        with RunProgress(*counts, name=name, remedy=remedy(plan.manifest.options)) as progress:

            def record(judgment: Judgment) -> None:
                if effective:
                    effective.update()
                self.journal.add(judgment)
                progress.add(judgment)
                if self.is_limited:
                    self.spent.stated.update(paid([judgment]))

            async with telling(progress, engines.waits if engines else None):
                await self._judge_all(record, engines)
        if engines:
            log.info("%s", progress.line())

    async def _judge_all(self, record: Record, engines: Engines | None) -> None:
        """Hand every judgment that is not done to ``record``. Raises UserError."""
        jobs, width = jobs_of(self.plan, self.done, self.report), self.plan.calls.concurrency
        judge_one = partial(self._judge_one, engines=engines)
        if engines:  # whose limiter keeps to --concurrency
            width = workers_for(width)
        # The tasks that are begun inside count by it, too.
        with counting_for(encoding_of(self.model.model) if self.model else None):
            await judge_all(jobs, judge_one, width=width, record=record, stop=self.stop)

    async def _judge_one(self, job: JudgmentJob, engines: Mapping[str, Engine] | None) -> Judgment:
        ask = None
        if self.model and engines:
            refresh = self.refresh.get((job.key, job.sample), NONE)
            ask = self.model.ask(engines, job.draw, refresh=refresh, since=self.begun)
        return await judge_job(self.plan, job, ask)

    def _code(self, judgments: JudgmentTable) -> int:
        if self.stop.reason is not None:
            return INTERRUPTED if isinstance(self.stop.reason, Interrupted) else FAILURES
        return FAILURES if are_too_many(failures(judgments), self.plan) else OK


def remedy(options: Mapping[str, Any]) -> str:
    """Say what to try where a model's answers cannot be read, by the options of its judge."""
    in_text = options.get("answer") in ("tags", "text") or not options.get("structured", True)
    if "answer" in options and in_text and options.get("prompts", "trajudge") == "trajudge":
        return "try --judge-option answer=schema, or another model"
    if not options.get("repair"):
        return "try --repair 1, --judge logprob, or another model"
    return "try --judge logprob, or another model"


async def judge_job(plan: RunPlan, job: JudgmentJob, ask: RecordedClient | None) -> Judgment:
    """Make one judgment; ``ask`` None: the judge asks no model."""
    if isinstance(job.item, Unreadable):
        return skipped(plan.judge_id, job.key, job.sample, job.item)
    judge_id, judge, needs = plan.judge_id, plan.judge, plan.needs
    return await judge_trajectory(
        judge_id, judge, job.item, ask or NoModel(), job.sample, needs=needs
    )
