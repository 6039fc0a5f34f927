"""Runs whose calls go through a provider's batch interface: a session of rounds, what batches
cost, and what becomes of those that were submitted (``trajudge run batch``).
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache, partial
from math import ceil, nan
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, Literal

from pydantic import ValidationError

from trajudge.eval.runs.jobs import (
    JudgmentJob,
    LoadReport,
    StopSignal,
    Waiting,
    jobs_done,
    jobs_of,
    judge_all,
    workers_for,
)
from trajudge.eval.runs.plan import PlannedRun
from trajudge.eval.runs.progress import RunProgress, telling
from trajudge.eval.runs.session import Jobs, RunSession, SessionWork
from trajudge.eval.runs.settings import BatchConfig
from trajudge.eval.store.manifest import EffectiveParameters
from trajudge.eval.store.run_folder import MANIFEST, RunDollars, dollars_in_all, read_manifest
from trajudge.eval.store.table import PAYMENTS
from trajudge.judges.adapters.errors import CallFailed
from trajudge.judges.adapters.provider import ProviderAdapter
from trajudge.judges.adapters.routing import make_adapter
from trajudge.judges.batch.collection import BatchCollection
from trajudge.judges.batch.engine import BatchCollector, CollectingEngines, until_parked
from trajudge.judges.batch.file_batches import output_of
from trajudge.judges.batch.ledger import Ledger, LineCounts, ledger_path
from trajudge.judges.batch.limits import BatchTimes, batch_limits, batch_times, read_batch_options
from trajudge.judges.batch.records import BatchRow
from trajudge.judges.batch.rounds import BatchDesk
from trajudge.judges.batch.service import BatchService
from trajudge.judges.batch.services import batch_service, batching
from trajudge.judges.calls.handle import cache_path
from trajudge.judges.engine import Cache
from trajudge.judges.engine.budget import BudgetSpent, Payments, dollars_by_request, read_attempts
from trajudge.judges.model import Judgment, Usage
from trajudge.judges.models import KnownPrice, Price, listed_price
from trajudge.trajectories.model import Record
from trajudge.util.errors import UserError
from trajudge.util.terminal import count_of

if TYPE_CHECKING:
    from trajudge.judges.calls.handle import ModelHandle
    from trajudge.judges.engine import Engines


def note_payments(ledger: Ledger, run: str) -> dict[str, float]:
    """Note what the batches of a run have cost, as far as its folder does not hold it yet; nothing
    where the folder is gone. Return all dollars that the folder holds, by request. Raises
    UserError."""
    path = Path(run) / PAYMENTS
    if not path.parent.is_dir():
        return {}
    attempts = read_attempts(path)
    payments = Payments(path)
    try:
        for line in ledger.paid(run):
            if line.attempt not in attempts:
                payments.note(line.attempt, line.request, line.dollars)
                attempts[line.attempt] = line.request, line.dollars
    finally:
        payments.close()
    return dollars_by_request(attempts)


class RunPrices:
    """Prices of runs by their folders, each manifest read once. Where a folder is gone, or an
    earlier release made it, the prices of the table hold if its own did."""

    def __init__(self) -> None:
        self._price = cache(_recorded)

    def dollars(self, row: BatchRow, usage: Usage) -> float | None:
        """Return the dollars of a line of a batch, None if its run knows no price. Raises UserError
        for a manifest that cannot be read."""
        price = self._price(row.run, row.model)
        return None if price is None else (price.batch or price).cost(usage)


def _recorded(run: str, model: str) -> Price | None:
    prices = _prices(Path(run))
    if model not in prices:
        return listed_price(model).price
    try:
        recorded = KnownPrice.model_validate(prices[model])
    except ValidationError as error:
        raise UserError(
            f"{Path(run) / MANIFEST}: the price of {model} cannot be read: start the run's own "
            "command again, which writes it anew"
        ) from error
    if recorded.price is None and recorded.source == "table":
        return listed_price(model).price
    return recorded.price


def _prices(folder: Path) -> Mapping[str, Any]:
    if not (folder / MANIFEST).is_file():
        return {}
    prices = read_manifest(folder).get("prices")
    return prices if isinstance(prices, dict) else {}


LIVE_SHARE = 0.01  # of a run's requests that --batch-fallback live asks singly


class BatchSession(RunSession):
    """Judges as ``RunSession`` does, its calls in batches. ``config`` says how."""

    def __init__(
        self,
        planned: PlannedRun,
        elsewhere: Sequence[RunDollars],
        stop: StopSignal,
        config: BatchConfig,
    ) -> None:
        super().__init__(planned, elsewhere, stop)
        self.config = config
        self._run = str(self.plan.folder.resolve())

    async def _judge_with(self, engines: Engines | None, work: SessionWork) -> None:
        if engines is None or self.model is None:
            return await super()._judge_with(engines, work)
        ledger = Ledger(ledger_path(engines.cache.path))
        interrupted = asyncio.Event()
        try:
            desk = make_desk(self.model, engines, ledger, self.config)
            with self.stop.heard_by(lambda _: interrupted.set()):
                rounds = _Rounds(self, desk, work, engines=engines, interrupted=interrupted)
                await rounds.run(work)
        finally:
            note_payments(ledger, self._run)
            paid = ledger.paid(self._run)
            # The last answer to a request is kept.
            self.waiting = {line.request: _known(line.dollars) for line in paid if line.is_answered}
            self.reserved = ledger.reserved(self._run)
            ledger.close()

    def make_collector(self, desk: BatchDesk) -> BatchCollector:
        """Make the collector of the run's requests."""
        options = read_batch_options(self.config.batch_options)
        limits = {place: batch_limits(one.name, options) for place, one in desk.services.items()}
        return BatchCollector(desk.services, limits, self._dollars, self.planned.calls.max_cost)

    def spent_so_far(self, ledger: Ledger) -> float:
        """Note what batches have cost; return the dollars spent, and reserved for open lines."""
        self.spent = self.spent._replace(noted=note_payments(ledger, self._run))
        spent = dollars_in_all([*self.elsewhere, self.spent])
        return spent + sum(ledger.reserved(self._run).values())

    @property
    def run_name(self) -> str:
        """The run, as the ledger names it."""
        return self._run

    def _dollars(self, name: str, usage: Usage) -> float:
        return (self.model and _price(self.model, name, usage)) or 0.0


