"""Archives of strangers: what is read of them, and what is refused in one sentence."""

from __future__ import annotations

import os
import struct
import zipfile
import zlib
from pathlib import Path

import pytest
import zstandard

from trajudge.trajectories.loaders._files import ArchiveLimits, Damaged, open_archive
from trajudge.util.files import DataFolder, UnsafeFile

TEXT = b"Buy tea. " * 1000


def _zip(path: Path, method: int = zipfile.ZIP_DEFLATED, **members: bytes) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def _raw_zip(path: Path, *members: tuple[str, bytes, int, bytes], copies: int = 1) -> Path:
    """An archive with members as (name, content said to be there, method, bytes stored)."""
    body, listed = b"", list[bytes]()
    for name, content, method, stored in members:
        fields = struct.pack(
            "<HHHHHLLLHH", 20, 0, method, 0, 33, zlib.crc32(content), len(stored), len(content),
            len(name), 0,
        )  # fmt: skip
        offset = len(body)
        body += b"PK\x03\x04" + fields + name.encode() + stored
        for copy in range(copies):
            named = (name if not copy else f"{copy:0>{len(name)}}").encode()
            tail = struct.pack("<HHHLL", 0, 0, 0, 0, offset)
            listed.append(b"PK\x01\x02\x14\x00" + fields + tail + named)
    count, directory = len(listed), b"".join(listed)
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, count, count, len(directory), len(body), 0)
    path.write_bytes(body + directory + end)
    return path


def _read(path: Path, name: str = "a", limits: ArchiveLimits = ArchiveLimits()) -> bytes:  # noqa: B008
    with open_archive(path, DataFolder(path.parent), limits) as archive:
        return archive.read(name)


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_what_zipfile_writes(tmp_path: Path, method: int) -> None:
    path = _zip(tmp_path / "a.zip", method, a=TEXT, b=b"")
    assert (_read(path), _read(path, "b")) == (TEXT, b"")
    with open_archive(path, DataFolder(tmp_path)) as archive:
        assert (sorted(archive), "a" in archive, "c" in archive) == (["a", "b"], True, False)


def test_zstandard_and_the_last_of_two_with_one_name(tmp_path: Path) -> None:
    packed = zstandard.ZstdCompressor().compress(TEXT)
    path = _raw_zip(tmp_path / "a.zip", ("a", b"old", 0, b"old"), ("a", TEXT, 93, packed))
    assert _read(path) == TEXT


@pytest.mark.parametrize(
    ("members", "sentence"),
    [
        ([("a", TEXT, 14, b"x")], "is compressed by LZMA"),
        ([("a", TEXT, 77, b"x")], "is compressed by method 77"),
        ([("a", TEXT, 93, zstandard.ZstdCompressor().compress(TEXT)[:-9])], "is damaged"),
        ([("a", TEXT, 93, b"no frame")], "is damaged"),
        ([("a", TEXT, 8, b"no stream")], "is damaged"),
        ([("a", TEXT, 0, TEXT[::-1])], "its checksum is another"),
        ([("a", bytes(2**24), 8, zlib.compress(bytes(2**24), 9)[2:-4])], "more than 200 times"),
        ([("../a", TEXT, 0, TEXT)], "leads out"),
        ([("/a", TEXT, 0, TEXT)], "leads out"),
        ([("a", bytes(65 * 2**20), 0, bytes(2**20))], "larger than 64 MiB"),
    ],
)
def test_a_member_that_is_not_read(
    tmp_path: Path, members: list[tuple[str, bytes, int, bytes]], sentence: str
) -> None:
    path = _raw_zip(tmp_path / "a.zip", *members)
    with pytest.raises(Damaged, match=sentence) as caught:
        _read(path, members[0][0])
    assert "\n" not in str(caught.value)


def test_a_member_that_expands_beyond_its_word_is_cut_there(tmp_path: Path) -> None:
    for method, packed in (
        (8, zlib.compress(bytes(2**27), 9)[2:-4]),
        (93, zstandard.ZstdCompressor().compress(bytes(2**27))),
    ):
        path = _raw_zip(tmp_path / "a.zip", ("a", b"ten bytes.", method, packed))
        with pytest.raises(Damaged, match="is damaged"):
            _read(path)


@pytest.mark.parametrize(
    ("limits", "sentence"),
    [
        (ArchiveLimits(members=2), "more than 2 members"),
        (ArchiveLimits(total=10_000), "expands to more than 0 MiB"),
        (ArchiveLimits(total=10_000, ratio=1, grows=True), "expands to more than 0 MiB"),
    ],
)
def test_an_archive_beyond_the_limits(tmp_path: Path, limits: ArchiveLimits, sentence: str) -> None:
    path = _zip(tmp_path / "a.zip", a=TEXT, b=TEXT, c=b"")
    with pytest.raises(Damaged, match=sentence):
        _read(path, limits=limits)
    assert _read(path, limits=ArchiveLimits(total=1, grows=True)) == TEXT


def test_members_over_each_other_are_refused(tmp_path: Path) -> None:
    path = _raw_zip(tmp_path / "a.zip", ("a", TEXT, 0, TEXT), copies=3)
    with pytest.raises(Damaged, match="lie over each other"):
        _read(path)


def test_a_long_directory_is_refused_before_it_is_read(tmp_path: Path) -> None:
    for copies, sentence in ((20_000, "holds more than"), (60_000, "lists more than")):
        path = _raw_zip(tmp_path / "a.zip", ("12345", b"x", 0, b"x"), copies=copies)
        with pytest.raises(Damaged, match=f"{sentence} 10,000 members"):
            _read(path)


def test_an_encrypted_member(tmp_path: Path) -> None:
    path = _zip(tmp_path / "a.zip", a=TEXT)
    content = bytearray(path.read_bytes())
    content[content.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(content)
    with pytest.raises(Damaged, match="is encrypted"):
        _read(path)


def test_what_is_no_archive(tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(b"PK\x03\x04" + bytes(100))
    with pytest.raises(Damaged, match="no whole zip archive"):
        _read(tmp_path / "a.zip")
    os.mkfifo(tmp_path / "pipe.zip")
    with pytest.raises(UnsafeFile):
        _read(tmp_path / "pipe.zip")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "link.zip").symlink_to(_zip(tmp_path / "b.zip", a=TEXT))
    with pytest.raises(UnsafeFile, match="leads out"):
        _read(tmp_path / "out" / "link.zip")
