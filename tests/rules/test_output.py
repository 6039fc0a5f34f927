"""What the auditors' commands write: files that are whole, or one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from trajudge.rules.files import write_json, write_text
from trajudge.util.errors import UserError


def test_a_file_takes_the_place_of_an_earlier_one_and_is_never_half_written(
    tmp_path: Path,
) -> None:
    """Whoever reads the earlier file goes on reading it: its content is not overwritten."""
    path = tmp_path / "out" / "lint.json"
    write_json(path, {"earlier": 1})
    reader = tmp_path / "reader"
    reader.hardlink_to(path)
    write_json(path, {"later": 2})
    assert ("earlier" in reader.read_text(), "later" in path.read_text()) == (True, True)


def test_text_is_written_as_it_is(tmp_path: Path) -> None:
    write_text(tmp_path / "runs.jsonl", "a\r\n\ud800\n")
    assert (tmp_path / "runs.jsonl").read_bytes() == b"a\r\n\xed\xa0\x80\n"


def test_a_place_that_cannot_be_written_is_named_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    path = tmp_path / "file" / "out" / "lint.json"
    with pytest.raises(UserError) as raised:
        write_text(path, "")
    assert str(raised.value) == f"{path}: cannot be written (Not a directory): name another place"
