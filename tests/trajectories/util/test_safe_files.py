"""What is opened of a data folder: regular files inside, whatever lies in their places."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from huggingface_hub import hf_hub_download

from tests.hub_server import REPO, Hub, serve
from tests.tables import table
from trajudge.util.files import DataFolder, UnsafeFile, open_regular, read_regular

SPARSE = 10 * 2**30


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "data" / "deep").mkdir(parents=True)
    (tmp_path / "data" / "deep" / "a.json").write_bytes(b"inside")
    (tmp_path / "data2").mkdir()
    (tmp_path / "data2" / "a.json").write_bytes(b"outside")
    return tmp_path / "data"


def test_a_regular_file_is_read(folder: Path) -> None:
    assert DataFolder(folder).read(folder / "deep" / "a.json", 6) == b"inside"
    assert read_regular(folder / "deep" / "a.json", 6) == b"inside"


def test_a_file_beyond_the_limit_is_not_read_and_the_limit_is_said(folder: Path) -> None:
    path = folder / "sparse.json"
    path.touch()
    os.truncate(path, SPARSE)
    began = time.perf_counter()
    with pytest.raises(UnsafeFile, match=r"sparse\.json is larger than 256 MiB \(10,737,418,240"):
        DataFolder(folder).read(path, 256 * 2**20)
    assert time.perf_counter() - began < 1


@pytest.mark.parametrize(
    "put",
    [os.mkfifo, Path.mkdir, lambda path: path.symlink_to("/dev/zero")],
    ids=["a pipe", "a folder", "a device"],
)
def test_what_is_no_file_is_not_opened(put: Callable[[Path], None], folder: Path) -> None:
    put(folder / "x.json")
    with pytest.raises(UnsafeFile, match=r"x\.json is not a file"):
        open_regular(folder / "x.json")
    with pytest.raises(UnsafeFile):
        DataFolder(folder).open(folder / "x.json")
    assert not DataFolder(folder).has_file(folder / "x.json")


@table(
    "link target name",
    """
    a.json   | ../data2/a.json | a.json
    other    | ../data2        | other/a.json
    one.json | two.json        | one.json
    deep/up  | ../..           | deep/up/data2/a.json
    x        | ..              | x/data2/a.json
    """,
)
def test_links_are_not_followed_out(link: str, target: str, name: str, folder: Path) -> None:
    (folder / "two.json").symlink_to(folder.parent / "data2" / "a.json")
    (folder / link).symlink_to(target)
    assert (folder / name).read_bytes() == b"outside"
    with pytest.raises(UnsafeFile, match="leads out of the data folder"):
        DataFolder(folder).open(folder / name)


def test_neither_is_a_path_that_climbs(folder: Path) -> None:
    assert not DataFolder(folder).holds(folder / "deep" / ".." / ".." / "data2" / "a.json")
    assert DataFolder(folder).holds(f"{folder}/deep/../deep/a.json")


def test_links_inside_and_a_folder_that_is_a_link_itself_are_fine(folder: Path) -> None:
    (folder / "b.json").symlink_to("deep/a.json")
    (folder.parent / "named").symlink_to("data")
    for root in (folder, folder.parent / "named"):
        data = DataFolder(root)
        assert data.read(root / "b.json", 100) == b"inside"
        assert data.read(root / "deep" / "a.json", 100) == b"inside"
    assert DataFolder(folder).holds(folder.parent / "named" / "deep" / "a.json")


def test_a_link_to_itself_is_an_error_of_the_system(folder: Path) -> None:
    (folder / "loop.json").symlink_to("loop.json")
    with pytest.raises(OSError, match="symbolic links"):
        DataFolder(folder).open(folder / "loop.json")


def test_the_hubs_own_cache_is_read(tmp_path: Path) -> None:
    """As huggingface_hub lays it out itself: snapshots/<commit>/... link to blobs/<hash>."""
    names = ["cleaned/webarena/a/b/webarena.1.json", "annotations.csv"]
    with serve(Hub(files={name: name.encode() for name in names})) as hub:
        got = [
            Path(
                hf_hub_download(
                    REPO, name, repo_type="dataset", cache_dir=tmp_path, endpoint=hub.endpoint
                )
            )
            for name in names
        ]
    snapshot = got[1].parent
    assert all(path.is_symlink() and "blobs" in str(path.resolve()) for path in got)
    for root in (snapshot, snapshot / "cleaned", snapshot / "cleaned" / "webarena"):
        assert DataFolder(root).read(got[0], 100) == names[0].encode()
    (snapshot / "evil.json").symlink_to(tmp_path / "elsewhere.json")
    (tmp_path / "elsewhere.json").write_bytes(b"outside")
    with pytest.raises(UnsafeFile):
        DataFolder(snapshot).open(snapshot / "evil.json")
