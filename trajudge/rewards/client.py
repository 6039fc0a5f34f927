"""The client of ``trajudge serve``: push a trajectory with its pictures, ask for its reward."""

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
_PAUSE = 1.0  # seconds, where the server does not say how long
_PATIENCE = 5.0  # seconds for what no reward depends on
_AGAIN = frozenset({429, 500, 502, 503, 504})
_MOST_KNOWN = 100_000  # hashes of pictures that the server has
_CONNECTIONS = 8
_JSON = {"Content-Type": "application/json"}

T = TypeVar("T")


class RewardUnavailable(Exception):
    """The server refused, or did not answer in time; the message says how."""


class RewardLate(RewardUnavailable):
    """The server was away or busy until the deadline: later it may answer."""


class AskedReward(NamedTuple):
    """A reward, and what stands for an abstention: the mean of its group where it has one, else the
    server's neutral value (None: it has none)."""

    reward: Reward
    neutral_value: float | None

    def number(self) -> float:
        """Return the value, or what stands for it. Raises Abstained where nothing does."""
        (value,) = neutral_values([self.reward], base_rate=self.neutral_value)
        return value


class RewardGroup(NamedTuple):
    """The group whose rewards a trainer compares: its name, and the number of its members."""

    name: str
    size: int


class RewardClient:
    """Asks ``trajudge serve`` for the rewards of trajectories.

        client = RewardClient("http://127.0.0.1:8377")
        reward = await client.reward(trajectory)  # elsewhere: client.reward_sync(trajectory)
        if reward.value is None: ...  # the judge abstained, and reward.abstained says why

    ``url`` and ``token`` default to the variables TRAJUDGE_REWARD_URL and TRAJUDGE_REWARD_TOKEN.
    A server that is away, busy or not ready for ``deadline`` seconds is asked again until then; the
    reward then abstains as "late". What waiting does not mend, such as a wrong token, raises
    RewardUnavailable. ``stopped``: a reward abstained as "drift", and so will all others.
    """

    def __init__(
        self, url: str | None = None, *, token: str | None = None, deadline: float = DEADLINE
    ) -> None:
        """Take the server's address. Raises RewardUnavailable without one."""
        address = url or os.environ.get(URL)
        if not address:
            raise RewardUnavailable(f"no reward server: set {URL}, or give url")
        self.url, self.deadline, self.stopped = address.rstrip("/"), deadline, False
        self._has_reference = True  # until the server says that there is none
        token = token or os.environ.get(TOKEN)
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._known: set[str] = set()

    async def reward(
        self,
        trajectory: Trajectory,
        *,
        name: str | None = None,
        group: RewardGroup | None = None,
        step: int | None = None,
    ) -> Reward:
        """Push a trajectory, under a name by its content unless it has a ``name``, and return its
        reward. Raises RewardUnavailable."""
        started = time.monotonic()
        try:
            name = await self.push(trajectory, name)
        except RewardLate as error:
            return _late(trajectory.key, str(error), started)
        left = self.deadline - (time.monotonic() - started)
        asked = await self.ask(name, group=group, step=step, deadline=left)
        return asked.reward.model_copy(update={"key": trajectory.key})

    async def push(self, trajectory: Trajectory, name: str | None = None) -> str:
        """Send a trajectory and those of its pictures that the server lacks; return its name.

        A picture that cannot be read, or that the server does not take, is missing there: a judge
        that needs it fails. Raises RewardUnavailable.
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
            # Pictures first: whoever waits for the trajectory is woken when it comes.
            news = pictures.keys() - self._known
            await asyncio.gather(*(self._supply(session, one, pictures[one], end) for one in news))
            answer = await self._sent(session, "POST", "/v1/trajectories", end, body)
            if not isinstance(answer, Mapping) or "missing_images" not in answer:
                raise _foreign(self.url)
            gone = [one for one in answer["missing_images"] if one in pictures.keys() - news]
            for digest in gone:  # the server has another store by now
                await self._supply(session, digest, pictures[digest], end)
        return name

    async def ask(
        self,
        name: str,
        *,
        group: RewardGroup | None = None,
        step: int | None = None,
        deadline: float | None = None,
    ) -> AskedReward:
        """Return the reward of a pushed trajectory; an abstention waits for its ``group``'s others.

        ``step`` is the training's. Raises RewardUnavailable.
        """
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
                    content = await self._sent(session, "POST", "/v1/rewards", end, within)
                except RewardLate as error:
                    key = TrajectoryKey(benchmark="", agent="", task_id=name)
                    return AskedReward(_late(key, str(error), started), None)
                asked = _read(content, self.url)
                if asked.reward.abstained not in ("late", "unknown") or _left(end) < _PAUSE:
                    self.stopped |= asked.reward.abstained == "drift"
                    return asked
                await asyncio.sleep(_PAUSE)

    async def reference(self, before: int) -> ReferencePoint | None:
        """Return what the server's reference judge said of the last step before this one; None
        where there is none, or no answer: it is no reward that would be missing."""
        if not self._has_reference:
            return None
        path = f"/v1/reference?before={before}"
        end = time.monotonic() + min(_PATIENCE, self.deadline)
        try:
            async with self._session() as session:
                curve = await self._sent(session, "GET", path, end)
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
        """Do what ``reward`` does where nothing is awaited, also inside of a running event loop."""
        return _run(self.reward(trajectory, name=name, group=group, step=step))

    def push_sync(self, trajectory: Trajectory, name: str | None = None) -> str:
        """Do what ``push`` does where nothing is awaited."""
        return _run(self.push(trajectory, name))

    def ask_sync(
        self, name: str, *, group: RewardGroup | None = None, step: int | None = None
    ) -> AskedReward:
        """Do what ``ask`` does where nothing is awaited."""
        return _run(self.ask(name, group=group, step=step))

    def _session(self) -> aiohttp.ClientSession:
        """Open connections of the running loop: the client may be used in several."""
        connector = aiohttp.TCPConnector(limit=_CONNECTIONS)
        return aiohttp.ClientSession(headers=self._headers, connector=connector)

    async def _supply(
        self, session: aiohttp.ClientSession, digest: str, picture: ImageRef, end: float
    ) -> None:
        """Send a picture if the server lacks it."""
        path = f"/v1/images/{digest}"
        if await self._sent(session, "HEAD", path, end, unless=404) is _REFUSED:
            try:
                content = await asyncio.to_thread(picture.read)
            except ImageUnreadable:
                return
            if await self._sent(session, "PUT", path, end, content, unless=415) is _REFUSED:
                return
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        self._known.add(digest)

    async def _sent(
        self,
        session: aiohttp.ClientSession,
        method: str,
        path: str,
        end: float,
        body: bytes | Callable[[float], bytes] = b"",
        *,
        unless: int | None = None,
    ) -> Any:
        """Send a request until it is answered, and return the answer's content, or _REFUSED for the
        status ``unless``. ``body`` may depend on the seconds that are left. Raises RewardLate at
        the ``end``, RewardUnavailable for another refusal."""
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
                    last = _refusal(answer.status, content)
                    if answer.status not in _AGAIN:
                        raise RewardUnavailable(f"{self.url}: {last}")
                    pause = retry_after(answer.headers) or _PAUSE
            except (aiohttp.ClientError, TimeoutError) as error:
                last = str(error) or type(error).__name__
            await asyncio.sleep(min(pause, max(0.0, _left(end))))
        raise RewardLate(f"{self.url}: {last}")


_REFUSED = object()


def _run(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end; in a thread of its own where a loop is running."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


def _left(end: float) -> float:
    return end - time.monotonic()


def _late(key: TrajectoryKey, why: str, started: float) -> Reward:
    """Make the abstention of a server that did not answer: nobody knows its judge."""
    seconds = time.monotonic() - started
    return Reward(
        key=key, value=None, abstained="late", detail=why, judge="", version="", seconds=seconds
    )


def _read(content: Any, url: str) -> AskedReward:
    try:
        (reward,), (neutral,) = content["rewards"], content["neutral_values"]
        return AskedReward(Reward.model_validate(reward), neutral)
    except (KeyError, TypeError, ValueError) as error:
        raise _foreign(url) from error


def _foreign(url: str) -> RewardUnavailable:
    return RewardUnavailable(f"{url}: what answers is not  trajudge serve: check the address")


def _json(body: bytes) -> Any:
    """Return an answer's content; None where it is no JSON, as of a gateway before the server."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return None


def _refusal(status: int, content: Any) -> str:
    told = content.get("error") if isinstance(content, Mapping) else None
    return str(told) if told else f"it answered with status {status}"
