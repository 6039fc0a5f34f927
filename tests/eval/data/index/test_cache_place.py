"""Side files in the user's cache: where they are, and how long."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from trajudge.eval.store.table import UNUSED, place_in_cache


def test_side_files_that_nobody_uses_are_removed_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAJUDGE_CACHE", str(tmp_path / "replies.sqlite"))
    digest, long_ago = "0" * 32, time.time() - UNUSED - 60
    old = [f"{digest}.columns.msgpack", f"{digest}.run-index.sqlite", f"{digest}.index.msgpack"]
    old += [f"{digest}.published.msgpack"]
    kept = ["replies.sqlite", "notes.msgpack", f"{digest}.txt", f"x{digest}.index.msgpack"]
    for name in [*old, *kept]:
        (tmp_path / name).write_bytes(b"x")
        os.utime(tmp_path / name, (long_ago, long_ago))
    used = tmp_path / f"{'1' * 32}.run-index.sqlite"
    used.write_bytes(b"x")
    os.utime(used, (time.time(), long_ago))
    place = place_in_cache(tmp_path / "run", ".columns.msgpack")
    assert place is not None
    assert place.parent == tmp_path
    assert {path.name for path in tmp_path.iterdir()} == {*kept, used.name}
