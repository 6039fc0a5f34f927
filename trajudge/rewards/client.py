"""The client of ``trajudge serve``: push a trajectory with its images, request its reward."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from typing import Any, NamedTuple, TypeVar

import aiohttp
import orjson

from trajudge.judges.adapters.errors import retry_after
from trajudge.rewards.reward import Reward, neutral_values
from trajudge.rewards.watch import ReferencePoint
from trajudge.trajectories.model import ImageRef, Trajectory, TrajectoryKey
from trajudge.util.errors import ImageUnreadable

URL, TOKEN = "TRAJUDGE_REWARD_URL", "TRAJUDGE_REWARD_TOKEN"
DEADLINE = 170.0  # seconds
NAME_LENGTH = 512  # characters of an id
_PAUSE = 1.0  # seconds, without a Retry-After of the server
_REFERENCE_TIMEOUT = 5.0  # seconds; no reward depends on the answer
_RETRIED = frozenset({429, 500, 502, 503, 504})
_MAX_UPLOADED = 100_000  # hashes of images that the server has
_CONNECTIONS = 8
_JSON = {"Content-Type": "application/json"}

T = TypeVar("T")


class RewardUnavailable(Exception):
    """The server refused the request or did not answer in time."""


class RewardLate(RewardUnavailable):
    """The server was unreachable or busy until the deadline."""


class ServerReward(NamedTuple):
    """A reward, and the neutral value for its abstention: the mean of its group if it has one, else
    the server's (None: there is none)."""

    reward: Reward
    neutral_value: float | None

    def number(self) -> float:
        """Return the value, or the neutral value. Raises Abstained without either."""
        (value,) = neutral_values([self.reward], base_rate=self.neutral_value)
        return value


class RewardGroup(NamedTuple):
    """The group in which a trainer compares rewards: its name and its number of members."""

    name: str
    size: int


