"""``trajudge judge --ray N``: one run whose judgments are made by actors of Ray.

The driver is an ordinary run: it owns the folder, the journal, the cache, and the engines with
their rates and dollars. Actors load trajectories, render prompts, send requests and parse replies.
An actor asks the driver for every reply: the driver's engine takes it from the cache, or lets the
actor send the request at its turn, and commits the reply before the judge sees it. What an actor
that dies has not judged is given to another: only the calls that it had in flight are paid twice.
When the driver dies, the same command resumes the run.
"""

from __future__ import annotations

import asyncio
import logging
import os
import pickle
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import count, pairwise
from math import inf
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from trajudge.eval.runs.jobs import (
    Interrupted,
    JudgmentJob,
    LoadReport,
    StopSignal,
    first_error,
    jobs_of,
    judge_all,
    places_to_read,
    workers_for,
)
from trajudge.eval.runs.plan import RunPlan, ready_judge
from trajudge.eval.runs.session import Record, Refresh, RunSession, judge_job
from trajudge.eval.store.manifest import RunManifest, code_version
from trajudge.eval.store.run_folder import RunDollars
from trajudge.eval.store.table import KeyColumns
from trajudge.judges.adapters.base import Adapter, AdapterResponse, MarksPrompts
from trajudge.judges.adapters.errors import causes
from trajudge.judges.calls.handle import ModelHandle
from trajudge.judges.engine.budget import Budget, BudgetSpent, Estimate, Payments
from trajudge.judges.engine.engine import Engine, EngineReply, Engines
from trajudge.judges.engine.limits import Limiter
from trajudge.judges.engine.retry import Retry
from trajudge.judges.model import Judge, Judgment, Request, Usage
from trajudge.stats.intervals import Bools, Ints
from trajudge.trajectories.tokens import counting_for, encoding_of
from trajudge.util.errors import MissingExtra, UserError

log = logging.getLogger(__name__)

MOST_DEATHS = 10  # of one actor and those after it: what kills it again and again is no accident
SEGMENTS = 4  # of the data for each actor, which reads one after the other

Message = tuple[Any, ...]


class ActorDied(Exception):
    """The process that should answer is gone."""


class _Channel:
    """Calls in both directions between two processes that exchange lists of messages. ``serves``
    has the coroutine methods that the other side may call."""

    def __init__(self, serves: object) -> None:
        self.closed: Exception | None = None
        self._serves = serves
        self._messages: list[Message] = []
        self._wake = asyncio.Event()
        self._replies: dict[int, asyncio.Future[Any]] = {}
        self._serving: dict[int, asyncio.Task[None]] = {}
        self._numbers = count()

    async def call(self, method: str, *values: Any) -> Any:
        """Call a method of the other side and return its result. Raises what it raises, and the
        error that ``close`` is given."""
        if self.closed is not None:
            raise self.closed
        number = next(self._numbers)
        reply = self._replies[number] = asyncio.get_running_loop().create_future()
        self._put("call", number, method, values)
        try:
            return await reply
        except asyncio.CancelledError:
            self._put("cancel", number)
            raise
        finally:
            del self._replies[number]

    def tell(self, method: str, *values: Any) -> None:
        """Call a method of the other side without waiting for it."""
        self._put("call", next(self._numbers), method, values)

    async def outgoing(self) -> list[Message]:
        """Wait for messages to the other side, and return all there are."""
        await self._wake.wait()
        self._wake.clear()
        messages, self._messages = self._messages, []
        return messages

    def receive(self, messages: Sequence[Message]) -> None:
        """Take in messages from the other side."""
        for kind, number, *rest in messages:
            if kind == "call":
                self._serving[number] = asyncio.create_task(self._serve(number, *rest))
            elif kind == "cancel" and number in self._serving:
                self._serving[number].cancel()
            elif (reply := self._replies.get(number)) is not None and not reply.done():
                if kind == "result":
                    reply.set_result(rest[0])
                elif kind == "error":
                    reply.set_exception(_linked(rest[0]))

    def close(self, error: Exception) -> None:
        """End every call with the error, and cancel what is being done for the other side."""
        self.closed = error
        for reply in self._replies.values():
            if not reply.done():
                reply.set_exception(error)
        for task in self._serving.values():
            task.cancel()

    async def _serve(self, number: int, method: str, values: Sequence[Any]) -> None:
        try:
            result = await getattr(self._serves, method)(*values)
        except Exception as error:
            self._put("error", number, _picklable(error))
        else:
            self._put("result", number, result)
        finally:
            del self._serving[number]

    def _put(self, *message: Any) -> None:
        self._messages.append(message)
        self._wake.set()