def make_desk(
    model: ModelHandle, engines: Engines, ledger: Ledger, config: BatchConfig
) -> BatchDesk:
    """Make what handles the batches of a run's models. Raises UserError for a model that has no
    batch interface."""
    adapters = {(h.adapter.endpoint, name): h.adapter for name, h in model.handles.items()}
    services = {
        place: batch_service(adapter, place[1], config.batch_files)
        for place, adapter in adapters.items()
    }
    options = read_batch_options(config.batch_options)
    bodies = {place: batching(adapter, place[1]) for place, adapter in adapters.items()}
    times = batch_times(options)
    return BatchDesk(ledger, engines.cache, services, bodies, RunPrices().dollars, times)


class _Rounds:
    """The rounds of one session."""

    def __init__(
        self,
        session: BatchSession,
        desk: BatchDesk,
        work: SessionWork,
        *,
        engines: Engines,
        interrupted: asyncio.Event,
    ) -> None:
        self.session, self.desk, self.journal = session, desk, work.journal
        self.refresh, self.interrupted = work.refresh, interrupted
        self.collector = session.make_collector(desk)
        plan, run = session.plan, session.planned.run
        models = [model for _, model in desk.services]
        self.engines = CollectingEngines(engines, models, self.collector)
        self.effective = EffectiveParameters(plan.folder, engines.sent)
        earlier = work.journal.judgments().columns
        self.done = jobs_done(
            plan.keys,
            run.samples,
            earlier,
            retry_failed=run.retry_failed,
            strict=session.planned.data.strict,
        )
        self.row = {key: place for place, key in enumerate(plan.keys)}
        self.asked: set[str] = set()
        self.budget = engines[models[0]].budget if session.is_limited else None

    async def run(self, work: SessionWork) -> None:
        """Judge everything, or until the run stops. Raises UserError."""
        session, desk, jobs = self.session, self.desk, work.jobs
        before, failed_before = work.before, work.failed_before
        name = session.plan.judge_id
        with RunProgress(session.total, before, failed_before, name=name) as progress:
            async with telling(progress, lambda: desk.progress):
                self._note(await desk.look())
                while True:
                    await self._judge(jobs, progress)
                    if session.stop.reason is not None or not await self._submit():
                        return
                    self._note(await desk.wait(self._pause, self.interrupted.is_set))
                    if session.stop.reason is not None:
                        return
                    jobs = self._jobs_left()

    async def _judge(self, jobs: Jobs, progress: RunProgress) -> None:
        """Make every judgment that is left, as far as its replies are there."""
        session = self.session
        spent = session.spent_so_far(self.desk.ledger)
        self.collector.begin_round(self.desk.ledger.open_requests(), spent)
        if self.budget is not None:  # what is asked live counts what went to batches
            self.budget.spent = spent

        def record(judgment: Judgment | None) -> None:
            if judgment is not None:
                self.effective.update()
                self.journal.add(judgment)
                progress.add(judgment)
                self.done[self.row[judgment.key], judgment.sample] = True

        async def judge_one(job: JudgmentJob) -> Judgment | None:
            again = self.refresh.get((job.key, job.sample), frozenset())
            return await until_parked(partial(session._judge_one, job, self.engines, again))

        width = workers_for(session.planned.calls.concurrency)
        await judge_all(jobs, judge_one, width=width, record=record, stop=session.stop)

    async def _submit(self) -> bool:
        """Submit what was collected; False if there is nothing to wait for, or nobody waits."""
        session, desk, collector = self.session, self.desk, self.collector
        spooled = {one for spool in collector.spools.values() for one in spool.requests}
        self.asked |= spooled
        wanted = collector.awaited | spooled
        planned = collector.planned
        made = await desk.submit_all(collector, session.run_name)
        if made:
            self._say(made, planned)
        # Also another run's batches with the same requests; the others of a grid wait for theirs.
        holding = {batch for one, batch in desk.ledger.open_requests().items() if one in wanted}
        rows = [row for row in desk.open_rows() if row.id in holding]
        if not rows and not desk.is_full:
            if collector.deferred:
                session.stop.reason = self._too_dear()
            elif holding:
                session.stop.reason = Waiting(
                    "other batches hold some of its requests (trajudge run batch status)"
                )
            return False
        if session.config.batch_submit_only or session.config.batch_files:
            session.stop.reason = Waiting(_pending(desk, rows, session.config.batch_files))
            return False
        return True

    def _note(self, brought: Sequence[BatchCollection]) -> None:
        for collection in brought:
            self.collector.note(collection)
        unanswered = self.collector.unanswered
        most = max(1, ceil(LIVE_SHARE * len(self.asked)))
        if self.session.config.batch_fallback == "live" and len(unanswered) <= most:
            self.collector.live |= unanswered

    def _jobs_left(self) -> Iterator[JudgmentJob]:
        session = self.session
        report = LoadReport({**session.report.earlier, **session.report.rewards(session.plan.keys)})
        samples, strict = session.planned.run.samples, session.planned.data.strict
        return jobs_of(session.plan, samples, self.done, report, strict=strict)

    async def _pause(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self.interrupted.wait(), seconds)
        except TimeoutError:
            return

    def _too_dear(self) -> BudgetSpent:
        limit = self.session.planned.calls.max_cost or 0.0
        left = max(0.0, limit - self.collector.spent)
        return BudgetSpent(
            f"the next request may cost up to ${self.collector.deferred:.4f} in a batch and "
            f"${left:.4f} is left of --max-cost {limit:g}: raise it, or lower --max-tokens"
        )

    def _say(self, made: int, planned: int) -> None:
        most = sum(spool.reserved for spool in self.collector.spools.values())
        price = f"for at most ${most:.2f}" if self._is_priced() else "at an unknown price"
        when = "" if self.session.config.batch_files else "; ended within 24 hours, most within one"
        sys.stderr.write(
            f"batch: {count_of(planned, 'request')} in {count_of(made, 'file')}, {price}{when}. "
            "Ctrl-C is safe: the same command goes on from there\n"
        )

    def _is_priced(self) -> bool:
        """Tell whether the prices of all models are known."""
        model = self.session.model
        return model is not None and all(
            _price(model, name, Usage(input=1)) is not None for _, name in self.desk.services
        )


