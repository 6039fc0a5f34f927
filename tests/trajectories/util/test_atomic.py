"""A file appears under its name only when it is whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from trajudge.trajectories.util.atomic import write_bytes


def test_an_earlier_file_is_replaced_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    for content in (b"first", b""):
        write_bytes(path, content)
        assert path.read_bytes() == content
    assert list(tmp_path.iterdir()) == [path]


def test_an_earlier_file_stays_when_the_new_one_cannot_be_written(tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    write_bytes(path, b"first")
    (tmp_path / "file.json.part").mkdir()
    with pytest.raises(OSError):
        write_bytes(path, b"second")
    assert path.read_bytes() == b"first"
