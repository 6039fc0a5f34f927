"""Pictures in and beside files, and files in archives."""

from __future__ import annotations

import base64
import os
import struct
import zipfile
import zlib
from io import BytesIO
from pathlib import Path

import pytest
import zstandard
from PIL import Image

from trajudge.trajectories.loaders._files import ArchiveLimits, Damaged, open_archive
from trajudge.trajectories.loaders._run import (
    MAX_INLINE_BYTES,
    RunReader,
    RunSource,
    Values,
    plain_name,
)
from trajudge.trajectories.model import ImageRef, TrajectoryKey
from trajudge.util.files import DataFolder, UnsafeFile


def picture(form: str = "PNG") -> bytes:
    file = BytesIO()
    Image.new("RGB", (4, 4), "red").save(file, form)
    return file.getvalue()


def reader(folder: Path) -> RunReader:
    key = TrajectoryKey(benchmark="b", agent="a", task_id="t")
    return RunReader(RunSource(key, "t", folder, DataFolder(folder)))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    (tmp_path / "run" / "screenshots").mkdir(parents=True)
    (tmp_path / "secret.png").write_bytes(picture())
    (tmp_path / "run" / "screenshots" / "step_1.png").write_bytes(picture())
    return tmp_path / "run"


FOREIGN = [
    "step_1.png",
    "/home/somebody/.browseruse/agents/1/screenshots/step_1.png",
    "../../elsewhere/step_1.png",
    r"C:\Users\somebody\step_1.png",
    "//server/share/step_1.png",
]


@pytest.mark.parametrize("recorded", FOREIGN)
def test_a_recorded_path_counts_by_its_last_component(recorded: str, run: Path) -> None:
    reading = reader(run)
    found = reading.named_picture(recorded, run / "screenshots", run)
    assert found == ImageRef(path=run / "screenshots" / "step_1.png")
    assert reading.warnings == []


HOSTILE = ["..", "/", "../../", "a\x00.png", "a\n.png", "%2e%2e", "~", "$HOME", "x" * 300]
HOSTILE += ["\ud800.png", "*.png", ". .", "step_1.png|id"]


@pytest.mark.parametrize("recorded", [*HOSTILE, 7, ["step_1.png"], {"a": 1}, True])
def test_what_is_no_file_name_opens_nothing(recorded: object, run: Path) -> None:
    reading = reader(run)
    found = reading.named_picture(recorded, run / "screenshots", run)
    if plain_name(recorded) is None:
        assert reading.warnings[0].endswith("is not a file name.")
    assert found is not None
    assert found.problem
    found.model_dump_json()
    "".join(reading.warnings).encode()


def test_a_path_of_the_recorders_disk_is_missing_not_hostile(tmp_path: Path, run: Path) -> None:
    reading = reader(run)
    named = reading.named_picture(str(tmp_path / "secret.png"), run)
    assert named is not None
    assert str(named.problem).endswith("is missing")
    assert reading.warnings == ["The screenshot secret.png is missing."]


def test_links_out_pipes_and_folders_are_told(tmp_path: Path, run: Path) -> None:
    (run / "link.png").symlink_to(tmp_path / "secret.png")
    (run / "device.png").symlink_to("/dev/zero")
    (run / "folder.png").mkdir()
    os.mkfifo(run / "pipe.png")
    expected = {
        "link.png": "leads out of the folder",
        "device.png": "leads out of the folder",
        "folder.png": "is not a file",
        "pipe.png": "is not a file",
    }
    for name, problem in expected.items():
        named = reader(run).named_picture(name, run / "screenshots", run)
        assert named is not None
        assert str(named.problem).endswith(problem)


@pytest.mark.parametrize("form", ["PNG", "JPEG", "GIF", "WEBP"])
@pytest.mark.parametrize("label", ["", "data:image/png;base64,", "data:;BASE64,"])
def test_the_bytes_say_what_an_inline_picture_is(form: str, label: str) -> None:
    text = label + base64.b64encode(picture(form)).decode()
    for written in (text, text.rstrip("="), text[:30] + "\n " + text[30:]):
        assert Values().inline_picture(written, "of step 1") == ImageRef(data=picture(form))


BAD = {
    "data:image/png,plain": "is a data URL without base64",
    "not base64!": "is no base64",
    "data:image/png;base64,": "is empty (zero bytes)",
    base64.b64encode(b"hello").decode(): "is not a PNG, JPEG, GIF or WebP image",
    "\ud800": "is no base64",
}


@pytest.mark.parametrize("value", BAD, ids=[str(number) for number in range(len(BAD))])
def test_a_bad_inline_picture_costs_the_picture_and_a_warning(value: str) -> None:
    values = Values()
    found = values.inline_picture(value, "of step 3")
    assert found == ImageRef(problem=f"the picture of step 3 {BAD[value]}")
    assert values.warnings == [f"The picture of step 3 {BAD[value]}."]


@pytest.mark.parametrize("length", [2 * MAX_INLINE_BYTES, MAX_INLINE_BYTES * 4 // 3 + 8])
def test_an_inline_picture_may_be_too_large(length: int) -> None:
    values = Values()
    found = values.inline_picture("A" * length, "of step 3")
    assert found == ImageRef(problem="the picture of step 3 is larger than 20 MiB")
    assert values.warnings == ["The picture of step 3 is larger than 20 MiB."]


@pytest.mark.parametrize("value", [7, True, [], {"a": 1}])
def test_what_is_no_text_is_no_picture(value: object) -> None:
    found = Values().inline_picture(value, "of step 3")
    assert found is not None
    assert found.problem == "the picture of step 3 is no text"


@pytest.mark.parametrize("value", [None, ""])
def test_no_picture_is_none(value: object) -> None:
    assert reader(Path()).inline_picture(value, "of step 3") is None
    assert reader(Path()).named_picture(value) is None


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
        ([("a", TEXT + b"x", 0, TEXT)], "is damaged"),
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
    exact = ArchiveLimits(members=3, total=2 * len(TEXT), member=len(TEXT))
    assert _read(path, limits=exact) == TEXT
    for field in ("total", "member"):
        with pytest.raises(Damaged, match=r"expands to more|is larger than"):
            _read(path, limits=exact._replace(**{field: getattr(exact, field) - 1}))


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
