"""State of the server, shared by all protocols: judge, trajectories, rewards, groups, metrics.

Equal trajectories with equal versions have equal rewards, and a server has one version. A repeated
request for an id is answered from memory: a retry or another epoch is no new evidence for the
watch.
"""

from __future__ import annotations

import asyncio
import time
from bisect import bisect_left
from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from itertools import accumulate
from pathlib import Path
from typing import Any

import orjson
from pydantic import ValidationError

from trajudge.rewards.reward import Reward
from trajudge.rewards.rewarder import Rewarder
from trajudge.rewards.settings import RewardServerConfig
from trajudge.trajectories.model import Trajectory, TrajectoryKey
from trajudge.trajectories.needs import EVERYTHING, needed_pictures
from trajudge.trajectories.store import decode_record
from trajudge.util import jsonl as python_json
from trajudge.util.files import read_regular, write_bytes
from trajudge.util.validation import first_error

_MAX_REWARDS = 20_000


class RewardCache:
    """The last rewards by the ids of their trajectories."""

    def __init__(self) -> None:
        self._rewards: OrderedDict[str, Reward] = OrderedDict()

    def get(self, name: str) -> Reward | None:
        """Return the cached reward of an id."""
        reward = self._rewards.get(name)
        if reward is not None:
            self._rewards.move_to_end(name)
        return reward

    def add(self, name: str, reward: Reward) -> None:
        """Keep a reward that is reproducible: one with a value, or a cached failure."""
        if reward.value is None and not (reward.cached and reward.abstained == "failed"):
            return
        self._rewards[name] = reward.model_copy(update={"cached": True, "seconds": 0.0})
        if len(self._rewards) > _MAX_REWARDS:
            self._rewards.popitem(last=False)

    def forget(self, name: str) -> None:
        """Drop the reward of an id."""
        self._rewards.pop(name, None)


_MAX_GROUPS = 10_000  # groups in memory; the oldest is dropped


class _Group:
    def __init__(self, size: int) -> None:
        self.size = size
        self.values: dict[str, float | None] = {}
        self.complete = asyncio.Event()


class RewardGroups:
    """The values of groups by name; the value of an abstention is None."""

    def __init__(self) -> None:
        self._groups: OrderedDict[str, _Group] = OrderedDict()

    def add(self, name: str, size: int, member: str, value: float | None) -> None:
        """Add a member to a group of ``size``; a repeated member counts once."""
        group = self._groups.setdefault(name, _Group(size))
        self._groups.move_to_end(name)
        group.values[member] = value
        if len(group.values) >= group.size:
            group.complete.set()
        if len(self._groups) > _MAX_GROUPS:
            self._groups.popitem(last=False)

    async def mean(self, name: str, patience: float) -> float | None:
        """Return the mean of a group's values once the group is complete, or after ``patience``
        seconds the mean of those available; None without any."""
        group = self._groups.get(name)
        if group is None:
            return None
        with suppress(TimeoutError):
            await asyncio.wait_for(group.complete.wait(), patience)
        known = [value for value in group.values.values() if value is not None]
        return sum(known) / len(known) if known else None


_SECONDS = (0.005, 0.02, 0.1, 0.5, 1, 2, 5, 10, 30, 60, 180)
_VALUES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


