"""Looks at a path that cost the same whatever lies there."""

from __future__ import annotations

import os
from pathlib import Path

from trajudge.trajectories.loaders import _files as detection


def has_mark(content: bytes) -> bool:
    return b"mark" in content


def test_two_levels_and_twenty_files(tmp_path: Path) -> None:
    (tmp_path / "a" / "b" / "c").mkdir(parents=True)
    (tmp_path / "a" / "b" / "c" / "x.json").write_text("mark")
    assert not detection.some_file(tmp_path, "*.json", has_mark)
    (tmp_path / "a" / "b" / "x.json").write_text("mark")
    assert detection.some_file(tmp_path, "*.json", has_mark)
    assert not detection.some_file(tmp_path, "*.html", has_mark)
    for number in range(20):
        (tmp_path / f"{number}.json").write_text("other")
    assert not detection.some_file(tmp_path, "*.json", has_mark)
    assert detection.some_file(tmp_path / "a" / "b" / "x.json", "*.txt", has_mark)


def test_only_the_head_of_regular_files_is_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "zeros.json").symlink_to("/dev/zero")
    large = tmp_path / "large.json"
    large.write_bytes(b" " * detection.HEAD_BYTES + b"mark")
    os.truncate(large, 10 * 2**30)
    assert not detection.some_file(tmp_path, "*.json", has_mark)
    assert len(detection.head(large)) == detection.HEAD_BYTES
    assert detection.head(tmp_path / "pipe.json") == b""
    assert detection.head(tmp_path) == b""


def test_links_and_hidden_folders_are_passed_over(tmp_path: Path) -> None:
    inside = tmp_path / "data"
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "x.json").write_text("mark")
    (inside / ".git").mkdir(parents=True)
    (inside / ".git" / "x.json").write_text("mark")
    (inside / "link").symlink_to(tmp_path / "outside")
    (inside / "self").symlink_to(inside)
    assert not detection.some_file(inside, "*.json", has_mark)
    assert list(detection.files(inside, "*.json", levels=9)) == []
