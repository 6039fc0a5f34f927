"""Episodes for trainers that speak OpenEnv (openenv-core 0.3: ``/ws``, ``/reset``, ``/step``,
``/state``, ``/schema``, ``/metadata``, ``/health``), with the fields of its ``browsergym_env``.

The text engine plays; a socket has an episode of its own, and over plain HTTP an ``episode_id``
has. AgentGym's routes (``/create``, ``/observation``, ``/close``, and ``/reset`` and ``/step`` with
an ``env_idx``) lead to the same episodes. Neither protocol knows a token, so that this listens on
loopback alone, and to no page of a browser.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from secrets import randbelow, token_bytes, token_hex
from threading import Lock
from time import monotonic
from typing import Any, NamedTuple

import orjson
from aiohttp import WSMsgType, web
from pydantic import Field, ValidationError

from trajudge.environments.agents.protocol import Job
from trajudge.environments.checks.draws import NoSuchTask
from trajudge.environments.hosting.tasks import Tasks
from trajudge.environments.model.config import Split
from trajudge.environments.recording.episode import Episode
from trajudge.environments.serving.run import open_run
from trajudge.environments.text import TextSession
from trajudge.trajectories.model import Record
from trajudge.util.errors import UserError
from trajudge.util.machine import is_loopback
from trajudge.util.validation import first_error

SESSIONS = 64
IDLE = 1_800.0  # seconds after which an episode over plain HTTP may be forgotten
MOST_TREE = 300_000  # characters: clients before openenv-core 0.2.2 failed beyond 1 MB
MOST_MESSAGE = 2**20
BENCHMARK = "trajudge"
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class OpenEnvAction(Record):
    """One action in BrowserGym's syntax."""

    action_str: str
    metadata: dict[str, Any] = Field(default_factory=dict)


class OpenEnvObservation(Record):
    """What the page shows. ``text`` is the accessibility tree, as ``axtree_txt``; the text engine
    takes no ``screenshot``."""

    text: str = ""
    url: str = ""
    screenshot: None = None
    goal: str = ""
    axtree_txt: str = ""
    pruned_html: str = ""
    error: str = ""
    last_action_error: bool = False


class OpenEnvState(Record):
    """How the episode stands."""

    episode_id: str | None = None
    step_count: int = 0
    benchmark: str = BENCHMARK
    task_name: str = ""
    task_id: str | None = None
    goal: str = ""
    current_url: str = ""
    max_steps: int | None = None
    cum_reward: float = 0.0


class ResetWish(Record):
    """What an episode begins with: ``task``, ``level``, ``split`` as in ``TaskRequest``."""

    seed: int | None = None
    episode_id: str | None = None
    task: str | None = None
    level: int | None = None
    split: Split | None = None


class _Message(Record):
    type: str
    data: dict[str, Any] = Field(default_factory=dict)


class EpisodeStep(NamedTuple):
    """An observation; ``reward`` is None where success is open to argument at the end."""

    observation: OpenEnvObservation
    reward: float | None
    done: bool


class NoEpisode(Exception):
    """An action came before a reset, or after the end."""


