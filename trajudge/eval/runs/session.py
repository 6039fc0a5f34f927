"""Sessions of runs: jobs in, judgments into the journal, tables out; the runs of a command one
after the other within one budget, scored beside each other."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from typing import NamedTuple

from trajudge.annotations import frame_of
from trajudge.eval.runs.jobs import (
    Interrupted,
    JudgmentJob,
    LoadReport,
    StopSignal,
    graceful_interrupt,
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
    missing_policy,
    notes_of,
    warnings_of,
    write_results,
)
from trajudge.eval.runs.plan import RunPlan, labels_of_runs
from trajudge.eval.runs.progress import RunProgress, telling
from trajudge.eval.runs.settings import RunRequest
from trajudge.eval.scoring.compute import paid_beside, paid_in_all, score
from trajudge.eval.scoring.records import ScoreReport
from trajudge.eval.sources import known_rewards, names_apart
from trajudge.eval.store.labels import RewardColumns, Rewards
from trajudge.eval.store.manifest import EffectiveParameters, earlier_sent, merged, open_folder
from trajudge.eval.store.run_folder import (
    CALLS,
    JUDGMENTS,
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
from trajudge.eval.store.table import PAYMENTS, RunJudgments, read_run_judgments
from trajudge.eval.store.task_goals import write_goals
from trajudge.judges.batch.ledger import Ledger, ledger_path
from trajudge.judges.calls.handle import ModelHandle, cache_path
from trajudge.judges.engine import Engine, Engines, Payments
from trajudge.judges.engine.budget import read_payments
from trajudge.judges.judging import NoModel, RecordedClient, judge_trajectory
from trajudge.judges.model import Judgment
from trajudge.trajectories.model import TrajectoryKey, Unreadable
from trajudge.trajectories.tokens import counting_for, encoding_of
from trajudge.util.commands import FAILURES, INTERRUPTED, OK
from trajudge.util.errors import UserError

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
        with locked_folder(self.plan.folder), run_log(self.plan.folder):
            return await self._execute()

    async def _execute(self) -> RunResult:
        judgments, rewards = await self._judged()
        beside = paid_beside(self.plan.folder / PAYMENTS, judgments.columns.calls, self.waiting)
        scores = await asyncio.to_thread(write_results, self.plan, judgments, rewards, beside)
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
        plan = self.plan
        samples, retry_failed = plan.run.samples, plan.run.retry_failed
        earlier = journal.judgments()
        self.journal = journal
        self.done = jobs_done(plan, earlier.columns)
        if self.is_limited:
            self.spent = spent_in(plan.folder, earlier)
        ok = earlier.columns.ok()
        if retry_failed:
            self.refresh = {(j.key, j.sample): to_refresh(j) for j in earlier.at(~ok)}
        self.before = int(self.done.sum())
        # Of those that ended well none is made again.
        self.failed_before = self.before - int((ok & (earlier.columns.sample < samples)).sum())
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
        with RunProgress(self.total, self.before, self.failed_before, name=name) as progress:

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

    def _code(self, judgments: RunJudgments) -> int:
        if self.stop.reason is not None:
            return INTERRUPTED if isinstance(self.stop.reason, Interrupted) else FAILURES
        return FAILURES if are_too_many(failures(judgments), self.plan) else OK


async def judge_job(plan: RunPlan, job: JudgmentJob, ask: RecordedClient | None) -> Judgment:
    """Make one judgment; ``ask`` None: the judge asks no model."""
    if isinstance(job.item, Unreadable):
        return skipped(plan.judge_id, job.key, job.sample, job.item)
    judge_id, judge, needs = plan.judge_id, plan.judge, plan.needs
    return await judge_trajectory(
        judge_id, judge, job.item, ask or NoModel(), job.sample, needs=needs
    )


class RunsFailed(UserError):
    """What ended some of several runs, each ``failed`` one by its judge; ``results`` are those of
    the others."""

    def __init__(
        self, failed: Sequence[tuple[str, UserError]], of: int, results: list[RunResult]
    ) -> None:
        self.results = results
        judges: dict[str, list[str]] = {}
        for judge, error in failed:
            judges.setdefault(str(error), []).append(judge)
        said = "; ".join(f"{', '.join(names)}: {why}" for why, names in judges.items())
        super().__init__(f"{len(failed)} of {of} runs failed: {said}")


SessionOpening = Callable[[RunPlan, Sequence[RunDollars], StopSignal], "RunSession"]


def session_opening(request: RunRequest) -> AbstractContextManager[SessionOpening | None]:
    """Return what makes the sessions of a request's runs while it is entered; None: sessions that
    ask live, in this process. Raises UserError where Ray cannot be reached."""
    if request.run.ray:
        from trajudge.eval.runs.ray import ray_sessions  # noqa: PLC0415 - an extra

        return ray_sessions(request.run.ray)
    if not request.batch.is_on:
        return nullcontext()
    from trajudge.eval.runs.batches import BatchSession  # noqa: PLC0415 - live runs need none

    return nullcontext(partial(BatchSession, config=request.batch))


async def run_all(
    runs: Sequence[RunPlan], stop: StopSignal, opening: SessionOpening | None = None
) -> list[RunResult]:
    """Execute the runs one after the other, within one budget, until ``stop`` is interrupted;
    ``opening`` makes their sessions. Raises UserError as ``RunSession.execute``; of several runs
    RunsFailed at the end: what ends one is mostly its judge's or its model's own. Where the user
    interrupts, a note of the last result names what failed."""
    results: list[RunResult] = []
    failed: list[tuple[str, UserError]] = []
    spent = [_spent_before(plan) for plan in runs] if len(runs) > 1 else [RunDollars({}, {})]
    for place, plan in enumerate(runs):
        elsewhere = [*spent[:place], *spent[place + 1 :]]
        session = (opening or RunSession)(plan, elsewhere, stop)
        session.spent = spent[place]
        try:
            results.append(await session.execute())
        except UserError as error:
            if len(runs) == 1:
                raise
            failed.append((plan.judge_id, error))
        spent[place] = session.spent
        stop.forget_run()
        if stop.reason is not None:
            break
    if failed:
        ended = RunsFailed(failed, len(runs), results)
        if stop.reason is None or not results:
            raise ended
        # A loop of the user's shell ends at the code of Ctrl-C alone.
        results[-1] = results[-1]._replace(notes=(*results[-1].notes, str(ended)))
    return results


def _spent_before(plan: RunPlan) -> RunDollars:
    """Read what earlier sessions of a run have spent, or reserved in batches, where dollars are
    limited."""
    if plan.calls.max_cost is None:
        return RunDollars({}, {})
    folder = plan.folder
    judgments: Sequence[Judgment] = ()
    with suppress(UserError):  # which the run itself tells
        if (folder / JUDGMENTS).is_file():
            judgments = read_run_judgments(folder / JUDGMENTS, folder / CALLS)
    spent = spent_in(folder, judgments)
    path = ledger_path(cache_path(plan.calls.cache))
    if not path.is_file():
        return spent
    ledger = Ledger(path)
    try:
        reserved = ledger.reserved(str(folder.resolve()))
    finally:
        ledger.close()
    return spent._replace(noted=in_all([spent.noted, reserved]))


async def run_until_interrupted(
    runs: Sequence[RunPlan], opening: SessionOpening | None = None
) -> list[RunResult]:
    """Execute the runs as ``run_all`` does; Ctrl-C and SIGTERM end them early."""
    stop = StopSignal()
    with graceful_interrupt(stop):
        return await run_all(runs, stop, opening)


def scores_of_all(runs: Sequence[RunPlan], results: Sequence[RunResult]) -> ScoreReport:
    """Score the runs beside each other; those of a single run are known already. Judges of one
    name, as two files may have, are told apart by their folders."""
    if len(results) == 1:
        return results[0].scores.model_copy(update={"label_policy": ""})
    plans = [result.plan for result in results]
    renamed = names_apart([(str(plan.folder), [plan.judge_id]) for plan in plans])
    *others, last = [
        result.judgments.renamed(names) for result, names in zip(results, renamed, strict=True)
    ]
    rewards = known_rewards([result.rewards for result in results])
    labels = labels_of_runs(runs)
    missing = missing_policy(runs[0].run.protocol)
    training = {
        names[judge]: keys
        for plan, names in zip(plans, renamed, strict=True)
        for judge, keys in plan.training.items()
    }
    scores = score(last.behind(others), labels, rewards=rewards, missing=missing, training=training)
    more = {
        "beside": paid_in_all(result.scores.beside for result in results),
        "unfinished": tuple(
            run.model_copy(update={"judge": names[run.judge]})
            for result, names in zip(results, renamed, strict=True)
            for run in result.scores.unfinished
        ),
    }
    return scores.model_copy(update=more)
