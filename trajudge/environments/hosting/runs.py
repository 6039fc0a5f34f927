"""The runs that are served: opened by the harness, played by somebody else, judged by the state.

A run is ``open`` until its agent finishes, submits its answer on the page for it, uses up what it
may, or its time is over; nothing changes its state afterwards. What it comes to is worked out when
the harness asks, or in a sweep: never while the agent waits for a reply.
"""

from __future__ import annotations

import asyncio
import hmac
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from secrets import token_bytes, token_hex, token_urlsafe
from threading import Lock
from time import monotonic
from typing import Annotated, Any, Literal

from aiohttp import web
from pydantic import Base64Bytes, Field, StringConstraints

from trajudge.environments.agents.protocol import Job
from trajudge.environments.apps import mistakes_of
from trajudge.environments.chromium.action_syntax import spoken
from trajudge.environments.chromium.action_syntax import write as write_action
from trajudge.environments.hosting.tasks import Tasks
from trajudge.environments.hosting.trace import ObservedRun, ServedExchange, network_trace
from trajudge.environments.model.config import Split
from trajudge.environments.model.wording import with_answer_form, without_answer_form
from trajudge.environments.recording.episode import Recorded, run_facts, run_trajectory
from trajudge.environments.recording.journal import Journal, assemble
from trajudge.environments.serving.pages import answer as answer_request
from trajudge.environments.serving.run import ORIGIN, ServedRun, open_run
from trajudge.environments.serving.server import read_request, send_page
from trajudge.environments.verify import verify
from trajudge.trajectories.model import ImageRef, Observation, Record, Step, TrajectoryKey
from trajudge.util.errors import UserError

SWEEP = 1.0  # seconds between looks for runs whose time is over
LONGEST = 2**20  # characters of a text that an agent sends
PICTURE = 4 * 2**20  # bytes of a screenshot that an agent sends
_PNG = b"\x89PNG\r\n\x1a\n"

RunStatus = Literal["open", "finished", "expired"]
Text = Annotated[str, StringConstraints(max_length=LONGEST)]
AnswerValue = Text | int | float | Annotated[list[Text | int | float], Field(max_length=100)]


@dataclass(frozen=True)
class HostLimits:
    """What may be used: runs that are open at once; of a run, requests, bytes that are sent and
    received, and minutes; ended runs that are kept in memory."""

    runs: int = 64
    requests: int = 1_000
    bytes: int = 32 * 2**20
    minutes: float = 60.0
    kept: int = 1_000


class TooMany(Exception):
    """A limit is reached; ``seconds`` is when it may be tried again."""

    def __init__(self, why: str, seconds: float) -> None:
        super().__init__(why)
        self.seconds = max(1, round(seconds))


class TaskRequest(Record):
    """What the harness asks for: a ``task`` by its name, or one that ``level`` and ``seed`` draw
    in a ``split``.
    ``answer`` says where the goal tells the agent to answer: on the run's page, or with the action
    ``answer(value)`` or the last line of its message; with "none" it says nothing of it.
    ``max_steps`` counts actions as the server sees them."""

    task: str | None = None
    level: Literal[1, 2, 3] | None = None
    seed: int = Field(default=0, ge=0)
    split: Split | None = None
    agent: Annotated[str, StringConstraints(pattern=r"^\w[\w .:@/+-]{0,79}$")] = "agent"
    max_steps: int | None = Field(default=None, ge=1)
    minutes: float | None = Field(default=None, gt=0)
    answer: Literal["page", "action", "none"] = "page"


class RunEnding(Record):
    """How an agent ends its run: one of a declared ``answer`` (null: the task is not possible), a
    ``message`` in words, and why the task is ``infeasible``; none of them where it gives up."""

    answer: AnswerValue | None = None
    message: Text | None = None
    infeasible: Text | None = None

    @property
    def action(self) -> str | None:
        """The action that it comes to."""
        if "answer" in self.model_fields_set:
            value = self.answer
            return write_action("answer", [*value] if isinstance(value, list) else value)
        if self.message is not None:
            return write_action("send_msg_to_user", self.message)
        if self.infeasible is not None:
            return write_action("report_infeasible", self.infeasible)
        return None


class SentStep(Record):
    """A step as an agent reports it. Its picture comes inline: it names no file."""

    url: Text | None = None
    axtree: Text | None = None
    page_error: Text | None = None
    screenshot: Annotated[Base64Bytes, Field(max_length=PICTURE)] | None = None
    reasoning: Text | None = None
    action: Text | None = None

    def step(self, index: int) -> Step:
        """Return the step as it is recorded. Raises ValueError for a picture that is no PNG."""
        if self.screenshot is not None and not self.screenshot.startswith(_PNG):
            raise ValueError("screenshot: no PNG file")
        picture = None if self.screenshot is None else ImageRef(data=self.screenshot)
        seen = Observation(
            url=self.url, axtree=self.axtree, screenshot=picture, page_error=self.page_error
        )
        return Step(index=index, observation=seen, reasoning=self.reasoning, action=self.action)


