"""Trajectories that an environment pushed, by the id under which a trainer asks for a reward."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson
from pydantic import ValidationError

from trajudge.trajectories.model import Trajectory
from trajudge.trajectories.needs import EVERYTHING, needed_pictures
from trajudge.trajectories.store import decode_record
from trajudge.util import jsonl as python_json
from trajudge.util.files import read_regular, write_bytes
from trajudge.util.validation import first_error

_IN_MEMORY = 1_000
NAME_LENGTH = 512


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
