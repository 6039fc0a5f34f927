"""Pictures are loaded in threads, each once, and remembered in memory and on the disk."""

from __future__ import annotations

import os
import threading
from concurrent.futures import wait
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from trajudge.trajectories import images
from trajudge.trajectories.images import (
    EncodedImage,
    PictureLimits,
    PictureLoader,
    load_picture,
)
from trajudge.trajectories.model import ImageRef
from trajudge.util.errors import ImageUnreadable
from trajudge.util.files import FileCache

LIMITS = PictureLimits(100, 10_000, 1_000_000, frozenset({"image/png", "image/jpeg"}))


@pytest.fixture(autouse=True)
def never_rested(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a slow machine a file might rest for long enough while a test runs."""
    monkeypatch.setattr(images, "_RESTED", 10**18)


class Loader:
    """A loader that counts what it really loads, and in which threads."""

    def __init__(self, folder: Path | None = None, kept_bytes: int = 2**20) -> None:
        self.threads: list[int] = []
        self.go = threading.Event()
        self.go.set()
        self.cache = None if folder is None else FileCache(folder, 2**20)
        self._loader = PictureLoader(self._opened, kept_bytes)

    def _opened(self) -> FileCache | None:
        self.threads.append(threading.get_ident())
        assert self.go.wait(10)
        return self.cache

    def load(self, path: Path, limits: PictureLimits = LIMITS) -> EncodedImage:
        return self._loader.load(ImageRef(path=path), limits).result(10)

    def start(self, path: Path) -> object:
        return self._loader.load(ImageRef(path=path), LIMITS)


def noise(path: Path, seed: int = 0, size: tuple[int, int] = (200, 150)) -> Path:
    pixels = np.random.default_rng(seed).integers(0, 256, (*size[::-1], 3), np.uint8)
    Image.fromarray(pixels).save(path, "PNG")
    return path


def test_a_picture_is_loaded_in_another_thread_and_once(tmp_path: Path) -> None:
    loader, path = Loader(), noise(tmp_path / "a.png")
    first = loader.load(path)
    assert loader.load(path) is first
    assert first == load_picture(ImageRef(path=path), LIMITS)
    assert len(loader.threads) == 1
    assert loader.threads[0] != threading.get_ident()


def test_loads_at_the_same_time_share_the_work(tmp_path: Path) -> None:
    loader, path = Loader(), noise(tmp_path / "a.png")
    loader.go.clear()
    first, second = loader.start(path), loader.start(path)
    assert first is second
    loader.go.set()
    assert loader.load(path).width == 100
    assert len(loader.threads) == 1


def test_another_limit_or_content_is_another_picture(tmp_path: Path) -> None:
    loader, path = Loader(), noise(tmp_path / "a.png")
    first = loader.load(path)
    assert loader.load(path, LIMITS._replace(max_side=99)).width == 99
    noise(path, 1)
    assert loader.load(path).data != first.data
    assert len(loader.threads) == 3


def test_a_failure_is_not_remembered(tmp_path: Path) -> None:
    loader, path = Loader(), tmp_path / "a.png"
    for name in ("a.png", "b.png"):
        with pytest.raises(ImageUnreadable, match=rf"{name}: image is missing"):
            loader.load(tmp_path / name)
    noise(path)
    assert loader.load(path).width == 100


@pytest.mark.parametrize(("room", "loads"), [(0, 2), (-1, 3)])
def test_the_latest_pictures_are_remembered_up_to_so_many_bytes(
    room: int, loads: int, tmp_path: Path
) -> None:
    paths = [noise(tmp_path / f"{seed}.png", seed) for seed in (0, 1)]
    taken = sum(len(load_picture(ImageRef(path=path), LIMITS).data) for path in paths)
    loader = Loader(kept_bytes=taken + room)
    for path in (*paths, paths[0]):
        loader.load(path)
    assert len(loader.threads) == loads


def test_a_picture_that_came_inline_counts_with_its_source(tmp_path: Path) -> None:
    content = noise(tmp_path / "a.png").read_bytes()
    made = load_picture(ImageRef(data=content), LIMITS)
    for room, again in ((0, True), (-1, False)):
        loader = PictureLoader(lambda: None, len(content) + len(made.data) + room)
        first = loader.load(ImageRef(data=content), LIMITS).result(10)
        assert (loader.load(ImageRef(data=content), LIMITS).result(10) is first) == again


def only_file(folder: Path) -> Path:
    (file,) = folder.iterdir()
    return file


def test_a_resized_picture_is_found_by_content_and_limits(tmp_path: Path) -> None:
    path, folder = noise(tmp_path / "a.png"), tmp_path / "kept"
    Loader(folder).load(path)
    other = load_picture(ImageRef(path=path), LIMITS._replace(max_side=50))
    cache = FileCache(folder, 2**20)
    cache.put(only_file(folder).name, other.data)
    path.rename(tmp_path / "b.png")
    assert Loader(folder).load(tmp_path / "b.png") == other
    assert Loader(folder).load(tmp_path / "b.png", LIMITS._replace(max_side=99)).width == 99
    assert Loader(folder).load(noise(path, 1)).width == 100
    assert len([*folder.iterdir()]) == 3


def test_a_file_that_has_rested_is_found_by_its_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(images, "_RESTED", 0)
    path, folder = noise(tmp_path / "a.png"), tmp_path / "kept"
    first = Loader(folder).load(path)
    with monkeypatch.context() as patch:
        patch.setattr(images, "_read", lambda ref: pytest.fail(f"{ref.path} is read"))
        assert Loader(folder).load(path) == first
    assert Loader(folder).load(path, LIMITS._replace(max_side=99)).width == 99
    for entry in folder.iterdir():
        if entry.stat().st_size > 1_000:
            entry.unlink()
    assert Loader(folder).load(path) == first


def test_a_changed_file_never_gives_the_old_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(images, "_RESTED", 0)
    path, folder = noise(tmp_path / "a.png"), tmp_path / "kept"
    other = noise(tmp_path / "b.png", 1).read_bytes()
    size = max(path.stat().st_size, len(other))
    path.write_bytes(path.read_bytes().ljust(size, b"\0"))
    first, was = Loader(folder).load(path), path.stat()
    path.write_bytes(other.ljust(size, b"\0"))
    os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))
    changed = Loader(folder).load(path)
    assert changed != first
    assert changed == load_picture(ImageRef(path=path), LIMITS)


@pytest.mark.parametrize(("age", "entries"), [(2_999_999_999, 1), (3_000_000_000, 2)])
def test_a_file_rests_for_three_seconds(
    age: int, entries: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within a tick of the clock it could change twice and have one state."""
    monkeypatch.undo()
    path, folder = noise(tmp_path / "a.png"), tmp_path / "kept"
    monkeypatch.setattr("time.time_ns", lambda: path.stat().st_ctime_ns + age)
    Loader(folder).load(path)
    assert len([*folder.iterdir()]) == entries


def test_a_picture_that_fits_is_not_written(tmp_path: Path) -> None:
    path, folder = noise(tmp_path / "a.png", size=(100, 100)), tmp_path / "kept"
    assert Loader(folder).load(path).data == path.read_bytes()
    assert not folder.exists()


@pytest.mark.parametrize("damage", ["cut", "garbled", "empty", "foreign", "folder"])
def test_an_entry_that_cannot_be_read_is_made_again(damage: str, tmp_path: Path) -> None:
    path, folder = noise(tmp_path / "a.png"), tmp_path / "kept"
    first = Loader(folder).load(path)
    entry = only_file(folder)
    whole = entry.read_bytes()
    contents = {
        "cut": whole[:-1],
        "garbled": whole[:-1] + bytes([whole[-1] ^ 1]),
        "empty": b"",
        "foreign": b"x" * 1_000,
    }
    if damage == "folder":
        entry.unlink()
        entry.mkdir()
    else:
        entry.write_bytes(contents[damage])
    assert Loader(folder).load(path) == first
    assert entry.is_dir() or entry.read_bytes() == whole


def test_an_entry_that_is_whole_and_no_picture_is_made_again(tmp_path: Path) -> None:
    path, folder = noise(tmp_path / "a.png"), tmp_path / "kept"
    first = Loader(folder).load(path)
    FileCache(folder, 2**20).put(only_file(folder).name, b"no picture")
    assert Loader(folder).load(path) == first


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert Loader(tmp_path / "file" / "kept").load(noise(tmp_path / "a.png")).width == 100


def test_many_threads_load_many_pictures(tmp_path: Path) -> None:
    loader = PictureLoader(lambda: FileCache(tmp_path / "kept", 2**20), 0)
    paths = [noise(tmp_path / f"{seed}.png", seed) for seed in range(8)]
    expected = [load_picture(ImageRef(path=path), LIMITS) for path in paths]
    loading = [loader.load(ImageRef(path=path), LIMITS) for path in paths * 4]
    wait(loading, 30)
    assert [one.result() for one in loading] == expected * 4


def encoded(image: Image.Image, kind: str = "PNG") -> bytes:
    buffer = BytesIO()
    image.save(buffer, kind, quality=90)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("mode", "fill", "size", "types", "expected"),
    [
        ("RGB", (9, 9, 9), 200, {"image/png", "image/jpeg"}, "image/jpeg"),
        ("RGB", (9, 9, 9), 200, {"image/png"}, "image/png"),
        ("RGBA", (9, 9, 9, 255), 200, {"image/png", "image/jpeg"}, "image/jpeg"),
        ("RGBA", (9, 9, 9, 254), 200, {"image/png", "image/jpeg"}, "image/png"),
        ("RGB", (9, 9, 9), 100, {"image/jpeg"}, "image/jpeg"),
    ],
)
def test_what_becomes_smaller_and_is_opaque_is_sent_as_jpeg(
    mode: str, fill: tuple[int, ...], size: int, types: set[str], expected: str
) -> None:
    ref = ImageRef(data=encoded(Image.new(mode, (size, size), fill)))
    found = load_picture(ref, LIMITS._replace(media_types=frozenset(types)))
    assert (found.media_type, found.width, found.height) == (expected, 100, 100)


