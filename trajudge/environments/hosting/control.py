"""The control listener: JSON over HTTP for whoever runs agents, a token in every request's header.

The harness's token opens runs and reads what they came to; a run's own token reads how it stands,
sends steps and finishes it. Errors are ``{"error": SENTENCE}``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from hashlib import sha256
from secrets import token_hex
from typing import Annotated, Any, Literal, TypeVar
from weakref import WeakValueDictionary

import orjson
from aiohttp import web
from pydantic import Field, ValidationError

from trajudge.environments.checks.draws import NoSuchTask
from trajudge.environments.hosting.runs import (
    HostedRun,
    RunEnding,
    RunHost,
    SentStep,
    TaskRequest,
    TooMany,
    same_token,
)
from trajudge.environments.model.config import Split
from trajudge.environments.recording.episode import Recorded
from trajudge.trajectories.model import Record, Trajectory
from trajudge.util.errors import UserError
from trajudge.util.validation import first_error

BODY = 16 * 2**20
MOST_KEYS = 10_000  # idempotency keys that are remembered
MOST_STEPS = 200  # that an agent sends of one run
HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
R = TypeVar("R", bound=Record)


class BatchRequest(Record):
    """Runs that are opened together, all or none."""

    runs: Annotated[list[TaskRequest], Field(min_length=1, max_length=1_000)]


class SentSteps(Record):
    """Steps that an agent adds to those it has sent."""

    steps: Annotated[list[SentStep], Field(min_length=1, max_length=MOST_STEPS)]


class TaskFilter(Record):
    """Which tasks are listed."""

    split: Split | None = None
    level: Literal["1", "2", "3"] | None = None


class Control:
    """The routes. ``token`` is the harness's."""

    def __init__(self, host: RunHost, token: str) -> None:
        self.host = host
        self._token = token
        self._opened: dict[bytes, tuple[bytes, dict[str, Any]]] = {}  # by idempotency key
        self._locks = WeakValueDictionary[bytes, asyncio.Lock]()

    def application(self) -> web.Application:
        """Return the routes as an application."""
        application = web.Application(client_max_size=BODY, middlewares=[_errors])
        application.add_routes(
            [
                web.get("/v1/tasks", self.harness(self.tasks)),
                web.post("/v1/runs", self.harness(self.open)),
                web.get("/v1/runs/{id}", self.status),
                web.post("/v1/runs/{id}/steps", self.steps),
                web.post("/v1/runs/{id}/finish", self.finish),
                web.get("/v1/runs/{id}/verdict", self.harness(self.verdict)),
                web.delete("/v1/runs/{id}", self.harness(self.delete)),
                web.post("/v1/batches", self.harness(self.open_batch)),
                web.get("/v1/batches/{id}.jsonl", self.harness(self.batch)),
            ]
        )
        return application

    # --- who asks ---

    def harness(self, handler: Handler) -> Handler:
        """Return a handler that wants the harness's token."""

        async def guarded(request: web.Request) -> web.StreamResponse:
            if not same_token(_bearer(request), self._token):
                raise _unauthorized()
            return await handler(request)

        return guarded

    def _run(self, request: web.Request) -> HostedRun:
        """Return the run of the address, for its own token or the harness's."""
        hosted = self.host.runs.get(request.match_info["id"])
        bearer = _bearer(request)
        if same_token(bearer, self._token):
            if hosted is None:
                raise _error(web.HTTPNotFound, "no such run: it was never opened, or is forgotten")
            return hosted
        # The same comparison where there is no such run: who asks learns neither.
        fits = same_token(bearer, hosted.token if hosted else "-" * 43)
        if hosted is None or not fits:
            raise _unauthorized()
        return hosted

    # --- the harness ---

    async def tasks(self, request: web.Request) -> web.Response:
        wish = _read(TaskFilter, orjson.dumps({**request.query}))
        level = None if wish.level is None else int(wish.level)
        return _json({"tasks": self.host.tasks.listed(wish.split, level)})

    async def open(self, request: web.Request) -> web.Response:
        async def made(body: bytes) -> dict[str, Any]:
            hosted = await asyncio.to_thread(self.host.open, _read(TaskRequest, body))
            return _opened(hosted)

        return await self._once(request, made)

    async def open_batch(self, request: web.Request) -> web.Response:
        async def made(body: bytes) -> dict[str, Any]:
            runs: list[HostedRun] = []
            try:
                for wish in _read(BatchRequest, body).runs:
                    runs.append(await asyncio.to_thread(self.host.open, wish))
            except Exception:
                for hosted in runs:
                    self.host.drop(hosted)
                raise
            name = f"b{token_hex(6)}"
            self.host.batches[name] = tuple(hosted.id for hosted in runs)
            return {"id": name, "runs": [_opened(hosted) for hosted in runs]}

        return await self._once(request, made)

    async def _once(
        self, request: web.Request, make: Callable[[bytes], Awaitable[dict[str, Any]]]
    ) -> web.Response:
        """Return 201 with what ``make`` gives; for an Idempotency-Key that came before, what it
        gave then."""
        body = await request.read()
        if (sent := request.headers.get("Idempotency-Key")) is None:
            return _json(await make(body), 201)
        key = sha256(sent.encode(errors="surrogateescape")).digest()
        digest = sha256(f"{request.path} ".encode() + body).digest()
        # The second of two requests that come at the same time waits for what the first gives.
        async with self._locks.setdefault(key, asyncio.Lock()):
            if key not in self._opened:
                self._opened[key] = (digest, await make(body))
                while len(self._opened) > MOST_KEYS:
                    del self._opened[next(iter(self._opened))]
            before, content = self._opened[key]
        if before != digest:
            raise _error(web.HTTPConflict, "the Idempotency-Key came with another request")
        return _json(content, 201)

    async def verdict(self, request: web.Request) -> web.Response:
        hosted = self._run(request)
        if hosted.status == "open":
            raise _error(web.HTTPConflict, "the run is open: its agent has not finished")
        return _json(verdict_of(hosted, await asyncio.to_thread(self.host.settle, hosted)))

    async def delete(self, request: web.Request) -> web.Response:
        await asyncio.to_thread(self.host.drop, self._run(request))
        return web.Response(status=204, headers=HEADERS)

    async def batch(self, request: web.Request) -> web.Response:
        names = self.host.batches.get(request.match_info["id"])
        if names is None:
            raise _error(web.HTTPNotFound, "no such batch")
        runs = [hosted for name in names if (hosted := self.host.runs.get(name))]
        if running := sum(hosted.status == "open" for hosted in runs):
            raise _error(web.HTTPConflict, f"{running} of its runs are open")
        lines = await asyncio.to_thread(
            lambda: _lines([self.host.settle(hosted).trajectory for hosted in runs])
        )
        return web.Response(body=lines, content_type="application/x-ndjson", headers=HEADERS)

    # --- the agent ---

    async def status(self, request: web.Request) -> web.Response:
        hosted = self._run(request)
        return _json(
            {
                "id": hosted.id,
                "status": hosted.status,
                "pages": hosted.pages,
                "steps": len(hosted.sent),
                "ends_at": hosted.ends_at.isoformat(timespec="seconds"),
            }
        )

    async def steps(self, request: web.Request) -> web.Response:
        hosted = self._run(request)
        if hosted.status != "open":
            raise _error(web.HTTPConflict, "the run has ended")
        self.host.count(hosted, int(request.content_length or 0))
        sent = _read(SentSteps, await request.read()).steps
        if len(hosted.sent) + len(sent) > MOST_STEPS:
            raise _error(web.HTTPBadRequest, f"steps: a run has at most {MOST_STEPS}")
        try:
            steps = [one.step(len(hosted.sent) + number) for number, one in enumerate(sent)]
        except ValueError as error:
            raise _error(web.HTTPBadRequest, str(error)) from error
        hosted.sent += steps
        return _json({"steps": len(hosted.sent)}, 202)

    async def finish(self, request: web.Request) -> web.Response:
        """End the run; later endings change nothing."""
        hosted = self._run(request)
        hosted.end("finished", _read(RunEnding, await request.read() or b"{}").action)
        return _json({"id": hosted.id, "status": hosted.status}, 202)