class TrainingSession:
    """One episode after another, of a policy that sees text."""

    def __init__(self, tasks: Tasks, secret: bytes) -> None:
        self.used = monotonic()
        self.state = OpenEnvState()
        self.last = EpisodeStep(OpenEnvObservation(), None, False)
        self._tasks, self._secret = tasks, secret
        self._episode: Episode | None = None
        self._lock = Lock()

    def reset(self, wish: ResetWish) -> EpisodeStep:
        """Begin an episode. Raises NoSuchTask."""
        seed = randbelow(2**31) if wish.seed is None else wish.seed
        case = self._tasks.find(wish.task, wish.level, seed, wish.split, pictures=False)
        with self._lock:
            self._close()
            run = open_run(case.config, self._secret, token_hex(16), case.goal)
            job = Job(
                config=case.config,
                agent="policy",
                goal=run.goal,
                shortest=case.shortest,
                fewest=case.fewest,
            )
            self._episode = Episode(TextSession(run), run, job)
            self.state = OpenEnvState(
                episode_id=wish.episode_id or token_hex(8),
                task_name=f"{case.config.app}.{case.config.scenario}",
                goal=run.goal,
                current_url=run.start_url,
                max_steps=job.budget,
            )
            return self._seen(self._episode, 0.0)

    def step(self, action: str) -> EpisodeStep:
        """Do an action. Raises NoEpisode."""
        with self._lock:
            episode = self._episode
            if episode is None:
                raise NoEpisode("no episode is under way: reset first")
            episode.act(action, None)
            reward: float | None = 0.0
            if episode.is_over:
                _, finding = episode.end({})
                success = finding.labels.success
                reward = None if success is None else float(success)
            seen = self._seen(episode, reward)
            if episode.is_over:
                self._close()
            return seen

    def close(self) -> None:
        """End the episode."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        if self._episode is not None:
            self._episode.run.state.close()
            self._episode = None

    def _seen(self, episode: Episode, reward: float | None) -> EpisodeStep:
        self.used = monotonic()
        seen = episode.view.observation
        tree = (seen.axtree or "")[:MOST_TREE]
        observation = OpenEnvObservation(
            text=tree,
            axtree_txt=tree,
            url=seen.url or "",
            goal=episode.run.goal,
            error=seen.page_error or "",
            last_action_error=seen.page_error is not None,
        )
        self.state = self.state.model_copy(
            update={
                "step_count": len(episode.actions),
                "current_url": observation.url,
                "cum_reward": self.state.cum_reward + (reward or 0.0),
            }
        )
        self.last = EpisodeStep(observation, reward, episode.is_over)
        return self.last


class OpenEnvServer:
    """The routes, and the sessions behind them."""

    def __init__(self, tasks: Tasks, sessions: int = SESSIONS) -> None:
        self._tasks, self._most = tasks, sessions
        self._secret = token_bytes(32)
        self._sockets = 0
        self._named: dict[str, TrainingSession] = {}

    def application(self) -> web.Application:
        """Return the routes as an application."""
        application = web.Application(client_max_size=MOST_MESSAGE, middlewares=[_guarded])
        application.add_routes(
            [
                web.get("/ws", self.socket),
                web.post("/reset", self.reset),
                web.post("/step", self.step),
                web.get("/state", self.state),
                web.get("/schema", self.schema),
                web.get("/metadata", self.metadata),
                web.get("/health", self.health),
                web.post("/create", self.create),
                web.get("/observation", self.observation),
                web.post("/close", self.close),
            ]
        )
        return application

    # --- OpenEnv over a socket ---

    async def socket(self, request: web.Request) -> web.StreamResponse:
        """Play over one socket until it is closed."""
        socket = web.WebSocketResponse(max_msg_size=MOST_MESSAGE)
        await socket.prepare(request)
        if self._full():
            await _send(socket, "error", _failure("CAPACITY_REACHED", self._is_full))
            await socket.close()
            return socket
        self._sockets += 1
        session = self._session()
        try:
            async for message in socket:
                if message.type != WSMsgType.TEXT:
                    break
                kind, content = await _answered(session, message.data)
                if kind == "close":
                    break
                await _send(socket, kind, content)
        finally:
            self._sockets -= 1
            await asyncio.to_thread(session.close)
        return socket

    # --- OpenEnv and AgentGym over plain HTTP ---

    async def reset(self, request: web.Request) -> web.Response:
        body = await _object(request)
        wish, number = dict(body), body.pop("env_idx", None)
        if number is not None:  # AgentGym: idx is the number of a task
            session = self._known(str(number))
            named = {name: wish.get(name) for name in ("task", "level", "split")}
            step = await _reset(session, {"seed": wish.get("seed", wish.get("idx")), **named})
            return _json({"observation": _as_text(step.observation), "info": {}})
        name = str(wish.get("episode_id") or "")
        if name not in self._named:
            if self._full():
                raise web.HTTPServiceUnavailable(text=self._is_full)
            self._named[name] = self._session()
        return _json(_written(await _reset(self._named[name], wish)))

    async def step(self, request: web.Request) -> web.Response:
        body = await _object(request)
        if "env_idx" in body:
            step = await _step(
                self._known(str(body["env_idx"])), {"action_str": body.get("action")}
            )
            return _json(
                {
                    "observation": _as_text(step.observation),
                    "reward": step.reward,
                    "terminated": step.done,
                    "truncated": False,
                    "info": {},
                }
            )
        session = self._known(str(body.get("episode_id") or ""))
        action = body.get("action")
        return _json(_written(await _step(session, action if isinstance(action, dict) else {})))

    async def state(self, request: web.Request) -> web.Response:
        return _json(self._known(request.query.get("episode_id", "")).state.model_dump())

    async def schema(self, _: web.Request) -> web.Response:
        return _json(
            {
                "action": OpenEnvAction.model_json_schema(),
                "observation": OpenEnvObservation.model_json_schema(),
                "state": OpenEnvState.model_json_schema(),
            }
        )

    async def metadata(self, _: web.Request) -> web.Response:
        about = "Tasks in sandboxed web applications; success follows from their state."
        return _json({"name": BENCHMARK, "description": about})

    async def health(self, _: web.Request) -> web.Response:
        return _json({"status": "healthy"})

    async def create(self, _: web.Request) -> web.Response:
        if self._full():
            raise web.HTTPServiceUnavailable(text=self._is_full)
        number = randbelow(2**31)
        self._named[str(number)] = self._session()
        return _json({"env_idx": number})

    async def observation(self, request: web.Request) -> web.Response:
        last = self._known(request.query.get("env_idx", "")).last
        return _json({"observation": _as_text(last.observation)})

    async def close(self, request: web.Request) -> web.Response:
        session = self._named.pop(str((await _object(request)).get("env_idx")), None)
        if session is not None:
            await asyncio.to_thread(session.close)
        return _json({"closed": session is not None})

    # --- sessions ---

    def _session(self) -> TrainingSession:
        return TrainingSession(self._tasks, self._secret)

    def _known(self, name: str) -> TrainingSession:
        session = self._named.get(name)
        if session is None:
            raise web.HTTPNotFound(text="no such episode: reset first")
        return session

    @property
    def _is_full(self) -> str:
        return f"{self._most} episodes are under way: close one"

    def _full(self) -> bool:
        """Tell whether no further session fits, after forgetting those that were left."""
        for name, session in list(self._named.items()):
            if session.used + IDLE < monotonic():
                self._named.pop(name).close()
        return self._sockets + len(self._named) >= self._most


async def _reset(session: TrainingSession, wish: Mapping[str, Any]) -> EpisodeStep:
    return await asyncio.to_thread(session.reset, ResetWish.model_validate(wish))


async def _step(session: TrainingSession, action: Mapping[str, Any]) -> EpisodeStep:
    return await asyncio.to_thread(session.step, OpenEnvAction.model_validate(action).action_str)


async def _answered(session: TrainingSession, text: str) -> tuple[str, dict[str, Any]]:
    """Return the kind and content of the reply to a message."""
    try:
        message = _Message.model_validate_json(text)
        if message.type == "reset":
            return "observation", _written(await _reset(session, message.data))
        if message.type == "step":
            return "observation", _written(await _step(session, message.data))
        if message.type in ("state", "close"):
            return message.type, session.state.model_dump()
        why, code = f"Unknown message type: {message.type}", "UNKNOWN_TYPE"
    except ValidationError as error:
        why = first_error(error, "the message")
        code = "INVALID_JSON" if "is not JSON" in why else "VALIDATION_ERROR"
    except (NoEpisode, NoSuchTask, UserError) as error:
        why, code = str(error), "EXECUTION_ERROR"
    return "error", _failure(code, why)


def _failure(code: str, message: str) -> dict[str, Any]:
    return {"message": message, "code": code}


def _written(step: EpisodeStep) -> dict[str, Any]:
    observation = step.observation.model_dump()
    return {"observation": observation, "reward": step.reward, "done": step.done}


def _as_text(seen: OpenEnvObservation) -> str:
    error = f"\nError: {seen.error}" if seen.error else ""
    return f"Goal: {seen.goal}\nURL: {seen.url}{error}\n{seen.axtree_txt}"


async def _send(socket: web.WebSocketResponse, kind: str, content: Mapping[str, Any]) -> None:
    await socket.send_str(orjson.dumps({"type": kind, "data": content}).decode())


async def _object(request: web.Request) -> dict[str, Any]:
    try:
        body = orjson.loads(await request.read() or b"{}")
    except orjson.JSONDecodeError as error:
        raise web.HTTPBadRequest(text=f"the request is not JSON ({error})") from error
    if not isinstance(body, dict):
        raise web.HTTPBadRequest(text="the request is no JSON object")
    return body


def _json(content: object) -> web.Response:
    return web.Response(body=orjson.dumps(content), content_type="application/json")


@web.middleware
async def _guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuse pages of a browser: they would come with an Origin, or by a name of their own."""
    name = request.host.rpartition(":")[0] or request.host
    if "Origin" in request.headers or not is_loopback(name.strip("[]")):
        raise web.HTTPForbidden(text="for programs on this machine alone")
    try:
        return await handler(request)
    except ValidationError as error:
        raise web.HTTPUnprocessableEntity(text=first_error(error, "the request")) from error
    except (NoEpisode, NoSuchTask) as error:
        raise web.HTTPConflict(text=str(error)) from error
