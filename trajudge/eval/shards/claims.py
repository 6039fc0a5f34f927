"""Who works on a shard: one worker at a time, for as long as it says so.

A claim is an object that is made if it is absent; its owner prolongs it, and one that has run out
is taken over, each as a compare-and-swap. A worker that finds its claim changed has lost the shard.
Clocks of different machines may differ by less than the time of a claim.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import orjson

from trajudge.eval.shards.objects.store import ObjectStore, decoded
from trajudge.trajectories.model import Record

SECONDS = 60.0


class ShardClaim(Record):
    """A worker's claim on a shard until ``expires`` (seconds since 1970); ``turn`` counts its
    owners from 1. None expires that was given back (0)."""

    worker: str
    expires: float
    turn: int = 1


class ShardClaims:
    """The claims of one worker among those of a run. ``seconds`` is how long it may be silent;
    ``now`` tells the time. Methods raise UserError if the store cannot be reached."""

    def __init__(
        self,
        store: ObjectStore,
        worker: str,
        seconds: float = SECONDS,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.worker = worker
        self.seconds = seconds
        self._store = store
        self._now = now

    def claim(self, shard: str) -> ShardClaim | None:
        """Take a shard that nobody works on; None if somebody does."""
        mine = ShardClaim(worker=self.worker, expires=self._now() + self.seconds)
        if self._store.create(_name(shard), _content(mine)):
            return mine
        stored = self._store.read(_name(shard))
        if stored is None:
            return None
        theirs = ShardClaim.model_validate(decoded(self._store, _name(shard), stored.content))
        if theirs.expires > self._now():
            return None
        mine = mine.model_copy(update={"turn": theirs.turn + 1})
        done = self._store.replace(_name(shard), _content(mine), stored.version)
        return mine if done else None

    def prolong(self, shard: str, claim: ShardClaim) -> ShardClaim | None:
        """Prolong a claim of this worker; None if the shard is another's by now."""
        return self._changed(shard, claim, self._now() + self.seconds)

    def give_back(self, shard: str, claim: ShardClaim) -> None:
        """Let others take the shard at once, if it is still this worker's."""
        self._changed(shard, claim, 0.0)

    def holder(self, shard: str) -> str | None:
        """Return who works on the shard; None: nobody."""
        stored = self._store.read(_name(shard))
        if stored is None:
            return None
        claim = ShardClaim.model_validate(decoded(self._store, _name(shard), stored.content))
        return claim.worker if claim.expires > self._now() else None

    def _changed(self, shard: str, claim: ShardClaim, expires: float) -> ShardClaim | None:
        stored = self._store.read(_name(shard))
        if stored is None:
            return None
        held = ShardClaim.model_validate(decoded(self._store, _name(shard), stored.content))
        if (held.worker, held.turn) != (claim.worker, claim.turn):
            return None
        wanted = claim.model_copy(update={"expires": expires})
        done = self._store.replace(_name(shard), _content(wanted), stored.version)
        return wanted if done else None


def _name(shard: str) -> str:
    return f"claims/{shard}.json"


def _content(claim: ShardClaim) -> bytes:
    return orjson.dumps(claim.model_dump())
