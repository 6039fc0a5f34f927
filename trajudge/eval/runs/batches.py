"""Runs whose calls go through a provider's batch interface, and ``trajudge run batch``: what
becomes of the batches that were submitted."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from math import nan
from pathlib import Path
from shlex import quote

from trajudge.eval.runs.jobs import (
    JudgmentJob,
    LoadReport,
    StopSignal,
    Waiting,
    jobs_of,
    judge_all,
    workers_for,
)
from trajudge.eval.runs.plan import RunPlan
from trajudge.eval.runs.progress import RunProgress, telling
from trajudge.eval.runs.session import RunSession
from trajudge.eval.runs.settings import BatchAction, BatchConfig
from trajudge.eval.store.manifest import EffectiveParameters
from trajudge.eval.store.run_folder import RunDollars, dollars_in_all
from trajudge.eval.store.table import PAYMENTS
from trajudge.judges.adapters.errors import CallFailed
from trajudge.judges.adapters.routing import make_adapter
from trajudge.judges.batch.collect import Batches, CollectingEngine, batch_service, until_parked
from trajudge.judges.batch.ledger import BatchRow, Ledger, LineCounts, ledger_path
from trajudge.judges.batch.openai import output_of
from trajudge.judges.batch.service import batch_options
from trajudge.judges.calls.handle import ModelHandle, cache_path
from trajudge.judges.engine.budget import BudgetSpent, Payments, dollars_by_request, read_attempts
from trajudge.judges.engine.cache import Cache
from trajudge.judges.engine.engine import Engines
from trajudge.judges.model import Judgment
from trajudge.util.commands import OK
from trajudge.util.errors import UserError
from trajudge.util.terminal import count_of


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


class BatchSession(RunSession):
    """Judges as ``RunSession`` does, its calls in batches. ``config`` says how."""

    def __init__(
        self,
        plan: RunPlan,
        elsewhere: Sequence[RunDollars],
        stop: StopSignal,
        config: BatchConfig,
    ) -> None:
        super().__init__(plan, elsewhere, stop)
        self.config = config
        self._run = str(self.plan.folder.resolve())
        self._interrupted = asyncio.Event()

    async def _judge_with(self, engines: Engines | None) -> None:
        if engines is None or self.model is None:
            return await super()._judge_with(engines)
        ledger = Ledger(ledger_path(engines.cache.path))
        try:
            batches = self._batches(self.model, engines.cache, ledger)
            with self.stop.heard_by(lambda _: self._interrupted.set()):
                await self._judge_in_rounds(engines, batches)
        finally:
            note_payments(ledger, self._run)
            # The last answer to a request is kept.
            self.waiting = {
                line.request: nan if line.dollars is None else line.dollars
                for line in ledger.paid(self._run)
                if line.is_answered
            }
            self.reserved = ledger.reserved(self._run)
            ledger.close()

    def _batches(self, model: ModelHandle, cache: Cache, ledger: Ledger) -> Batches:
        """Make the batches of the run's models. Raises UserError for one that has no batch
        interface."""
        services, options, prices = {}, {}, {}
        for name, handle in model.handles.items():
            place = (handle.adapter.endpoint, name)
            service = batch_service(handle.adapter, name, self.config.batch_files)
            services[place] = service
            options[place] = batch_options(service.name, self.config.batch_options)
            price = handle.priced.price
            prices[place] = price and (price.batch or price)
        limit = self.plan.calls.max_cost
        return Batches(ledger, cache, services, options, prices, self._run, limit)

    async def _judge_in_rounds(self, engines: Engines, batches: Batches) -> None:
        """Judge everything, or until the run stops. Raises UserError."""
        collecting = {
            name: CollectingEngine(engines[name], engines.cache, batches)
            for _, name in batches.services
        }
        effective = EffectiveParameters(self.plan.folder, engines.sent)
        row = {key: place for place, key in enumerate(self.plan.keys)}
        jobs = jobs_of(self.plan, self.done, self.report)
        name = self.plan.judge_id
        with RunProgress(self.total, self.before, self.failed_before, name=name) as progress:

            def record(judgment: Judgment | None) -> None:
                if judgment is not None:
                    effective.update()
                    self.journal.add(judgment)
                    progress.add(judgment)
                    self.done[row[judgment.key], judgment.sample] = True

            async def judge_one(job: JudgmentJob) -> Judgment | None:
                return await until_parked(partial(self._judge_one, job, collecting))

            async with telling(progress, lambda: batches.progress):
                for ended in await batches.look():
                    batches.note(ended)
                while True:
                    batches.begin_round(self._spent_so_far(batches.ledger))
                    width = workers_for(self.plan.calls.concurrency)
                    await judge_all(jobs, judge_one, width=width, record=record, stop=self.stop)
                    if batches.error is not None:
                        raise batches.error
                    if self.stop.reason is None:
                        await self._submit(batches)
                    if self.stop.reason is not None or not (batches.awaited or batches.is_full):
                        return
                    if not await batches.wait(self._pause):
                        return
                    known = {**self.report.earlier, **self.report.rewards(self.plan.keys)}
                    jobs = jobs_of(self.plan, self.done, LoadReport(known))

    def _spent_so_far(self, ledger: Ledger) -> float:
        """Note what batches have cost; return the dollars spent, and reserved for open lines."""
        self.spent = self.spent._replace(noted=note_payments(ledger, self._run))
        spent = dollars_in_all([*self.elsewhere, self.spent])
        return spent + sum(ledger.reserved(self._run).values())

    async def _submit(self, batches: Batches) -> None:
        """Submit what was collected; ``batches.awaited`` are then the requests to wait for. The
        session stops where it is not to wait, or cannot."""
        requests, most = batches.requests, batches.reserved
        if made := await batches.submit():
            is_priced = all(batches.prices.values())
            price = f"for at most ${most:.2f}" if is_priced else "at an unknown price"
            when = "; ended within 24 hours, most within one"
            sys.stderr.write(
                f"batch: {count_of(len(requests), 'request')} in {count_of(made, 'file')}, {price}"
                f"{'' if self.config.batch_files else when}. "
                "Ctrl-C is safe: the same command goes on from there\n"
            )
        # Also another run's batches with the same requests; the others of a grid wait for theirs.
        open_requests, wanted = batches.ledger.open_requests(), requests | batches.awaited
        holding = {batch for request, batch in open_requests.items() if request in wanted}
        rows = [row for row in batches.open_rows() if row.id in holding]
        batches.awaited = {request for request in wanted if request in open_requests}
        if rows or batches.is_full:
            if self.config.batch_submit_only or self.config.batch_files:
                self.stop.reason = Waiting(_pending(batches, rows, self.config.batch_files))
        elif batches.deferred:
            limit = batches.limit or 0.0
            self.stop.reason = BudgetSpent(
                f"the next request may cost up to ${batches.deferred:.4f} in a batch and "
                f"${max(0.0, limit - batches.spent):.4f} is left of --max-cost {limit:g}: raise "
                "it, or lower --max-tokens"
            )
        elif holding:
            self.stop.reason = Waiting(
                "other batches hold some of its requests (trajudge run batch status)"
            )

    async def _pause(self, seconds: float) -> bool:
        try:
            await asyncio.wait_for(self._interrupted.wait(), seconds)
        except TimeoutError:
            return True
        return False


def _pending(batches: Batches, rows: Sequence[BatchRow], folder: Path | None) -> str:
    """Say which batches are under way, and for files (in ``folder``) how to run them."""
    if folder is None:
        return f"batches that are submitted: {len(rows)}"
    sentences = [
        f"{output_of(row.provider_id)}: {batches.through(row)} of {row.lines} lines there (vllm is "
        "still writing, or was stopped: then run it again)"
        for row in rows
        if batches.through(row)
    ]
    written = [row for row in rows if row.provider_id]
    for other in sorted({str(Path(row.provider_id).parent) for row in written}):
        if other != str(folder.resolve()):
            sentences.append(
                f"requests that wait in {other} already were not written into {folder} again"
            )
    if len(written) < len(rows):
        sentences.append(
            "an earlier command still writes a file, or was killed then: this one writes it anew "
            f"{batches.grace:g} s after that"
        )
    commands = [
        f"vllm run-batch -i {quote(row.provider_id)} -o {quote(str(output_of(row.provider_id)))} "
        f"--model {quote(row.model)}"
        for row in written
    ]
    return "; ".join([*sentences, *(["run  " + "; ".join(commands)] if commands else [])])


def carry_out(action: BatchAction) -> int:
    """Do it, print what is there, and return the exit code. Raises UserError for a batch that is
    not there."""
    cache = cache_path(action.cache)
    if not ledger_path(cache).is_file():
        sys.stdout.write(f"no batches: nothing was submitted with {cache} as the cache\n")
        return OK
    ledger = Ledger(ledger_path(cache))
    try:
        rows = known = ledger.batches()
        for name in action.batches:
            if not any(name in (row.id, row.provider_id) for row in known):
                raise UserError(f"no batch {name!r}: see  trajudge run batch status")
        if action.batches:
            rows = [row for row in known if {row.id, row.provider_id} & {*action.batches}]
        elif action.action != "status":
            rows = [row for row in known if row.is_open]
        if action.action != "status":
            asyncio.run(_at_the_provider(ledger, cache, rows, cancel=action.action == "cancel"))
            rows = [row for row in ledger.batches() if row.id in {one.id for one in rows}]
        sys.stdout.write("".join(_described(ledger, row) for row in rows) or "no batches\n")
    finally:
        ledger.close()
    return OK


async def _at_the_provider(
    ledger: Ledger, path: Path, rows: Sequence[BatchRow], *, cancel: bool
) -> None:
    """Cancel the batches, and collect those that have ended."""
    cache, services, refused = Cache(path), {}, dict[str, CallFailed]()
    try:
        for row in rows:
            place = (row.endpoint, row.model)
            if not row.is_open or place in services:
                continue
            url = row.endpoint if row.endpoint.startswith("http") else None
            folder = Path(row.provider_id).parent if row.service == "files" else None
            services[place] = batch_service(
                make_adapter(row.model, base_url=url)[0], row.model, folder
            )
        for row in rows:
            if not cancel or row.state != "submitted":
                continue
            try:
                if await services[row.endpoint, row.model].cancel(row.provider_id):
                    ledger.release(row.id, "cancelled")
            except CallFailed as error:  # refused, or its server is away
                refused[row.id] = error
        await Batches(ledger, cache, services).look()
        for run in dict.fromkeys(row.run for row in rows):
            note_payments(ledger, run)
        for row in ledger.batches():  # one that had ended is not open any more
            if row.is_open and (why := refused.get(row.id)):
                raise UserError(f"batch {row.provider_id} is not cancelled: {why}") from why
    finally:
        for service in services.values():
            await service.adapter.close()
        cache.close()


def _described(ledger: Ledger, row: BatchRow) -> str:
    """Describe a batch in a paragraph."""
    counts = ledger.counts(row.id)
    lines = ", ".join(f"{one.lines:,} {outcome}" for outcome, one in counts.items())
    when = datetime.fromtimestamp(row.intent_at, UTC).strftime("%Y-%m-%d %H:%M UTC")
    twice = f", {row.duplicates} answered twice" if row.duplicates else ""
    return (
        f"{row.provider_id or row.id}  {row.state}{f' ({row.note})' if row.note else ''}\n"
        f"  {row.model} at {row.endpoint}, {when}\n"
        f"  {lines}{twice}; {_paid(row, counts)}\n"
        f"  run {row.run}\n"
    )


def _paid(row: BatchRow, counts: Mapping[str, LineCounts]) -> str:
    """Say what a batch has cost, or may cost."""
    if row.state != "collected":
        reserved = sum(one.reserved for one in counts.values())
        return f"at most ${reserved:.4f}" if row.price else "at an unknown price"
    paid, unpriced = (
        sum(one.paid for one in counts.values()),
        sum(one.unpriced for one in counts.values()),
    )
    known = [f"${paid:.4f} paid"] if paid or not unpriced else []
    unknown = [f"{count_of(unpriced, 'line')} of unknown cost"] if unpriced else []
    return " and ".join([*known, *unknown])