class Histogram:
    """A histogram of Prometheus: the number of values up to each bound, their number and sum."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._counts = [0] * len(bounds)
        self._sum = 0.0
        self._number = 0

    def add(self, value: float) -> None:
        """Count a value."""
        self._number += 1
        self._sum += value
        if (index := bisect_left(self._bounds, value)) < len(self._counts):
            self._counts[index] += 1

    def lines(self, name: str) -> Iterator[str]:
        """Write it in the text format of Prometheus."""
        yield f"# TYPE {name} histogram"
        for bound, count in zip(self._bounds, accumulate(self._counts), strict=True):
            yield f'{name}_bucket{{le="{bound:g}"}} {count}'
        yield f'{name}_bucket{{le="+Inf"}} {self._number}'
        yield f"{name}_sum {self._sum:.6f}"
        yield f"{name}_count {self._number}"


class ServerMetrics:
    """Counts of rewards by status, abstention and cache, their durations, values and cost in US
    dollars."""

    def __init__(self) -> None:
        self._rewards: Counter[tuple[str, str, str]] = Counter()
        self._seconds = Histogram(_SECONDS)
        self._values = Histogram(_VALUES)
        self._cost = 0.0
        self._of_unknown_cost = 0
        self.refused = 0

    def add(self, reward: Reward) -> None:
        """Count a reward."""
        status = "" if reward.status is None else reward.status.value
        self._rewards[status, reward.abstained, str(reward.cached).lower()] += 1
        self._seconds.add(reward.seconds)
        if reward.value is not None:
            self._values.add(reward.value)
        if not reward.cached and reward.status is not None:
            self._cost += reward.cost or 0.0
            self._of_unknown_cost += reward.cost is None

    def text(self, gauges: Mapping[str, float]) -> str:
        """Write all metrics; ``gauges`` are current values by name."""
        lines = ["# TYPE trajudge_rewards_total counter"]
        for (status, abstained, cached), count in sorted(self._rewards.items()):
            labels = f'status="{status}",abstained="{abstained}",cached="{cached}"'
            lines.append(f"trajudge_rewards_total{{{labels}}} {count}")
        lines += ["# TYPE trajudge_requests_refused_total counter"]
        lines += [f"trajudge_requests_refused_total {self.refused}"]
        lines += ["# TYPE trajudge_cost_dollars_total counter"]
        lines += [f"trajudge_cost_dollars_total {self._cost:.6f}"]
        lines += ["# TYPE trajudge_rewards_of_unknown_cost_total counter"]
        lines += [f"trajudge_rewards_of_unknown_cost_total {self._of_unknown_cost}"]
        lines += self._seconds.lines("trajudge_reward_seconds")
        lines += self._values.lines("trajudge_reward_value")
        for name, value in gauges.items():
            lines += [f"# TYPE trajudge_{name} gauge", f"trajudge_{name} {value!r}"]
        return "\n".join(lines) + "\n"


_IN_MEMORY = 1_000


class NoTrajectory(ValueError):
    """The content is not a trajectory; the message is one sentence."""


class RecordedTrajectories:
    """A folder of trajectories by id, with their images; the last ones read are in memory.

    A file's name is a hash of the id, so that no id leads out of the folder.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._pushed = asyncio.Condition()
        self._kept: OrderedDict[str, Trajectory] = OrderedDict()

    def read(self, record: object) -> Trajectory:
        """Parse an object of a line of ``trajectories.jsonl``. Raises NoTrajectory."""
        if not isinstance(record, Mapping):
            raise NoTrajectory("trajectory is not a JSON object: send a line of trajectories.jsonl")
        try:
            return decode_record(record, self.folder)
        except ValidationError as error:
            raise NoTrajectory(f"trajectory: {first_error(error, 'the whole')}") from error
        except (ValueError, RecursionError) as error:
            raise NoTrajectory(f"trajectory: {error}") from error

    async def push(self, name: str, record: Mapping[str, Any]) -> list[str]:
        """Store a trajectory and wake the requests that wait for it; return the hashes of missing
        images. Raises NoTrajectory, OSError."""
        content = python_json.encode(record)
        trajectory = self.read(orjson.loads(content))
        await asyncio.to_thread(self._write, name, content)
        async with self._pushed:
            self._kept.pop(name, None)
            self._pushed.notify_all()
        return sorted(_missing(trajectory))

    async def find(self, name: str, patience: float) -> Trajectory | None:
        """Return the trajectory of an id, waiting at most ``patience`` seconds for it."""
        async with self._pushed:
            try:
                async with asyncio.timeout(patience):
                    while not self._path(name).exists():
                        await self._pushed.wait()
            except TimeoutError:
                return None
        if name not in self._kept:
            # Images may arrive after the trajectory, so that it is parsed on request.
            content = await asyncio.to_thread(read_regular, self._path(name))
            trajectory = self.read(orjson.loads(content))
            if _missing(trajectory):
                return trajectory
            self._kept[name] = trajectory
            while len(self._kept) > _IN_MEMORY:
                self._kept.popitem(last=False)
        self._kept.move_to_end(name)
        return self._kept[name]

    def is_kept(self, name: str, trajectory: Trajectory) -> bool:
        """Return True if this trajectory, without a missing image, is still the id's."""
        return self._kept.get(name) is trajectory

    def _path(self, name: str) -> Path:
        digest = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
        return self.folder / "pushed" / f"{digest}.json"

    def _write(self, name: str, content: bytes) -> None:
        path = self._path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(path, content)


