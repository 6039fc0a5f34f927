"""The scoring benchmark compares like with like: all that it times count the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.score import check, make_files, ours, peer, reconstruction


@pytest.mark.slow
def test_the_peers_and_ours_count_the_same(tmp_path: Path) -> None:
    labels = make_files(tmp_path, judges=2, trajectories=32, size=30_000)
    cells = peer(tmp_path, labels)
    assert reconstruction(tmp_path, labels) == cells
    check(ours(tmp_path, labels, None), cells)


def test_a_count_that_differs_is_found(tmp_path: Path) -> None:
    labels = make_files(tmp_path, judges=1, trajectories=32, size=30_000)
    cells = peer(tmp_path, labels)
    cells["judge-00", ("overall", "all", "success")][0] += 1
    with pytest.raises(ValueError, match="judge-00 on overall"):
        check(ours(tmp_path, labels, None), cells)
