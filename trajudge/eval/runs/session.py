"""One session of a run: jobs in, judgments into the journal, tables out."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from trajudge.annotations import frame_of
from trajudge.eval.runs.jobs import (
    Interrupted,
    JudgmentJob,
    LoadReport,
    StopSignal,
    first_samples_ahead,
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
from trajudge.eval.runs.plan import PlannedRun
from trajudge.eval.runs.progress import RunProgress, telling
from trajudge.eval.scoring.usage import paid_beside
from trajudge.eval.store.labels import RewardColumns, Rewards
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
from trajudge.eval.store.table import PAYMENTS, RunJudgments
from trajudge.eval.store.task_goals import write_goals
from trajudge.judges.engine import Payments
from trajudge.judges.engine.budget import read_payments
from trajudge.judges.judging import NoModel, RecordedClient, judge_trajectory
from trajudge.judges.model import Judgment
from trajudge.trajectories.model import TrajectoryKey, Unreadable
from trajudge.trajectories.tokens import counting_for, encoding_of
from trajudge.util.commands import FAILURES, INTERRUPTED, OK

if TYPE_CHECKING:
    from trajudge.eval.runs.plan import RunPlan
    from trajudge.eval.scoring.records import ScoreReport
    from trajudge.judges.calls.handle import ModelHandle
    from trajudge.judges.engine import EngineLookup, Engines, Payments
    from trajudge.stats.intervals import Bools

log = logging.getLogger(__name__)

Jobs = Iterator[JudgmentJob] | AsyncIterator[Sequence[Any]]
"""Jobs, or lists of those that other processes do, with the same ``key`` and ``sample``."""

NONE: frozenset[str] = frozenset()
MOST_AHEAD = 64  # trajectories in memory whose other samples are still to come


class SessionWork(NamedTuple):
    """What a session has to judge: the ``journal`` to write to, the ``jobs`` that are left, the
    requests to ask again by judgment, and how many judgments were there ``before``, of which
    ``failed_before`` failed and are not asked for again."""

    journal: JudgmentJournal
    jobs: Jobs
    refresh: Mapping[tuple[TrajectoryKey, int], frozenset[str]]
    before: int
    failed_before: int


class RunResult(NamedTuple):
    """What a run, as ``planned``, has come to: its exit code, what it is scored from, and what to
    tell the user: ``warnings`` of the data and the judgments, ``notes`` on where the run stands.
    ``spent`` is nothing where dollars are not limited."""

    planned: PlannedRun
    code: int
    judgments: RunJudgments
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

    def __init__(
        self, planned: PlannedRun, elsewhere: Sequence[RunDollars], stop: StopSignal
    ) -> None:
        self.planned = planned
        self.plan = planned.plan
        self.model = planned.model
        self.elsewhere = elsewhere
        self.stop = stop
        self.report = LoadReport()
        self.is_limited = planned.calls.max_cost is not None
        self.spent = RunDollars({}, {})
        self.waiting: dict[str, float] = {}
        self.reserved: dict[str, float] = {}
        self.total = planned.total
        self.begun = time.time()

    async def execute(self) -> RunResult:
        """Judge, score, write the results.

        Raises UserError for a folder of another run or one that another process is at work in, an
        unreadable trajectory under ``--strict``, and what ends the run as a whole (no key, no
        server, a full disk). The journal keeps whatever was judged until then.
        """
        with locked_folder(self.plan.folder), run_log(self.plan.folder):
            return await self._execute()

    async def _execute(self) -> RunResult:
        judgments, rewards = await self._judged()
        beside = paid_beside(self.plan.folder / PAYMENTS, judgments.columns.calls, self.waiting)
        scores = await asyncio.to_thread(write_results, self.planned, judgments, rewards, beside)
        warnings = tuple(warnings_of(self.plan, self.report, judgments))
        notes = tuple(notes_of(self.planned, judgments, self.stop.reason))
        return RunResult(
            planned=self.planned,
            code=self._code(judgments),
            judgments=judgments,
            rewards=rewards,
            scores=scores,
            warnings=warnings,
            notes=notes,
            spent=self.spent,
        )

    async def _judged(self) -> tuple[RunJudgments, Rewards]:
        """Judge what is left, and write everything but the results."""
        plan = self.plan
        sent = merged(earlier_sent(plan.folder))
        open_folder(plan.folder, plan.manifest.model_copy(update={"sent": sent}))
        write_labels(plan.folder, plan.annotations, frame_of(plan.source.labels))
        write_unreadable(plan.folder, plan.unreadable)
        written = read_rewards(plan.folder) if (plan.folder / REWARDS).is_file() else None
        with JudgmentJournal(plan.folder) as journal:
            if written is not None:
                judged = journal.judgments().columns.keys
                self.report.earlier = without_unreached(written, judged)
            is_whole = False
            try:
                await self._judge(journal)
                is_whole = self.stop.reason is None
            finally:
                rewards = self._rewards()
                if not is_whole:
                    rewards = with_unreached(rewards, plan.keys, journal.judgments().columns.keys)
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
        planned, plan = self.planned, self.plan
        samples, retry_failed = planned.run.samples, planned.run.retry_failed
        strict, earlier = planned.data.strict, journal.judgments()
        done = jobs_done(
            plan.keys, samples, earlier.columns, retry_failed=retry_failed, strict=strict
        )
        jobs = self._jobs(done)
        if self.is_limited:
            self.spent = spent_in(plan.folder, earlier)
        failed = earlier.at(~earlier.columns.ok()) if retry_failed else ()
        refresh = {(j.key, j.sample): to_refresh(j) for j in failed}
        spent = dollars_in_all([*self.elsewhere, self.spent])
        payments = Payments(plan.folder / PAYMENTS)
        engines = None
        if self.model:
            engines = self._open_engines(self.model, spent, payments)
        with self.stop.heard_by(engines.stop if engines else None):
            try:
                before = int(done.sum())
                # Of those that ended well none is made again.
                fine = earlier.columns.ok() & (earlier.columns.sample < samples)
                work = SessionWork(journal, jobs, refresh, before, before - int(fine.sum()))
                await self._judge_with(engines, work)
            finally:
                if engines:
                    await engines.close()
                payments.close()
                if self.is_limited:
                    noted = in_all([read_payments(plan.folder / PAYMENTS), self.reserved])
                    self.spent = self.spent._replace(noted=noted)

    def _jobs(self, done: Bools) -> Jobs:
        """Return the jobs that are not done, (K, samples). Raises UserError as ``jobs_of``."""
        planned, samples = self.planned, self.planned.run.samples
        jobs = jobs_of(self.plan, samples, done, self.report, strict=planned.data.strict)
        if self.model and samples > 1:
            jobs = first_samples_ahead(jobs, min(planned.calls.concurrency, MOST_AHEAD))
        return jobs

    def _open_engines(self, model: ModelHandle, spent: float, payments: Payments) -> Engines:
        return model.open_engines(spent, payments, prompts_repeat=self.planned.run.samples > 1)

    async def _judge_with(self, engines: Engines | None, work: SessionWork) -> None:
        journal, jobs, refresh, before, failed_before = work
        plan, width = self.plan, self.planned.calls.concurrency
        if engines:  # whose limiter keeps to --concurrency
            width = workers_for(width)
        effective = EffectiveParameters(plan.folder, engines.sent) if engines else None
        if engines:  # without a model there is nothing to wait for, and no log
            log.info("%s: begun, %d of %d judged", plan.judge_id, before, self.total)
        with RunProgress(self.total, before, failed_before, name=plan.judge_id) as progress:

            def record(judgment: Judgment | None) -> None:
                if judgment is None:  # of a job that is given out again
                    return
                if effective:
                    effective.update()
                journal.add(judgment)
                progress.add(judgment)
                if self.is_limited:
                    self.spent.stated.update(paid([judgment]))

            async def judge_one(job: JudgmentJob) -> Judgment | None:
                asked_again = refresh.get((job.key, job.sample), NONE) if refresh else NONE
                return await self._judge_one(job, engines, asked_again)

            counting = counting_for(encoding_of(self.model.model) if self.model else None)
            async with telling(progress, engines.waits if engines else None):
                with counting:  # the tasks that are begun inside do, too
                    await judge_all(jobs, judge_one, width=width, record=record, stop=self.stop)
        if engines:
            log.info("%s", progress.line())

    async def _judge_one(
        self, job: JudgmentJob, engines: EngineLookup | None, refresh: frozenset[str]
    ) -> Judgment | None:
        ask = None
        if self.model and engines:
            ask = self.model.ask(engines, job.draw, refresh=refresh, since=self.begun)
        return await judge_job(self.plan, job, ask)

    def _code(self, judgments: RunJudgments) -> int:
        if self.stop.reason is not None:
            return INTERRUPTED if isinstance(self.stop.reason, Interrupted) else FAILURES
        return FAILURES if are_too_many(failures(judgments), self.planned) else OK


async def judge_job(plan: RunPlan, job: JudgmentJob, ask: RecordedClient | None) -> Judgment:
    """Make one judgment; ``ask`` None: the judge asks no model."""
    if isinstance(job.item, Unreadable):
        return skipped(plan.judge_id, job.key, job.sample, job.item)
    judge_id, judge, needs = plan.judge_id, plan.judge, plan.needs
    return await judge_trajectory(
        judge_id, judge, job.item, ask or NoModel(), job.sample, needs=needs
    )
