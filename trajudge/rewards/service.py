"""What the server knows, whatever the protocol: the judge, pushed trajectories by their ids,
rewards that were given, the values of groups, and counts.

Equal trajectories and equal versions have equal rewards; a server has one version. What is asked
for again by its id is answered at once: a retry or another epoch is no new evidence for the watch.
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

_MOST_GIVEN = 20_000


class GivenRewards:
    """The last rewards by the ids of their trajectories."""

    def __init__(self) -> None:
        self._given: OrderedDict[str, Reward] = OrderedDict()

    def get(self, name: str) -> Reward | None:
        """Return the reward of an id, as one from the cache."""
        reward = self._given.get(name)
        if reward is not None:
            self._given.move_to_end(name)
        return reward

    def add(self, name: str, reward: Reward) -> None:
        """Keep a reward that would be the same again: one with a value, or a cached failure."""
        if reward.value is None and not (reward.cached and reward.abstained == "failed"):
            return
        self._given[name] = reward.model_copy(update={"cached": True, "seconds": 0.0})
        if len(self._given) > _MOST_GIVEN:
            self._given.popitem(last=False)

    def forget(self, name: str) -> None:
        """Forget an id, under which another trajectory is pushed."""
        self._given.pop(name, None)


_MOST_GROUPS = 10_000  # groups in memory; the oldest is forgotten


class _Group:
    def __init__(self, size: int) -> None:
        self.size = size
        self.values: dict[str, float | None] = {}
        self.is_whole = asyncio.Event()


class RewardGroups:
    """The values of groups by their names, None for a member that abstained."""

    def __init__(self) -> None:
        self._groups: OrderedDict[str, _Group] = OrderedDict()

    def add(self, name: str, size: int, member: str, value: float | None) -> None:
        """Take down a member of a group of ``size``; one that is asked for again counts once."""
        group = self._groups.setdefault(name, _Group(size))
        self._groups.move_to_end(name)
        group.values[member] = value
        if len(group.values) >= group.size:
            group.is_whole.set()
        if len(self._groups) > _MOST_GROUPS:
            self._groups.popitem(last=False)

    async def mean(self, name: str, patience: float) -> float | None:
        """Return the mean of a group's values once its members are known, or of those that are
        known after ``patience`` seconds; None: of none."""
        group = self._groups.get(name)
        if group is None:
            return None
        with suppress(TimeoutError):
            await asyncio.wait_for(group.is_whole.wait(), patience)
        known = [value for value in group.values.values() if value is not None]
        return sum(known) / len(known) if known else None


_SECONDS = (0.005, 0.02, 0.1, 0.5, 1, 2, 5, 10, 30, 60, 180)
_VALUES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


class Histogram:
    """Counts of values at most as large as each bound, with their number and sum."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._counts = [0] * len(bounds)
        self._sum = 0.0
        self._number = 0

    def add(self, value: float) -> None:
        """Count a value."""
        self._number += 1
        self._sum += value
        if (place := bisect_left(self._bounds, value)) < len(self._counts):
            self._counts[place] += 1

    def lines(self, name: str) -> Iterator[str]:
        """Write it in the text format of Prometheus."""
        yield f"# TYPE {name} histogram"
        for bound, count in zip(self._bounds, accumulate(self._counts), strict=True):
            yield f'{name}_bucket{{le="{bound:g}"}} {count}'
        yield f'{name}_bucket{{le="+Inf"}} {self._number}'
        yield f"{name}_sum {self._sum:.6f}"
        yield f"{name}_count {self._number}"


class ServerMetrics:
    """Counts of rewards by status, abstention and cache; how long they took; their values and
    their cost in US dollars."""

    def __init__(self) -> None:
        self._rewards: Counter[tuple[str, str, str]] = Counter()
        self._seconds = Histogram(_SECONDS)
        self._values = Histogram(_VALUES)
        self._cost = 0.0
        self._of_unknown_cost = 0
        self.refused = 0

    def add(self, reward: Reward) -> None:
        """Count a reward that was given."""
        status = "" if reward.status is None else reward.status.value
        self._rewards[status, reward.abstained, str(reward.cached).lower()] += 1
        self._seconds.add(reward.seconds)
        if reward.value is not None:
            self._values.add(reward.value)
        if not reward.cached and reward.status is not None:
            self._cost += reward.cost or 0.0
            self._of_unknown_cost += reward.cost is None

    def text(self, gauges: Mapping[str, float]) -> str:
        """Write everything; ``gauges`` are what stands at this moment, by name."""
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
    """What was sent is no trajectory; the message is one sentence."""