@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
@pytest.mark.parametrize("side", [1_843, 1_023, 200])
def test_the_pixels_are_close_to_those_of_a_sharp_filter(kind: str, side: int) -> None:
    """Lanczos on the whole picture, without a loss in encoding."""
    rng = np.random.default_rng(0)
    coarse = rng.integers(0, 256, (64, 32, 3), np.uint8)
    page = Image.fromarray(coarse).resize((1_024, 2_048), Image.Resampling.BICUBIC)
    page.paste("black", (100, 100, 600, 104))
    content = encoded(page, kind)
    limits = PictureLimits(side, 4_000_000, 5_000_000, LIMITS.media_types)
    found = load_picture(ImageRef(data=content), limits)
    with Image.open(BytesIO(content)) as source, Image.open(BytesIO(found.data)) as sent:
        assert max(sent.size) == side
        sharp = source.resize(sent.size, Image.Resampling.LANCZOS)
        difference = np.asarray(sharp).astype(int) - np.asarray(sent.convert("RGB"))
    assert np.abs(difference).mean() < 2.5


def test_screenshots_keep_their_pixels(real_data: Path) -> None:
    shots = [*real_data.glob("fara_trajectory/*/*.png"), *real_data.glob("webvoyager/*/*.png")]
    assert len(shots) > 10
    for shot in shots:
        with Image.open(shot) as image:
            side = int(0.8 * max(image.size))
            limits = LIMITS._replace(max_side=side, max_pixels=4_000_000, max_bytes=5_000_000)
            found = load_picture(ImageRef(path=shot), limits)
            size = found.width, found.height
            sharp = image.convert("RGB").resize(size, Image.Resampling.LANCZOS)
        with Image.open(BytesIO(found.data)) as sent:
            difference = np.asarray(sharp).astype(int) - np.asarray(sent)
        assert np.abs(difference).mean() < 2, os.fspath(shot)