@dataclass
class HostedRun:
    """A run and what is known of it on the way. ``until`` is when its time is over, by the clock
    that does not stand still for anybody (``monotonic``)."""

    id: str
    job: Job
    token: str
    run: ServedRun
    until: float
    ends_at: datetime
    max_steps: int | None
    status: RunStatus = "open"
    message: str | None = None
    last_action: str | None = None
    requests: int = 0
    bytes: int = 0
    pages: int = 0
    exchanges: list[ServedExchange] = field(default_factory=list)
    sent: list[Step] = field(default_factory=list)
    recorded: Recorded | None = None
    settling: Lock = field(default_factory=Lock)

    @property
    def late(self) -> list[str]:
        """What was asked for after the end, and refused."""
        return [f"{e.method} {e.path}" for e in self.run.events if e.kind == "late"]

    def end(self, status: RunStatus, action: str | None = None) -> None:
        """End the run; nothing if it has ended."""
        if self.status == "open":
            self.status, self.last_action = status, action
            self.message = self.run.declared if action is None else spoken(action)

    def settle(self) -> Recorded:
        """Return what the run came to, worked out once."""
        with self.settling, self.run.lock:
            if self.recorded is None:
                self.recorded = self._recorded()
                self.run.state.close()
                self.exchanges.clear()
            return self.recorded

    def _recorded(self) -> Recorded:
        observed = ObservedRun(self.run.start_url, self.exchanges)
        version = self.run.state.version
        if self.last_action is not None:
            observed.add(self.last_action, version, version)
        steps = self.sent or observed.steps
        evidence = self.run.evidence(self.message, observed.actions, self.job.fewest or 0)
        last = Step(index=len(steps), observation=observed.here)
        finding = verify(evidence)
        facts = {
            **run_facts(self.run, finding),
            "steps_from": "agent" if self.sent else "requests",
            "ended": self.status,
        }
        trajectory = run_trajectory(self.job, evidence, [*steps, last], {})
        return Recorded(trajectory, finding, facts, network_trace(self.exchanges))