def verdict_of(hosted: HostedRun, recorded: Recorded) -> dict[str, Any]:
    """Return what a run came to, for the harness alone."""
    return {
        "id": hosted.id,
        "task": hosted.job.config.id,
        "agent": hosted.job.agent,
        "attempt": hosted.job.attempt,
        "status": hosted.status,
        "answer": recorded.trajectory.answer,
        "labels": recorded.finding.labels._asdict(),
        "facts": recorded.facts,
        "events": [event._asdict() for event in hosted.run.events],
        "late": hosted.late,
        "har": recorded.har,
    }


def _opened(hosted: HostedRun) -> dict[str, Any]:
    return {
        "id": hosted.id,
        "goal": hosted.run.goal,
        "start_url": hosted.run.start_url,
        "answer_url": hosted.run.answer_url,
        "run_token": hosted.token,
        "ends_at": hosted.ends_at.isoformat(timespec="seconds"),
    }


def _lines(runs: list[Trajectory]) -> bytes:
    """Return trajectories as lines of ``--data trajudge:FILE``, without pictures."""
    return b"".join(_without_pictures(run).to_json(str) + b"\n" for run in runs)


def _without_pictures(run: Trajectory) -> Trajectory:
    steps = (
        step.model_copy(
            update={"observation": step.observation.model_copy(update={"screenshot": None})}
        )
        for step in run.steps
    )
    return run.model_copy(update={"steps": tuple(steps)})


def _read(kind: type[R], body: bytes) -> R:
    try:
        return kind.model_validate_json(body)
    except ValidationError as error:
        raise _error(web.HTTPBadRequest, first_error(error, "the request")) from error


def _bearer(request: web.Request) -> str:
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _json(content: object, status: int = 200) -> web.Response:
    return web.Response(
        body=orjson.dumps(content), status=status, content_type="application/json", headers=HEADERS
    )


def _error(kind: type[web.HTTPError], sentence: str) -> web.HTTPError:
    return kind(
        text=orjson.dumps({"error": sentence}).decode(),
        content_type="application/json",
        headers=HEADERS,
    )


def _unauthorized() -> web.HTTPError:
    error = _error(web.HTTPUnauthorized, "send a token: Authorization: Bearer TOKEN")
    error.headers["WWW-Authenticate"] = "Bearer"
    return error


@web.middleware
async def _errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Say what cannot be done in one sentence."""
    try:
        return await handler(request)
    except TooMany as full:
        error = _error(web.HTTPTooManyRequests, str(full))
        error.headers["Retry-After"] = str(full.seconds)
        raise error from full
    except NoSuchTask as missing:
        raise _error(web.HTTPNotFound, str(missing)) from missing
    except UserError as mistake:
        raise _error(web.HTTPInternalServerError, str(mistake)) from mistake