def _picklable(error: BaseException) -> list[BaseException]:
    """Return the error and its causes, which tell whether a failed call may be billed, as far as
    they can be pickled."""
    chain: list[BaseException] = []
    for cause in causes(error):
        try:
            chain.append(pickle.loads(pickle.dumps(cause)))  # noqa: S301 - made here
        except Exception:
            if cause is error:
                chain.append(RuntimeError(f"{type(error).__name__}: {error}"))
    return chain


def _linked(chain: Sequence[BaseException]) -> BaseException:
    for error, cause in pairwise(chain):
        error.__cause__ = cause
    return chain[0]


class _Asked(NamedTuple):
    """A request as the driver knows it: its content stays with the actor that sends it, ``link``,
    under a ``number``. ``worst`` counts where dollars are limited."""

    number: int
    hash: str
    endpoint: str
    model: str
    expected: Usage
    worst: Usage
    link: Any = None


class JudgingActor:
    """Makes judgments of a driver's run, in a process that Ray starts."""

    def __init__(self) -> None:
        self.driver = _Channel(self)
        self.numbers, self.requests = count(), dict[int, Request]()
        self._stop = StopSignal()

    async def receive(self, messages: Sequence[Message]) -> None:
        """Take in messages of the driver."""
        self.driver.receive(messages)

    async def messages(self) -> AsyncIterator[list[Message]]:
        """Yield messages to the driver."""
        while True:
            yield await self.driver.outgoing()

    async def open(self, folder: str, plan: RunPlan, since: float) -> int:
        """Make the judge and its model, and return the process's id; ``since`` is when the driver
        began. Raises UserError, also where they are not those of the run's manifest."""
        try:
            os.chdir(folder)
        except OSError as error:
            raise UserError(
                f"--ray: {folder} is not a folder of every node ({error.strerror}): start the "
                "command in one that all nodes have"
            ) from error
        ready = ready_judge(plan.config, plan.calls)
        model = ready.model
        self._plan, self._since = replace(plan, judge=ready.judge, model=model), since
        _check_same(
            plan.manifest,
            version=code_version(),
            prompt_hash=ready.prompt_hash,
            options=ready.options,
            loader_digest=plan.source.loader_digest,
            **(model.manifest if model else {}),
        )
        self._engines = dict[str, Engine]()
        for name, handle in model.handles.items() if model else ():
            if isinstance(handle.adapter, MarksPrompts):
                handle.adapter.prompts_repeat = plan.run.samples > 1
            self._engines[name] = _AskingEngine(handle.adapter, handle, self)
        return os.getpid()

    async def judge(
        self, keys: KeyColumns, left: Bools, refresh: Refresh
    ) -> tuple[LoadReport, BudgetSpent | Interrupted | None]:
        """Judge the samples that are left of each of the keys, and hand every judgment to the
        driver; return what the files gave besides, and why the judging ended early. Raises
        UserError."""
        plan, report = replace(self._plan, keys=keys), LoadReport()
        model, width, stop = plan.model, plan.calls.concurrency, self._stop

        async def judge_one(job: JudgmentJob) -> None:
            ask, name = None, (job.key, job.sample)
            if model:
                again = refresh.get(name, frozenset())
                ask = model.ask(self._engines, job.draw, refresh=again, since=self._since)
            await self.driver.call("record", await judge_job(plan, job, ask))

        jobs, width = jobs_of(plan, ~left, report), workers_for(width) if model else width
        with counting_for(encoding_of(model.model) if model else None):
            await judge_all(jobs, judge_one, width=width, record=lambda _: None, stop=stop)
        return report, stop.reason

    async def stop(self, reason: Interrupted) -> None:
        """Begin no judgment any more."""
        self._stop.interrupt(reason)

    async def send(self, number: int) -> AdapterResponse:
        """Make one attempt at a request that the driver was asked for. Raises CallFailed."""
        model = self._plan.model
        if model is None or (request := self.requests.get(number)) is None:
            raise ActorDied("the judgment that made the request has ended")
        return await model.handles[request.model].adapter.send(request)


