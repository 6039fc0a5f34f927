"""A run in batches that is killed at any moment submits nothing twice and ends with a live run's
bytes. ``benchmarks.batch`` kills a hundred times."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.batch import measure


@pytest.mark.slow
@pytest.mark.parametrize("model", ["gpt-4o", "claude-sonnet-4-5"])
def test_kills(model: str, tmp_path: Path) -> None:
    told = measure(model, kills=2, folder=tmp_path, limit=10)
    assert told.kills == 2
    assert told.double == told.lost == told.over_limit == told.unreserved == 0
    assert told.same_bytes