class RunHost:
    """The runs of a server. With a ``folder`` what runs come to is kept in it, as ``trajudge env
    record`` would write it; ``subject`` tells its recording from another."""

    def __init__(
        self,
        tasks: Tasks,
        limits: HostLimits,
        folder: Path | None = None,
        subject: Mapping[str, Any] | None = None,
    ) -> None:
        self.limits = limits
        self.tasks = tasks
        self.runs: dict[str, HostedRun] = {}
        self.batches: dict[str, tuple[str, ...]] = {}
        self.origin = ORIGIN
        self._secret = token_bytes(32)
        self._attempts: Counter[tuple[str, str]] = Counter()
        self._written: set[str] = set()
        self._journal = None if folder is None else self._opened(folder, subject or {})

    def _opened(self, folder: Path, subject: Mapping[str, Any]) -> Journal:
        """Open the folder for further runs. Raises UserError."""
        journal = Journal(folder, {"served": dict(subject)})
        if journal.counts is not None:
            raise UserError(f"--out {folder}: holds a recording that was closed: name another one")
        for name, entry in journal.done().items():
            key = TrajectoryKey.model_validate(entry["trajectory"]["key"])
            attempts = max(self._attempts[key.agent, key.task_id], key.attempt + 1)
            self._attempts[key.agent, key.task_id] = attempts
            self._written.add(name)
        return journal

    # --- the harness ---

    def open(self, wish: TaskRequest) -> HostedRun:
        """Open a run. Raises NoSuchTask, and TooMany where no more may be open."""
        case = self.tasks.find(wish.task, wish.level, wish.seed, wish.split)
        now = monotonic()
        running = [one.until for one in self.runs.values() if one.status == "open"]
        if len(running) >= self.limits.runs:
            raise TooMany(f"{len(running)} runs are open: finish some", min(running) - now)
        minutes = min(wish.minutes or self.limits.minutes, self.limits.minutes)
        with mistakes_of(case.config.app, f"{case.id} cannot be served"):
            run = open_run(case.config, self._secret, token_hex(16), case.goal, origin=self.origin)
        run.goal = _with_answer(case.goal, wish, run)
        attempt = self._attempts[wish.agent, case.id]
        self._attempts[wish.agent, case.id] += 1
        job = Job(
            config=case.config,
            agent=wish.agent,
            attempt=attempt,
            goal=run.goal,
            shortest=case.shortest,
            fewest=case.fewest,
        )
        hosted = HostedRun(
            id=run.id,
            job=job,
            token=token_urlsafe(32),
            run=run,
            until=now + 60 * minutes,
            ends_at=datetime.now(UTC) + timedelta(minutes=minutes),
            max_steps=wish.max_steps,
        )
        self.runs[run.id] = hosted
        return hosted

    def drop(self, hosted: HostedRun) -> None:
        """Forget a run; one that is open is not recorded."""
        self.runs.pop(hosted.id, None)
        if hosted.recorded is None and hosted.status == "open":
            hosted.end("expired")
            with hosted.run.lock:
                hosted.run.state.close()
        else:
            self.settle(hosted)

    def settle(self, hosted: HostedRun) -> Recorded:
        """Return what a run that has ended came to, and keep it."""
        recorded = hosted.settle()
        with hosted.settling:
            if self._journal is not None and hosted.id not in self._written:
                self._written.add(hosted.id)
                self._journal.add(hosted.id, recorded)
        return recorded

    def sweep(self) -> None:
        """End the runs whose time is over, work out what ended, and forget the oldest."""
        now = monotonic()
        for hosted in list(self.runs.values()):
            if hosted.status == "open" and hosted.until <= now:
                hosted.end("expired")
            if hosted.status != "open":
                self.settle(hosted)
        ended = [one for one in self.runs.values() if one.status != "open"]
        for hosted in ended[: max(0, len(ended) - self.limits.kept)]:
            self.runs.pop(hosted.id, None)

    async def watch(self) -> None:
        """Sweep again and again, until it is cancelled."""
        while True:
            await asyncio.sleep(SWEEP)
            await asyncio.to_thread(self.sweep)

    def close(self) -> None:
        """End all runs and write what they came to."""
        for hosted in list(self.runs.values()):
            if hosted.status == "open" and not (hosted.requests or hosted.sent):
                self.drop(hosted)  # nobody came
            else:
                hosted.end("expired")
                self.settle(hosted)
        if self._journal is not None and self._written:
            assemble(self._journal, sorted(self._written))

    # --- the site ---

    async def serve_page(self, request: web.Request) -> web.Response:
        """Answer a browser's request with the run at whose origin it was made."""
        hosted = self.runs.get(request.host.partition(".")[0])
        if hosted is None or request.host != hosted.run.origin.partition("://")[2]:
            return web.Response(status=404, text="no such run")
        size = int(request.content_length or 0)
        if hosted.status == "open" and hosted.until <= monotonic():
            hosted.end("expired")
        if hosted.status != "open":
            with hosted.run.lock:
                hosted.run.note("late", request.method, request.path)
            return web.Response(status=410, text="This run has ended.")
        try:
            self.count(hosted, size)
        except TooMany as full:
            headers = {"Retry-After": str(full.seconds)}
            return web.Response(status=429, text=str(full), headers=headers)
        read = await read_request(request)
        began, before = datetime.now(UTC), hosted.run.state.version
        response = answer_request(hosted.run, read)
        hosted.bytes += len(response.body)
        if response.kept:  # what every page has is no part of the trace
            return await send_page(hosted.run, response)
        exchange = ServedExchange(
            request=read,
            url=f"{hosted.run.origin}{request.path_qs}",
            response=response,
            before=before,
            after=hosted.run.state.version,
            started=began.isoformat(),
            milliseconds=(datetime.now(UTC) - began).total_seconds() * 1000,
        )
        hosted.exchanges.append(exchange)
        if exchange.is_page and not response.location:
            hosted.pages += 1
        if hosted.run.declared is not None:
            hosted.end("finished")
        elif hosted.max_steps is not None and hosted.pages > hosted.max_steps:
            hosted.end("expired")
        return await send_page(hosted.run, response)

    def count(self, hosted: HostedRun, size: int) -> None:
        """Count a request of a run. Raises TooMany."""
        left = hosted.until - monotonic()
        if hosted.requests >= self.limits.requests:
            raise TooMany(f"a run may make {self.limits.requests:,} requests", left)
        if hosted.bytes + size > self.limits.bytes:
            raise TooMany(f"a run may send and receive {self.limits.bytes:,} bytes", left)
        hosted.requests += 1
        hosted.bytes += size


def same_token(left: str, right: str) -> bool:
    """Compare two tokens in a time that tells nothing."""
    return hmac.compare_digest(left.encode("utf-8", "replace"), right.encode())


def _with_answer(goal: str, wish: TaskRequest, run: ServedRun) -> str:
    if wish.answer == "action":
        return goal
    bare = without_answer_form(goal, run.scenario)
    if wish.answer == "page":
        return with_answer_form(bare, run.scenario, run.answer_url)
    return bare
