"""One worker of a sharded run: takes a shard, judges it, stores it, takes the next."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from trajudge.eval.runs.grid import PlannedRun
from trajudge.eval.runs.workers import Interrupted, StopSignal, graceful_interrupt
from trajudge.eval.shards.calls import SharedCalls
from trajudge.eval.shards.claims import SECONDS, ShardClaim, ShardClaims
from trajudge.eval.shards.limits import SharedLimits
from trajudge.eval.shards.objects.store import ObjectStore
from trajudge.eval.shards.outcome import finish, finished
from trajudge.eval.shards.plan import ShardPlan
from trajudge.eval.shards.replies import ShardReplies
from trajudge.eval.shards.session import ShardSession
from trajudge.trajectories.util.exits import FAILURES, INTERRUPTED, OK

BEATS = 3  # times that a claim is prolonged within its time


class ShardLost(Interrupted):
    """Another worker has taken the shard over: this one fell silent for too long."""


def worker_name() -> str:
    """Make a name that no other worker has."""
    host = "".join(c if c.isalnum() else "-" for c in socket.gethostname())[:32]
    return f"{host}-{os.getpid()}-{secrets.token_hex(3)}"


class ShardWorker:
    """Works on ``plan`` in ``store`` until every shard is finished, by whomever. ``seconds`` is the
    time of a claim: as long as this a shard waits whose worker has died."""

    def __init__(
        self,
        store: ObjectStore,
        plan: ShardPlan,
        planned: PlannedRun,
        *,
        name: str | None = None,
        seconds: float = SECONDS,
    ) -> None:
        self.name = name or worker_name()
        self.judged = 0
        self._store = store
        self._plan = plan
        self._planned = planned
        self._claims = ShardClaims(store, self.name, seconds)
        limits = SharedLimits(store, self.name, planned.calls)
        self._calls = SharedCalls(planned, limits, noting=plan.payments)
        self._stop = StopSignal()
        self._replies: ShardReplies | None = None

    async def work(self) -> int:
        """Work, and return the exit code. Raises UserError, the shard given back."""
        with graceful_interrupt(self._stop):
            try:
                while self._stop.reason is None:
                    left = await asyncio.to_thread(self._left)
                    if not left:
                        return OK
                    if not await self._take_one(left):
                        await asyncio.sleep(min(1.0, self._claims.seconds / BEATS))
            finally:
                await self._calls.close()
                if self._replies is not None:
                    await self._replies.keep_payments()
        sys.stderr.write(f"{self._stop.reason}: start a worker again to go on\n")
        return INTERRUPTED if isinstance(self._stop.reason, Interrupted) else FAILURES

    def _left(self) -> list[str]:
        done = finished(self._store)
        return [name for name in self._plan.names if name not in done]

    async def _take_one(self, left: Sequence[str]) -> bool:
        """Judge the first shard that nobody works on; False if there is none."""
        for shard in left:
            claim = await asyncio.to_thread(self._claims.claim, shard)
            if claim is None:
                continue
            if shard in await asyncio.to_thread(finished, self._store):
                return True  # by the worker that had it, since the list was made
            await self._judge(shard, claim)
            return True
        return False

    async def _judge(self, shard: str, claim: ShardClaim) -> None:
        beating = asyncio.create_task(self._prolong(shard, claim))
        try:
            with TemporaryDirectory(prefix="trajudge-shard-") as scratch:
                await self._in_folder(shard, claim, Path(scratch) / "run")
        finally:
            beating.cancel()
            with suppress(asyncio.CancelledError):
                await beating
            await asyncio.to_thread(self._claims.give_back, shard, claim)
        if isinstance(self._stop.reason, ShardLost):
            sys.stderr.write(f"shard {shard}: {self._stop.reason}\n")
            self._stop.reason = None
            await self._calls.close()  # which were told to stop

    async def _in_folder(self, shard: str, claim: ShardClaim, folder: Path) -> None:
        part = self._plan.shards[int(shard)]
        keys = self._planned.plan.keys.at(slice(part.first, part.first + part.count))
        plan = replace(self._planned.plan.with_keys(keys), folder=folder)
        payments = self._calls.payments
        self._replies = ShardReplies(self._store, shard, self.name, claim.turn, payments)
        engines = self._calls.open()
        session = ShardSession(
            replace(self._planned, plan=plan), self._stop, self._replies, engines
        )
        judgments = await session.judge()
        await self._replies.keep_payments()
        if self._stop.reason is None:
            count = len(judgments)
            if await asyncio.to_thread(finish, self._store, shard, claim, folder, count):
                self.judged += count

    async def _prolong(self, shard: str, claim: ShardClaim) -> None:
        """Prolong the claim as long as the shard is judged; stop where another has it."""
        while True:
            await asyncio.sleep(self._claims.seconds / BEATS)
            held = await asyncio.to_thread(self._claims.prolong, shard, claim)
            if held is None:
                if self._stop.reason is None:  # the user's own Ctrl-C goes before
                    self._stop.interrupt(ShardLost("another worker has taken it over"))
                return
            claim = held
