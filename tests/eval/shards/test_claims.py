"""A shard has one worker at a time, and one that falls silent loses it."""

from __future__ import annotations

from pathlib import Path

import pytest

from trajudge.eval.shards.claims import ShardClaims
from trajudge.eval.shards.objects.opening import open_store


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def workers(tmp_path: Path, clock: Clock) -> tuple[ShardClaims, ShardClaims]:
    store = open_store(str(tmp_path))
    return ShardClaims(store, "a", 60, clock), ShardClaims(store, "b", 60, clock)


def test_a_shard_has_one_worker(workers: tuple[ShardClaims, ShardClaims]) -> None:
    a, b = workers
    mine = a.claim("00001")
    assert mine is not None
    assert b.claim("00001") is None
    assert b.claim("00002") is not None
    assert b.holder("00001") == "a"
    a.give_back("00001", mine)
    assert b.holder("00001") is None
    theirs = b.claim("00001")
    assert theirs is not None
    assert theirs.turn == 2


def test_a_claim_lasts_as_long_as_it_is_prolonged(
    workers: tuple[ShardClaims, ShardClaims], clock: Clock
) -> None:
    a, b = workers
    mine = a.claim("00001")
    for _ in range(4):
        clock.now += 40
        assert mine is not None
        mine = a.prolong("00001", mine)
        assert b.claim("00001") is None
    clock.now += 61
    assert b.claim("00001") is not None
    assert mine is not None
    assert a.prolong("00001", mine) is None, "it was taken over"
    a.give_back("00001", mine)
    assert b.holder("00001") == "b", "what is another's is not given back"
