"""Replies of a shard in the run's store: a worker that takes a shard over asks nothing again that
was answered.

Each commit of a worker's cache becomes an object, before the replies in it are used, with what the
worker has paid since the one before. What is in flight when a worker dies is lost, and what it paid
for attempts that failed since its last commit.
"""

from __future__ import annotations

import asyncio
import base64
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import orjson
import zstandard

from trajudge.eval.shards.objects.store import ObjectStore
from trajudge.judges.engine.store.reply_log import ReplyRow


class KeptOfShard(NamedTuple):
    """What all workers had kept of a shard: replies, and lines of what they paid
    (``judges.engine.store.payments``)."""

    replies: list[ReplyRow]
    payments: list[bytes]


class ShardReplies:
    """The replies of one shard; ``worker`` names the objects of this one, ``turn`` tells its turns
    apart. ``payments`` are lines of what the worker has paid, which are taken out as they go into
    the store."""

    def __init__(
        self, store: ObjectStore, shard: str, worker: str, turn: int, payments: list[bytes]
    ) -> None:
        self._store = store
        self._shard = shard
        self._own = f"{_place(shard)}{turn:04}-{worker}"
        self._payments = payments
        self._count = 0

    def known(self) -> list[ReplyRow]:
        """Return what all workers had kept of this shard. Raises UserError."""
        return kept_of(self._store, self._shard).replies

    async def keep(self, rows: Sequence[ReplyRow]) -> None:
        """Keep replies; they are in the store when this returns. Raises UserError."""
        self._count += 1
        paid = [*self._payments]
        self._payments.clear()  # before the wait, in which others come and are kept by others
        lines = [orjson.dumps([base64.b16encode(row[0]).decode(), *row[1:]]) for row in rows]
        name = f"{self._own}-{self._count:06}.jsonl.zst"
        content = zstandard.compress(b"".join(line + b"\n" for line in (*paid, *lines)))
        try:
            await asyncio.to_thread(self._store.write, name, content)
        except BaseException:
            self._payments[:0] = paid
            raise

    async def keep_payments(self) -> None:
        """Keep what was paid since the last replies, if anything was. Raises UserError."""
        if self._payments:
            await self.keep(())


def kept_of(store: ObjectStore, shard: str) -> KeptOfShard:
    """Read what was kept of a shard, in the order of workers and their commits. Raises
    UserError."""
    kept = KeptOfShard([], [])
    for name in store.names(_place(shard)):
        stored = store.read(name)
        for line in zstandard.decompress(stored.content).splitlines() if stored else ():
            fields = orjson.loads(line)
            if isinstance(fields, dict):
                kept.payments.append(line)
                continue
            key, kind, body, endpoint, model, created = fields
            kept.replies.append((base64.b16decode(key), kind, body, endpoint, model, created))
    return kept


def asked_again(replies: Iterable[ReplyRow]) -> int:
    """Count the answers beyond the first to each request."""
    answers: Counter[bytes] = Counter(row[0] for row in replies)
    return sum(answers.values()) - len(answers)


def _place(shard: str) -> str:
    return f"replies/{shard}/"
