"""A run in batches that is killed at any moment submits nothing twice and ends with a live run's
bytes; ``make fuzz`` kills a hundred times."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.batch_kills import measure
from tests.samples import repeats


@pytest.mark.slow
@pytest.mark.sampled
def test_kills(tmp_path: Path) -> None:
    kills = repeats(2, 100)
    toll = measure("gpt-4o", kills, tmp_path, limit=6)
    assert toll.kills == kills
    assert toll.double == toll.lost == toll.over_limit == toll.unreserved == 0
    assert toll.same_bytes
