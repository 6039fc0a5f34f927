"""A run in batches that is killed at any moment submits nothing twice and ends with a live run's
bytes. ``benchmarks.batch`` kills a hundred times."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.batch import measure


@pytest.mark.slow
def test_kills(tmp_path: Path) -> None:
    told = measure("gpt-4o", kills=2, folder=tmp_path, limit=6)
    assert told.kills == 2
    assert told.double == told.lost == told.over_limit == told.unreserved == 0
    assert told.same_bytes