def _price(model: ModelHandle, name: str, usage: Usage) -> float | None:
    """Return the dollars of a batch, by the usual price where there is no other; None if none is
    known."""
    cheap = model.batch_price(name, usage)
    return model.price(name, usage) if cheap is None else cheap


def _known(dollars: float | None) -> float:
    return nan if dollars is None else dollars


def _pending(desk: BatchDesk, rows: Sequence[BatchRow], folder: Path | None) -> str:
    """Say which batches are under way, and for files (in ``folder``) how to run them."""
    if folder is None:
        return f"batches that are submitted: {len(rows)}"
    sentences = [
        f"{output_of(row.provider_id)}: {desk.through(row)} of {row.lines} lines there (vllm is "
        "still writing, or was stopped: then run it again)"
        for row in rows
        if desk.through(row)
    ]
    written = [row for row in rows if row.provider_id]
    for place in sorted({str(Path(row.provider_id).parent) for row in written}):
        if place != str(folder.resolve()):
            sentences.append(
                f"requests that wait in {place} already were not written into {folder} again"
            )
    if len(written) < len(rows):
        sentences.append(
            "an earlier command still writes a file, or was killed then: this one writes it anew "
            f"{desk.times.grace:g} s after that"
        )
    if written:
        sentences.append("run  " + "; ".join(map(_vllm_command, written)))
    return "; ".join(sentences)


def _vllm_command(row: BatchRow) -> str:
    return (
        f"vllm run-batch -i {quote(row.provider_id)} -o "
        f"{quote(str(output_of(row.provider_id)))} --model {quote(row.model)}"
    )


class BatchAction(Record):
    """What to do with which batches (none named: all that are open)."""

    action: Literal["status", "cancel", "resume"]
    batches: tuple[str, ...] = ()
    cache: str | None = None


