"""Replies of a shard in the run's store: a worker that takes a shard over asks nothing again that
was answered.

Each commit of a worker's cache becomes an object, before the replies in it are used; what is in
flight when a worker dies is lost, and nothing else.
"""

from __future__ import annotations

import asyncio
import base64
from collections import Counter
from collections.abc import Iterator, Sequence

import orjson
import zstandard

from trajudge.eval.shards.objects.store import ObjectStore
from trajudge.judges.engine.store.reply_log import ReplyRow


class ShardReplies:
    """The replies of one shard; ``worker`` names the objects of this one, ``turn`` tells its turns
    apart."""

    def __init__(self, store: ObjectStore, shard: str, worker: str, turn: int) -> None:
        self._store = store
        self._prefix = f"replies/{shard}/"
        self._own = f"{self._prefix}{turn:04}-{worker}"
        self._count = 0

    def known(self) -> list[ReplyRow]:
        """Return what all workers had kept of this shard. Raises UserError."""
        return [row for name in self._store.names(self._prefix) for row in self._rows(name)]

    async def keep(self, rows: Sequence[ReplyRow]) -> None:
        """Keep replies; they are in the store when this returns. Raises UserError."""
        self._count += 1
        lines = b"".join(
            orjson.dumps([base64.b16encode(row[0]).decode(), *row[1:]]) + b"\n" for row in rows
        )
        name = f"{self._own}-{self._count:06}.jsonl.zst"
        await asyncio.to_thread(self._store.write, name, zstandard.compress(lines))

    def _rows(self, name: str) -> Iterator[ReplyRow]:
        stored = self._store.read(name)
        lines = zstandard.decompress(stored.content).splitlines() if stored else []
        for line in lines:
            key, kind, body, endpoint, model, created = orjson.loads(line)
            yield base64.b16decode(key), kind, body, endpoint, model, created


def asked_again(store: ObjectStore, shard: str) -> int:
    """Count the answers of a shard beyond the first to each request. Raises UserError."""
    answers: Counter[bytes] = Counter(row[0] for row in ShardReplies(store, shard, "", 0).known())
    return sum(answers.values()) - len(answers)
