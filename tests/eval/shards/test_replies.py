"""What a worker keeps in the store, beside its replies."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from trajudge.eval.shards.objects.folder import FolderStore
from trajudge.eval.shards.replies import ShardReplies, kept_of
from trajudge.trajectories.util.errors import UserError

LINES = [b'{"attempt":"%d","request":"a","reserved":1.0}' % number for number in range(3)]


class Slow(FolderStore):
    """Writes when it is allowed to; the first write fails where it ``fails``."""

    def __init__(self, folder: Path, *, fails: bool = False) -> None:
        super().__init__(folder)
        self.fails = fails
        self.allowed = threading.Event()

    def write(self, name: str, content: bytes) -> None:
        assert self.allowed.wait(10)
        if self.fails:
            self.fails = False
            raise UserError("no room")
        super().write(name, content)


def test_a_payment_that_comes_while_two_commits_are_under_way_is_kept(tmp_path: Path) -> None:
    """The first took out what it had written, the second as many again: those that had come."""
    store, payments = Slow(tmp_path), LINES[:1]
    replies = ShardReplies(store, "00000", "worker", 1, payments)

    async def commit() -> None:
        commits = [asyncio.create_task(replies.keep(())) for _ in range(2)]
        await asyncio.sleep(0)
        payments.append(LINES[1])
        store.allowed.set()
        await asyncio.gather(*commits)
        await replies.keep_payments()

    asyncio.run(commit())
    assert sorted(kept_of(store, "00000").payments) == LINES[:2]
    assert not payments


def test_payments_that_could_not_be_kept_wait_for_the_next_commit(tmp_path: Path) -> None:
    store, payments = Slow(tmp_path, fails=True), LINES[:2]
    replies = ShardReplies(store, "00000", "worker", 1, payments)
    store.allowed.set()
    with pytest.raises(UserError, match="no room"):
        asyncio.run(replies.keep_payments())
    payments.append(LINES[2])
    asyncio.run(replies.keep_payments())
    assert kept_of(store, "00000").payments == LINES
