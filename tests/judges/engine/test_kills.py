"""A reply that was read outlives ``kill -9``, however slow the disk is."""

from __future__ import annotations

import pytest

from tests.cache_kills import measure
from tests.samples import repeats


@pytest.mark.slow
@pytest.mark.sampled
def test_no_reply_that_was_read_is_lost() -> None:
    kills = repeats(3, 100)
    rounds = measure(kills)
    assert sum(made.answered for made in rounds) >= kills
    assert [made.lost for made in rounds] == [0] * kills