def carry_out(action: BatchAction) -> str:
    """Do it, and return the lines to print. Raises UserError for a batch that is not there."""
    path = ledger_path(cache_path(action.cache))
    if not path.is_file():
        return f"no batches: nothing was submitted with {cache_path(action.cache)} as the cache\n"
    ledger = Ledger(path)
    try:
        rows = _chosen(ledger, action)
        if action.action != "status":
            asyncio.run(_at_the_provider(ledger, rows, action))
            rows = [row for row in ledger.batches() if row.id in {one.id for one in rows}]
        return described(ledger, rows)
    finally:
        ledger.close()


def _chosen(ledger: Ledger, action: BatchAction) -> list[BatchRow]:
    known = ledger.batches()
    for name in action.batches:
        if not any(name in (row.id, row.provider_id) for row in known):
            raise UserError(f"no batch {name!r}: see  trajudge run batch status")
    if action.batches:
        return [row for row in known if {row.id, row.provider_id} & {*action.batches}]
    return known if action.action == "status" else [row for row in known if row.is_open]


async def _at_the_provider(ledger: Ledger, rows: Sequence[BatchRow], action: BatchAction) -> None:
    """Cancel the batches, or collect those that have ended."""
    cache = Cache(cache_path(action.cache))
    adapters = {(row.endpoint, row.model): _adapter(row) for row in rows if row.is_open}
    services = {
        (row.endpoint, row.model): batch_service(
            adapters[row.endpoint, row.model], row.model, _folder(row)
        )
        for row in rows
        if row.is_open
    }
    desk = BatchDesk(ledger, cache, services, adapters, RunPrices().dollars, BatchTimes())
    try:
        refused = await _cancel(ledger, services, rows) if action.action == "cancel" else {}
        await desk.look()
        for run in dict.fromkeys(row.run for row in rows):
            note_payments(ledger, run)
        for row in ledger.batches(only_open=True):  # one that had ended is not open any more
            if why := refused.get(row.id):
                raise UserError(f"batch {row.provider_id} is not cancelled: {why}") from why
    finally:
        for adapter in adapters.values():
            await adapter.close()
        await cache.close()


async def _cancel(
    ledger: Ledger, services: Mapping[tuple[str, str], BatchService], rows: Sequence[BatchRow]
) -> dict[str, CallFailed]:
    """Cancel what was submitted; return the batches whose provider refused it, or was not there,
    and why."""
    refused = {}
    for row in rows:
        if row.state != "submitted":
            continue
        try:
            if await services[row.endpoint, row.model].cancel(row.provider_id):
                ledger.release(row.id, "cancelled")
        except CallFailed as error:
            refused[row.id] = error
    return refused


def _adapter(row: BatchRow) -> ProviderAdapter:
    url = row.endpoint if row.endpoint.startswith("http") else None
    adapter, _ = make_adapter(row.model, base_url=url)
    return batching(adapter, row.model)


def _folder(row: BatchRow) -> Path | None:
    return Path(row.provider_id).parent if row.service == "files" else None


def described(ledger: Ledger, rows: Sequence[BatchRow]) -> str:
    """Describe batches, a paragraph each, in the order of their submission."""
    if not rows:
        return "no batches\n"
    prices = RunPrices()
    return "".join(_described(ledger, row, prices) for row in rows)


def _described(ledger: Ledger, row: BatchRow, prices: RunPrices) -> str:
    counts = ledger.counts(row.id)
    lines = ", ".join(f"{one.lines:,} {outcome}" for outcome, one in sorted(counts.items()))
    when = datetime.fromtimestamp(row.intent_at, UTC).strftime("%Y-%m-%d %H:%M UTC")
    twice = f", {row.duplicates} answered twice" if row.duplicates else ""
    return (
        f"{row.provider_id or row.id}  {row.state}{f' ({row.note})' if row.note else ''}\n"
        f"  {row.model} at {row.endpoint}, {when}\n"
        f"  {lines}{twice}; {_paid(row, [*counts.values()], prices)}\n"
        f"  run {row.run}\n"
    )


def _paid(row: BatchRow, counts: Sequence[LineCounts], prices: RunPrices) -> str:
    """Say what a batch has cost, or may cost."""
    reserved, paid = sum(one.reserved for one in counts), sum(one.paid for one in counts)
    if row.state != "collected":
        # Nothing is reserved without a price, and where it is 0.
        is_priced = reserved or prices.dollars(row, Usage()) is not None
        return f"at most ${reserved:.4f}" if is_priced else "at an unknown price"
    unpriced = sum(one.unpriced for one in counts)
    known = [f"${paid:.4f} paid"] if paid or not unpriced else []
    unknown = [f"{count_of(unpriced, 'line')} of unknown cost"] if unpriced else []
    return " and ".join([*known, *unknown])