def _missing(trajectory: Trajectory) -> set[str]:
    """Return the hashes of the images that the store lacks."""
    pictures = needed_pictures(trajectory, EVERYTHING)
    return {ref.sha256 for _, ref in pictures if ref.problem and ref.sha256}


class TooBusy(Exception):
    """The queue is full: the client should retry."""


class RewardService:
    """The judge, trajectories, rewards and metrics that all protocols share."""

    def __init__(self, config: RewardServerConfig, rewarder: Rewarder) -> None:
        self.config = config
        self.rewarder = rewarder
        self.recorded = RecordedTrajectories(config.folder)
        self.cache = RewardCache()
        self.groups = RewardGroups()
        self.metrics = ServerMetrics()
        self.in_progress = 0

    @property
    def neutral_value(self) -> float | None:
        """The value of an abstention for trainers that accept only numbers: the setting's, else
        the calibration's."""
        value = self.config.neutral_value
        return self.rewarder.function.neutral_value if value is None else value

    async def rewards(
        self,
        items: Sequence[Trajectory | str],
        deadline: float | None = None,
        step: int | None = None,
    ) -> list[Reward]:
        """Return the rewards of ``items`` (trajectories or ids), in order.

        Each is given within ``deadline`` seconds and the server's own deadline. ``step`` is the
        training's. Raises TooBusy if the queue has no room for all of them.
        """
        if self.in_progress + len(items) > self.config.queue:
            raise TooBusy
        limits = [limit for limit in (deadline, self.config.reward.deadline) if limit is not None]
        cached = [self._cached(item) for item in items]
        rest = [item for item, reward in zip(items, cached, strict=True) if reward is None]
        self.in_progress += len(rest)
        try:
            pending = (self._reward(item, min(limits, default=None), step) for item in rest)
            judged = iter(await asyncio.gather(*pending) if rest else ())
        finally:
            self.in_progress -= len(rest)
        rewards = [next(judged) if reward is None else reward for reward in cached]
        for reward in rewards:
            self.metrics.add(reward)
        return rewards

    async def push(self, name: str, record: Mapping[str, Any]) -> list[str]:
        """Store a trajectory under an id; return the hashes of missing images. Raises
        NoTrajectory, OSError."""
        missing = await self.recorded.push(name, record)
        self.cache.forget(name)
        return missing

    def _cached(self, item: Trajectory | str) -> Reward | None:
        if isinstance(item, Trajectory) or self.rewarder.watch.monitor.stopped:
            return None
        return self.cache.get(item)

    async def _reward(
        self, item: Trajectory | str, limit: float | None, step: int | None
    ) -> Reward:
        started = time.monotonic()
        if isinstance(item, Trajectory):
            return await self.rewarder.reward(item, deadline=limit, step=step)
        patience = self.config.patience if limit is None else min(limit, self.config.patience)
        trajectory = await self.recorded.find(item, patience)
        waited = time.monotonic() - started
        if trajectory is None:
            key = TrajectoryKey(benchmark="", agent="", task_id=item)
            detail = "no trajectory was pushed under this id"
            return self.rewarder.function.abstention(key, "unknown", detail, waited)
        rest = None if limit is None else max(0.0, limit - waited)
        reward = await self.rewarder.reward(trajectory, deadline=rest, name=item, step=step)
        reward = reward.model_copy(update={"seconds": reward.seconds + waited})
        if self.recorded.is_kept(item, trajectory):  # complete, and not replaced meanwhile
            self.cache.add(item, reward)
        return reward
