"""``plan.json``: what all workers of a sharded run judge, and how it is cut."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from typing import Any

from pydantic import Field, ValidationError

from trajudge.eval.data.index.keys import KeyColumns
from trajudge.eval.data.manifest import RunManifest, check_same_run
from trajudge.eval.runs.grid import PlannedRun
from trajudge.eval.shards.objects.store import ObjectStore
from trajudge.trajectories.model import Record, TrajectoryKey
from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.validation import first_error

PLAN = "plan.json"
SMALLEST, MOST = 500, 100  # trajectories of a shard, and shards, where nothing else is asked for


class Shard(Record):
    """Trajectories ``first`` to ``first + count - 1`` of the run, in the order of its data;
    ``keys`` is the SHA-256 of their keys."""

    first: int
    count: int = Field(ge=1)
    keys: str


class ShardPlan(Record):
    """What the run is (``manifest``), how often each trajectory is judged, and its shards;
    ``payments``: workers keep what they paid beside their replies. Of a plan of an earlier release
    there may be workers that cannot read that."""

    format: int = 1
    manifest: RunManifest
    samples: int
    shards: tuple[Shard, ...]
    payments: bool = False

    @property
    def names(self) -> list[str]:
        """The shards' names, in order."""
        return [shard_name(place) for place in range(len(self.shards))]


def shard_name(place: int) -> str:
    """Return the name that a shard has in the store."""
    return f"{place:05}"


def shared_plan(store: ObjectStore, planned: PlannedRun, size: int | None) -> ShardPlan:
    """Return the run's plan, which the first worker makes.

    Raises UserError if the store holds another run, or if the data has changed since.
    """
    mine = _plan(planned, size)
    if not store.create(PLAN, mine.model_dump_json().encode()):
        theirs = read_plan(store)
        earlier: dict[str, Any] = theirs.manifest.model_dump(mode="json")
        check_same_run(store.address, earlier, mine.manifest)
        _check_keys(store, theirs, planned.plan.keys)
        return theirs
    return mine


def read_plan(store: ObjectStore) -> ShardPlan:
    """Read the plan. Raises UserError if there is none, or if it is not one."""
    stored = store.read(PLAN)
    if stored is None:
        raise UserError(
            f"{store.address}: holds no {PLAN}: name what  trajudge run work --shared  was given"
        )
    try:
        return ShardPlan.model_validate_json(stored.content)
    except ValidationError as error:
        raise UserError(
            f"{store.address}, {PLAN}: {first_error(error, 'the whole')}: a newer trajudge may "
            "have written it"
        ) from error


def _plan(planned: PlannedRun, size: int | None) -> ShardPlan:
    keys = planned.plan.keys
    if not len(keys):
        raise UserError("no trajectory is left to judge: name other --data, or fewer filters")
    size = size or max(SMALLEST, -(-len(keys) // MOST))
    parts = ((first, keys.at(slice(first, first + size))) for first in range(0, len(keys), size))
    shards = [Shard(first=first, count=len(part), keys=_digest(part)) for first, part in parts]
    return ShardPlan(
        manifest=planned.plan.manifest,
        samples=planned.run.samples,
        shards=tuple(shards),
        payments=True,
    )


def _check_keys(store: ObjectStore, plan: ShardPlan, keys: KeyColumns) -> None:
    count = sum(shard.count for shard in plan.shards)
    if count != len(keys):
        raise UserError(
            f"{store.address}: holds a run of {count:,} trajectories, the data has {len(keys):,} "
            "here: give all workers the same data"
        )
    for name, shard in zip(plan.names, plan.shards, strict=True):
        if _digest(keys.at(slice(shard.first, shard.first + shard.count))) != shard.keys:
            raise UserError(
                f"{store.address}: shard {name} has other trajectories than the data here: give "
                "all workers the same data"
            )


def _digest(keys: Iterable[TrajectoryKey]) -> str:
    digest = sha256()
    for key in keys:
        digest.update(str(key).encode("utf-8", "surrogatepass") + b"\n")
    return digest.hexdigest()