def _check_same(manifest: RunManifest, **facts: Any) -> None:
    """Raise UserError where a manifest's fields are not the same in an actor."""
    here = RunManifest.model_validate({**manifest.model_dump(), **facts})
    for name in facts:
        mine, theirs = getattr(here, name), getattr(manifest, name)
        if mine != theirs:
            raise UserError(
                f"--ray: {name} is {mine!r} in an actor and {theirs!r} in the driver: install the "
                "same trajudge, keys and files on every node"
            )


class _AskingEngine(Engine):
    """Asks the driver for replies; ``price`` is all that it does itself."""

    def __init__(self, adapter: Adapter, model: ModelHandle, actor: JudgingActor) -> None:
        super().__init__(
            adapter,
            cache=None,
            limiter=Limiter(),
            retry=Retry(np.random.default_rng(0)),
            budget=Budget(model.price),
        )
        self._actor, self._is_limited = actor, model.calls.max_cost is not None

    async def ask(
        self,
        request: Request,
        *,
        refresh: bool = False,
        since: float = inf,
        estimate: Estimate | None = None,
        worst_case: Estimate | None = None,
    ) -> EngineReply:
        """Return the driver's reply. Raises what its engine raises."""
        expected = estimate(request) if estimate else Usage()
        worst = worst_case(request) if worst_case and self._is_limited else expected
        number = next(self._actor.numbers)
        asked = _Asked(number, request.hash, request.endpoint, request.model, expected, worst)
        self._actor.requests[number] = request
        try:
            reply = await self._actor.driver.call("ask", asked, refresh, since)
        finally:
            del self._actor.requests[number]
        return cast(EngineReply, reply)


class _RemoteAdapter:
    """In the driver: an adapter whose attempts are made by the actor that has the request."""

    def __init__(self, adapter: Adapter) -> None:
        self.name, self.endpoint, self.close = adapter.name, adapter.endpoint, adapter.close

    async def send(self, request: Request) -> AdapterResponse:
        """Make one attempt. Raises CallFailed, and ActorDied if nobody knows what came of it."""
        number, *_, link = cast(_Asked, request)
        return cast(AdapterResponse, await link.channel.call("send", number))


def _remote(model: ModelHandle) -> ModelHandle:
    """Return the model as the driver has it: actors send its requests."""
    others = {role: _remote(other) for role, other in model.others.items()}
    return replace(model, adapter=_RemoteAdapter(model.adapter), others=others)


class _Link:
    """In the driver: an actor, and what it may call."""

    def __init__(self, session: RaySession, ray: Any, record: Record) -> None:
        self.channel = _Channel(self)
        self._session, self._ray, self._record = session, ray, record
        kind = ray.remote(num_cpus=1, max_restarts=0)(JudgingActor)
        self._actor = kind.options(scheduling_strategy="SPREAD").remote()
        self._tasks = [asyncio.create_task(work) for work in (self._send(), self._receive())]

    async def record(self, judgment: Judgment) -> None:
        """Take a judgment down."""
        self._record(judgment)
        place = self._session.row[judgment.key]
        self._session.done[place, judgment.sample] = True

    async def ask(self, asked: _Asked, refresh: bool, since: float) -> EngineReply:
        """Answer the actor. Raises what the engine raises."""
        asked, engine = asked._replace(link=self), self._session.engines[asked.model]
        usage: dict[str, Estimate] = {
            "estimate": lambda _: asked.expected,
            "worst_case": lambda _: asked.worst,
        }
        while True:
            try:
                return await engine.ask(cast(Request, asked), refresh=refresh, since=since, **usage)
            except ActorDied:  # another one, which was sending the same request
                if self.channel.closed is not None:
                    raise

    def end(self) -> None:
        """End the actor."""
        for task in self._tasks:
            task.cancel()
        self.channel.close(ActorDied("the run has ended"))
        self._ray.kill(self._actor)

    async def _send(self) -> None:
        while True:
            self._actor.receive.remote(await self.channel.outgoing())

    async def _receive(self) -> None:
        try:
            async for messages in self._actor.messages.remote():
                self.channel.receive(await messages)
        except self._ray.exceptions.RayError as error:
            first, *_, last = [*str(error).strip().splitlines(), ""]
            log.warning("an actor died: %s", first)
            self.channel.close(ActorDied(last or first))