class RecordedTrajectories:
    """A folder of trajectories by id, with their images; those asked for last are in memory.

    A file's name is a hash, so that no id leads out of the folder. What was pushed is still there
    after a restart.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._pushed = asyncio.Condition()
        self._kept: OrderedDict[str, Trajectory] = OrderedDict()

    def read(self, record: object) -> Trajectory:
        """Read a trajectory as a line of ``trajectories.jsonl`` has it. Raises NoTrajectory."""
        if not isinstance(record, Mapping):
            raise NoTrajectory("trajectory is no JSON object: send a line of trajectories.jsonl")
        try:
            return decode_record(record, self.folder)
        except ValidationError as error:
            raise NoTrajectory(f"trajectory: {first_error(error, 'the whole')}") from error
        except (ValueError, RecursionError) as error:
            raise NoTrajectory(f"trajectory: {error}") from error

    async def push(self, name: str, record: Mapping[str, Any]) -> list[str]:
        """Keep a trajectory, and wake whoever waits for it; the hashes of images that are not here
        yet. Raises NoTrajectory, OSError."""
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
            # Images may come after the trajectory: it is read when it is asked for.
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
        """Tell whether an id still names this trajectory, of which no image is missing."""
        return self._kept.get(name) is trajectory

    def _path(self, name: str) -> Path:
        digest = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
        return self.folder / "pushed" / f"{digest}.json"

    def _write(self, name: str, content: bytes) -> None:
        path = self._path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(path, content)


def _missing(trajectory: Trajectory) -> set[str]:
    """Return the hashes of pictures that are not here; one that was lost before has none."""
    pictures = needed_pictures(trajectory, EVERYTHING)
    return {ref.sha256 for _, ref in pictures if ref.problem and ref.sha256}


class TooBusy(Exception):
    """As many rewards are at work as the server takes; the client asks again."""


class RewardService:
    """The judge, what was pushed, and what was counted: what every protocol shares."""

    def __init__(self, config: RewardServerConfig, rewarder: Rewarder) -> None:
        self.config = config
        self.rewarder = rewarder
        self.recorded = RecordedTrajectories(config.folder)
        self.given = GivenRewards()
        self.groups = RewardGroups()
        self.metrics = ServerMetrics()
        self.at_work = 0

    @property
    def neutral_value(self) -> float | None:
        """The value that stands for an abstention where a trainer takes numbers alone: the
        setting's, else the calibration's."""
        given = self.config.neutral_value
        return self.rewarder.function.neutral_value if given is None else given

    async def rewards(
        self,
        wanted: Sequence[Trajectory | str],
        deadline: float | None = None,
        step: int | None = None,
    ) -> list[Reward]:
        """Return the rewards of trajectories and ids of the training's ``step``, in order, each
        within ``deadline`` seconds and the server's own. Raises TooBusy at once if they are too
        many."""
        if self.at_work + len(wanted) > self.config.queue:
            raise TooBusy
        limits = [limit for limit in (deadline, self.config.reward.deadline) if limit is not None]
        known = [self._given(one) for one in wanted]
        rest = [one for one, reward in zip(wanted, known, strict=True) if reward is None]
        self.at_work += len(rest)
        try:
            asked = (self._reward(one, min(limits, default=None), step) for one in rest)
            judged = iter(await asyncio.gather(*asked) if rest else ())
        finally:
            self.at_work -= len(rest)
        rewards = [next(judged) if reward is None else reward for reward in known]
        for reward in rewards:
            self.metrics.add(reward)
        return rewards

    async def push(self, name: str, record: Mapping[str, Any]) -> list[str]:
        """Keep a trajectory under an id; the hashes of images that are not here yet. Raises
        NoTrajectory, OSError."""
        missing = await self.recorded.push(name, record)
        self.given.forget(name)
        return missing

    def _given(self, wanted: Trajectory | str) -> Reward | None:
        if isinstance(wanted, Trajectory) or self.rewarder.watch.monitor.stopped:
            return None
        return self.given.get(wanted)

    async def _reward(
        self, wanted: Trajectory | str, limit: float | None, step: int | None
    ) -> Reward:
        started = time.monotonic()
        if isinstance(wanted, Trajectory):
            return await self.rewarder.reward(wanted, deadline=limit, step=step)
        patience = self.config.patience if limit is None else min(limit, self.config.patience)
        found = await self.recorded.find(wanted, patience)
        waited = time.monotonic() - started
        if found is None:
            key = TrajectoryKey(benchmark="", agent="", task_id=wanted)
            never = "no trajectory was pushed under this id"
            return self.rewarder.function.abstention(key, "unknown", never, waited)
        rest = None if limit is None else max(0.0, limit - waited)
        reward = await self.rewarder.reward(found, deadline=rest, name=wanted, step=step)
        reward = reward.model_copy(update={"seconds": reward.seconds + waited})
        if self.recorded.is_kept(wanted, found):  # not pushed again meanwhile, and whole
            self.given.add(wanted, reward)
        return reward
