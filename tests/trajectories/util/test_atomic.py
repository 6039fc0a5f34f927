"""A file appears under its name only when it is whole."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from trajudge.util.errors import UserError
from trajudge.util.files import (
    check_file,
    check_folder,
    make_folder,
    replacing,
    save_bytes,
    write_bytes,
)


def test_an_earlier_file_is_replaced_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    for content in (b"first", b""):
        write_bytes(path, content)
        assert path.read_bytes() == content
    assert list(tmp_path.iterdir()) == [path]


def test_an_earlier_file_stays_when_the_new_one_cannot_be_written(tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    write_bytes(path, b"first")
    with pytest.raises(ValueError, match="half"), replacing(path) as file:
        file.write(b"sec")
        raise ValueError("half way")
    assert path.read_bytes() == b"first"
    assert list(tmp_path.iterdir()) == [path]


def test_a_name_that_is_taken_by_a_folder_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "file.json").mkdir()
    with pytest.raises(OSError):
        write_bytes(tmp_path / "file.json", b"content")
    assert [path.name for path in tmp_path.iterdir()] == ["file.json"]


def test_the_permissions_are_those_of_an_ordinary_new_file(tmp_path: Path) -> None:
    (tmp_path / "ordinary").write_bytes(b"")
    write_bytes(tmp_path / "whole", b"")
    assert (tmp_path / "whole").stat().st_mode == (tmp_path / "ordinary").stat().st_mode


def test_what_a_user_names_is_looked_at_before_the_work(tmp_path: Path) -> None:
    check_file(tmp_path / "new" / "x.json", "--save")
    assert not (tmp_path / "new").exists()
    with pytest.raises(UserError, match=r"^--save .* is a folder: name a file"):
        check_file(tmp_path, "--save")


@pytest.mark.parametrize("below", ["x.json", "run/x.json"])
def test_a_file_below_a_file_is_refused_with_what_stands_there(below: str, tmp_path: Path) -> None:
    """The system says "File exists"."""
    (tmp_path / "file").touch()
    path = tmp_path / "file" / below
    with pytest.raises(UserError) as raised:
        check_file(path, "--save")
    there = tmp_path / "file"
    told = f"--save {path}: {there} is a file, not a folder: name another file"
    assert str(raised.value) == told


def test_a_folder_that_is_read_only_is_refused_with_what_lies_in_it() -> None:
    """That of a process is, for root, too."""
    for check, place, mend in (
        (check_file, Path("/proc/self/x/y"), "name another file"),
        (check_folder, Path("/proc/self/x/y"), "name another folder"),
        (check_folder, Path("/proc/self"), "name another folder"),
    ):
        with pytest.raises(UserError) as raised:
            check(place, "--out")
        told = f"--out {place}: the folder /proc/self cannot be written: {mend}"
        assert str(raised.value) == told


def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path: Path) -> None:
    """As root, a device such as ``/dev/stdout`` would be replaced by a file."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as other:
        content = other.submit(pipe.read_bytes)
        check_file(pipe, "--save")
        save_bytes(pipe, b"said")
        assert content.result(timeout=60) == b"said"
    assert pipe.is_fifo()
    check_file(Path(os.devnull), "--save")
    save_bytes(Path(os.devnull), b"said")
    assert Path(os.devnull).is_char_device()


def test_a_link_is_written_through(tmp_path: Path) -> None:
    place, link = tmp_path / "elsewhere.json", tmp_path / "latest.json"
    link.symlink_to(place)
    for content in (b"first", b"second"):
        save_bytes(link, content)
        assert place.read_bytes() == content
    assert link.is_symlink()


def test_what_was_printed_stands_before_what_is_saved_to_standard_output() -> None:
    code = (
        "from pathlib import Path\n"
        "from trajudge.util.files import save_bytes\n"
        "print('printed')\n"
        "save_bytes(Path('/dev/stdout'), b'saved')\n"
    )
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    said = subprocess.run(
        [sys.executable, "-c", code], env=buffered, capture_output=True, check=True
    ).stdout
    assert said == b"printed\nsaved"


def test_a_pipe_in_place_of_a_file_of_ours_is_replaced_and_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "side-file"
    os.mkfifo(path)
    write_bytes(path, b"kept")
    assert path.is_file()
    assert path.read_bytes() == b"kept"


@pytest.mark.parametrize("below", ["", "run"])
@pytest.mark.parametrize(
    ("there", "kind"), [("file", "file"), ("pipe", "device or a pipe"), ("link", "broken link")]
)
def test_what_has_the_name_of_a_folder_is_said(
    there: str, kind: str, below: str, tmp_path: Path
) -> None:
    """The system says "File exists" or "Not a directory"."""
    (tmp_path / "file").touch()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("nothing")
    folder = tmp_path / there / below
    with pytest.raises(UserError) as raised:
        make_folder(folder, "--out")
    assert str(raised.value) == f"--out {folder}: {tmp_path / there} is a {kind}: name a folder"


def test_a_folder_that_cannot_be_made_is_said() -> None:
    with pytest.raises(UserError, match=r"^--out /proc/x: cannot be written .*: name another"):
        make_folder(Path("/proc/x"), "--out")