class RaySession(RunSession):
    """Judges as ``RunSession`` does, by ``count`` actors of ``ray``."""

    def __init__(
        self,
        plan: RunPlan,
        elsewhere: Sequence[RunDollars],
        stop: StopSignal,
        *,
        ray: Any,
        count: int,
    ) -> None:
        super().__init__(plan, elsewhere, stop)
        self.engines: Mapping[str, Engine] = {}
        self._ray, self._count = ray, count
        self._links: list[_Link] = []

    def _open_engines(self, model: ModelHandle, spent: float, payments: Payments) -> Engines:
        self.engines = engines = super()._open_engines(_remote(model), spent, payments)
        return engines

    async def _judge_all(self, record: Record, engines: Engines | None) -> None:
        self.row = {key: place for place, key in enumerate(self.plan.keys)}
        places = places_to_read(self.plan.keys, ~self.done, self.report)
        parts = np.array_split(places, SEGMENTS * self._count)
        segments = deque(part for part in parts if len(part))
        try:
            with self.stop.heard_by(self._interrupt):
                async with asyncio.TaskGroup() as group:
                    for _ in range(min(self._count, len(segments))):
                        group.create_task(self._judge_segments(segments, record))
        except BaseExceptionGroup as errors:
            raise first_error(errors) from None
        finally:
            for link in self._links:
                link.end()

    def _interrupt(self, reason: Interrupted) -> None:
        for link in self._links:
            if link.channel.closed is None:
                link.channel.tell("stop", reason)

    async def _judge_segments(self, segments: deque[Ints], record: Record) -> None:
        """Let an actor judge segments, and another one where it dies, until none is left. Raises
        UserError."""
        deaths = 0
        link: _Link | None = None
        while segments and self.stop.reason is None:
            segment = segments.popleft()
            try:
                if link is None:
                    link = _Link(self, self._ray, record)
                    self._links.append(link)
                    where = str(Path.cwd()), _portable(self.plan), self.begun
                    log.info("actor in process %d", await link.channel.call("open", *where))
                await self._judge_segment(link, segment)
            except ActorDied as died:
                segments.append(segment)
                link, deaths = None, deaths + 1
                if deaths > MOST_DEATHS:
                    raise UserError(
                        f"--ray: an actor and those in its place died {deaths} times (the last "
                        f"one: {died}): see Ray's logs, then start the same command again"
                    ) from died

    async def _judge_segment(self, link: _Link, segment: Ints) -> None:
        keys = KeyColumns.of(self.plan.keys.key(place) for place in segment.tolist())
        wanted = set(keys)
        refresh = {name: again for name, again in self.refresh.items() if name[0] in wanted}
        report, reason = await link.channel.call("judge", keys, ~self.done[segment], refresh)
        self.report.add(report, segment)
        self.stop.reason = self.stop.reason or reason


def _portable(plan: RunPlan) -> RunPlan:
    """Return the run without what an actor makes anew or does not need."""
    source = plan.source._replace(annotations=())
    judge, keys = cast(Judge, None), KeyColumns.of(())
    return replace(plan, source=source, keys=keys, unreadable=(), known={}, judge=judge, model=None)


@contextmanager
def ray_sessions(count: int) -> Iterator[Callable[..., RaySession]]:
    """Connect to the cluster at ``RAY_ADDRESS``, else start one on this machine that ends with the
    block; yield what makes the sessions of runs with ``count`` actors. Raises UserError."""
    try:
        import ray  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise MissingExtra("ray", "ray", "--ray") from error
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is sent to Ray's authors
    try:
        ray.init(include_dashboard=False, logging_level="warning", log_to_driver=False)
    except (ConnectionError, ValueError, RuntimeError) as error:
        first = str(error).strip().splitlines()[0]
        raise UserError(
            f"--ray: Ray cannot be reached ({first}): check RAY_ADDRESS, or unset it"
        ) from error
    try:
        yield partial(RaySession, ray=ray, count=count)
    finally:
        ray.shutdown()