class RewardClient:
    """Requests the rewards of trajectories from ``trajudge serve``.

        client = RewardClient("http://127.0.0.1:8377")
        reward = await client.reward(trajectory)  # synchronous: client.reward_sync(trajectory)
        if reward.value is None: ...  # the judge abstained, reward.abstained is the reason

    ``url`` and ``token`` default to the variables TRAJUDGE_REWARD_URL and TRAJUDGE_REWARD_TOKEN.
    While the server is unreachable or busy, requests are repeated for ``deadline`` seconds; then
    the reward abstains as "late". Errors that waiting does not resolve, such as a wrong token,
    raise RewardUnavailable. ``stopped`` is True once a reward abstained as "drift": all later ones
    will, too.
    """

    def __init__(
        self, url: str | None = None, *, token: str | None = None, deadline: float = DEADLINE
    ) -> None:
        """Set address and token. Raises RewardUnavailable without an address."""
        address = url or os.environ.get(URL)
        if not address:
            raise RewardUnavailable(f"no reward server: set {URL}, or give url")
        self.url, self.deadline, self.stopped = address.rstrip("/"), deadline, False
        self._has_reference = True  # until the server says that there is none
        token = token or os.environ.get(TOKEN)
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._uploaded: set[str] = set()

    async def reward(
        self,
        trajectory: Trajectory,
        *,
        name: str | None = None,
        group: RewardGroup | None = None,
        step: int | None = None,
    ) -> Reward:
        """Push a trajectory and return its reward; ``name`` defaults to one from its content.
        Raises RewardUnavailable."""
        started = time.monotonic()
        try:
            name = await self.push(trajectory, name)
        except RewardLate as error:
            return _late(trajectory.key, str(error), started)
        left = self.deadline - (time.monotonic() - started)
        answer = await self.ask(name, group=group, step=step, deadline=left)
        return answer.reward.model_copy(update={"key": trajectory.key})

    async def push(self, trajectory: Trajectory, name: str | None = None) -> str:
        """Send a trajectory and those of its images that the server lacks; return its name.

        Images that cannot be read, or that the server refuses, are skipped: a judge that needs them
        fails. Raises RewardUnavailable.
        """
        pictures: dict[str, ImageRef] = {}

        def keep(ref: ImageRef) -> str:
            digest = sha256(ref.read()).hexdigest()
            pictures[digest] = ref
            return digest

        line = await asyncio.to_thread(trajectory.to_json, keep)
        name = name or f"{trajectory.key} {sha256(line).hexdigest()[:12]}"[-NAME_LENGTH:]
        body = orjson.dumps({"id": name, "trajectory": orjson.Fragment(line)})
        end = time.monotonic() + self.deadline
        async with self._session() as session:
            # Images first, because requests that wait for the trajectory continue with it.
            new = pictures.keys() - self._uploaded
            await asyncio.gather(*(self._upload(session, one, pictures[one], end) for one in new))
            answer = await self._send(session, "POST", "/v1/trajectories", end, body)
            if not isinstance(answer, Mapping) or "missing_images" not in answer:
                raise _wrong_server(self.url)
            lost = [one for one in answer["missing_images"] if one in pictures.keys() - new]
            for digest in lost:  # the server has another store than before
                await self._upload(session, digest, pictures[digest], end)
        return name

    async def ask(
        self,
        name: str,
        *,
        group: RewardGroup | None = None,
        step: int | None = None,
        deadline: float | None = None,
    ) -> ServerReward:
        """Return the reward of a pushed trajectory; an abstention waits for the rest of its
        ``group``. ``step`` is the training's. Raises RewardUnavailable."""
        item: dict[str, Any] = {"id": name}
        if group is not None:
            item |= {"group": group.name, "group_size": group.size}
        body: dict[str, Any] = {"items": [item]} | ({} if step is None else {"step": step})
        started = time.monotonic()
        end = started + (self.deadline if deadline is None else deadline)

        def within(left: float) -> bytes:
            return orjson.dumps({**body, "deadline": left})

        async with self._session() as session:
            while True:
                try:
                    content = await self._send(session, "POST", "/v1/rewards", end, within)
                except RewardLate as error:
                    key = TrajectoryKey(benchmark="", agent="", task_id=name)
                    return ServerReward(_late(key, str(error), started), None)
                answer = _parse_reward(content, self.url)
                if answer.reward.abstained not in ("late", "unknown") or _left(end) < _PAUSE:
                    self.stopped |= answer.reward.abstained == "drift"
                    return answer
                await asyncio.sleep(_PAUSE)

    async def reference(self, before: int) -> ReferencePoint | None:
        """Return the reference judge's point of the last step before this one; None without a
        point, a reference judge or an answer."""
        if not self._has_reference:
            return None
        path = f"/v1/reference?before={before}"
        end = time.monotonic() + min(_REFERENCE_TIMEOUT, self.deadline)
        try:
            async with self._session() as session:
                curve = await self._send(session, "GET", path, end)
            self._has_reference = bool(curve["judge"])
            return ReferencePoint(**curve["points"][-1]) if curve["points"] else None
        except (RewardUnavailable, KeyError, TypeError):
            return None

    def reward_sync(
        self,
        trajectory: Trajectory,
        *,
        name: str | None = None,
        group: RewardGroup | None = None,
        step: int | None = None,
    ) -> Reward:
        """Call ``reward`` synchronously, also inside a running event loop."""
        return _run(self.reward(trajectory, name=name, group=group, step=step))

    def _session(self) -> aiohttp.ClientSession:
        """Open a session in the running loop: the client may be used in several loops."""
        connector = aiohttp.TCPConnector(limit=_CONNECTIONS)
        return aiohttp.ClientSession(headers=self._headers, connector=connector)

    async def _upload(
        self, session: aiohttp.ClientSession, digest: str, picture: ImageRef, end: float
    ) -> None:
        """Send an image if the server lacks it."""
        path = f"/v1/images/{digest}"
        if await self._send(session, "HEAD", path, end, unless=404) is _REFUSED:
            try:
                content = await asyncio.to_thread(picture.read)
            except ImageUnreadable:
                return
            if await self._send(session, "PUT", path, end, content, unless=415) is _REFUSED:
                return
        if len(self._uploaded) >= _MAX_UPLOADED:
            self._uploaded.clear()
        self._uploaded.add(digest)

    async def _send(
        self,
        session: aiohttp.ClientSession,
        method: str,
        path: str,
        end: float,
        body: bytes | Callable[[float], bytes] = b"",
        *,
        unless: int | None = None,
    ) -> Any:
        """Send a request, with retries, and return the response's JSON, or _REFUSED for the status
        ``unless``. ``body`` may depend on the remaining seconds. Raises RewardLate at the ``end``,
        RewardUnavailable for other errors."""
        last = "it did not answer in time"
        while (left := _left(end)) > 0:
            pause = _PAUSE
            data = body if isinstance(body, bytes) else body(left)
            limit = aiohttp.ClientTimeout(total=left + _PAUSE)
            try:
                async with session.request(
                    method, self.url + path, data=data, headers=_JSON, timeout=limit
                ) as answer:
                    content = _json(await answer.read())
                    if answer.status == unless:
                        return _REFUSED
                    if answer.ok:
                        return content
                    last = _error_message(answer.status, content)
                    if answer.status not in _RETRIED:
                        raise RewardUnavailable(f"{self.url}: {last}")
                    pause = retry_after(answer.headers) or _PAUSE
            except (aiohttp.ClientError, TimeoutError) as error:
                last = str(error) or type(error).__name__
            await asyncio.sleep(min(pause, max(0.0, _left(end))))
        raise RewardLate(f"{self.url}: {last}")


_REFUSED = object()


def _run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine, in a new thread if an event loop is running."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


def _left(end: float) -> float:
    return end - time.monotonic()


def _late(key: TrajectoryKey, why: str, started: float) -> Reward:
    """Return the abstention for a server that did not answer, whose judge is unknown."""
    seconds = time.monotonic() - started
    return Reward(
        key=key, value=None, abstained="late", detail=why, judge="", version="", seconds=seconds
    )


def _parse_reward(content: Any, url: str) -> ServerReward:
    try:
        (reward,), (neutral,) = content["rewards"], content["neutral_values"]
        return ServerReward(Reward.model_validate(reward), neutral)
    except (KeyError, TypeError, ValueError) as error:
        raise _wrong_server(url) from error


def _wrong_server(url: str) -> RewardUnavailable:
    return RewardUnavailable(f"{url}: the server is not  trajudge serve: check the address")


def _json(body: bytes) -> Any:
    """Return the body's JSON, or None for another body, such as a gateway's error page."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return None


def _error_message(status: int, content: Any) -> str:
    message = content.get("error") if isinstance(content, Mapping) else None
    return str(message) if message else f"it answered with status {status}"
