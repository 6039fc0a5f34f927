"""A reply that was read outlives ``kill -9``, however slow the disk is."""

from __future__ import annotations

import pytest

from benchmarks.kills import measure


@pytest.mark.slow
def test_no_reply_that_was_read_is_lost() -> None:
    rounds = measure(kills=3)
    assert sum(made.answered for made in rounds) >= 3
    assert [made.lost for made in rounds] == [0, 0, 0]
