"""Screenshots: untouched when they fit, resized when not, refused with a sentence when unusable."""

from __future__ import annotations

import os
import struct
import tracemalloc
import zlib
from hashlib import sha256
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from tests.samples import examples
from trajudge.trajectories import images as prepare
from trajudge.trajectories.images import (
    EncodedImage,
    PictureLimits,
    check_picture,
    is_image_file,
    load_picture,
    read_header,
)
from trajudge.trajectories.model import ImageRef
from trajudge.util.errors import ImageUnreadable

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 123\n"
ALL = frozenset({"image/png", "image/jpeg"})


def picture(width: int, height: int, kind: str = "PNG", *, noise: bool = False) -> bytes:
    image = Image.effect_noise((width, height), 80) if noise else Image.new("RGB", (width, height))
    buffer = BytesIO()
    image.convert("RGB").save(buffer, kind)
    return buffer.getvalue()


def load(data: bytes | Path, **limits: int) -> EncodedImage:
    ref = ImageRef(path=data) if isinstance(data, Path) else ImageRef(data=data)
    bounds = {"max_side": 2000, "max_pixels": 4_000_000, "max_bytes": 5_000_000} | limits
    return load_picture(ref, PictureLimits(**bounds, media_types=ALL))


def chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def bomb(width: int, height: int) -> bytes:
    """A small PNG that declares a huge picture of zeros."""
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    body = zlib.compress(bytes(width * 64), 9)
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", body) + chunk(b"IEND", b"")


@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
def test_a_picture_that_fits_is_passed_through_untouched(kind: str, tmp_path: Path) -> None:
    data = picture(30, 20, kind)
    path = tmp_path / "a.png"
    path.write_bytes(data)
    for source in (data, path):
        found = load(source, max_side=30, max_pixels=600, max_bytes=len(data))
        assert found.data == data
        assert found.sha256 == sha256(data).hexdigest()
        assert (found.width, found.height) == (30, 20)
        assert found.media_type == f"image/{kind.lower()}"


def test_a_large_picture_is_scaled_and_keeps_its_proportions() -> None:
    found = load(picture(400, 200), max_side=100)
    assert (found.width, found.height, found.media_type) == (100, 50, "image/jpeg")
    assert Image.open(BytesIO(found.data)).size == (100, 50)
    assert found.sha256 == sha256(found.data).hexdigest()


def test_the_pixel_limit_holds() -> None:
    found = load(picture(400, 300), max_pixels=10_000)
    assert found.width * found.height <= 10_000


def test_jpeg_when_png_is_too_large() -> None:
    data = picture(300, 300, noise=True)
    found = load(data, max_bytes=len(data) // 2)
    assert found.media_type == "image/jpeg"
    assert len(found.data) <= len(data) // 2


def test_smaller_still_when_even_jpeg_is_too_large() -> None:
    found = load(picture(300, 300, noise=True), max_bytes=3_000)
    assert len(found.data) <= 3_000
    assert found.width < 300


def test_a_format_that_the_provider_does_not_take_is_re_encoded() -> None:
    assert load(picture(10, 10, "GIF")).media_type == "image/png"
    assert load(picture(10, 10, "WEBP")).media_type == "image/png"


def test_the_same_picture_gives_the_same_bytes() -> None:
    data = picture(300, 200, noise=True)
    assert load(data, max_side=99) == load(data, max_side=99)


def test_transparency_survives_resizing() -> None:
    buffer = BytesIO()
    Image.new("RGBA", (100, 100), (255, 0, 0, 0)).save(buffer, "PNG")
    assert Image.open(BytesIO(load(buffer.getvalue(), max_side=10).data)).mode == "RGBA"


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"", "zero bytes"),
        (POINTER, "git-LFS"),
        (b"<html>not found</html>", "is not a PNG"),
        (b"\x89PNG\r\n\x1a\n", "truncated"),
        (picture(200, 200, noise=True)[:-100], "truncated"),
        (picture(200, 200, "JPEG", noise=True)[:-5000], "truncated"),
        (picture(0x10, 0x10)[:16] + bytes(8) + picture(0x10, 0x10)[24:], "size of zero"),
    ],
)
def test_an_unusable_file_is_refused_in_one_sentence(
    content: bytes, word: str, tmp_path: Path
) -> None:
    path = tmp_path / "shot.png"
    path.write_bytes(content)
    with pytest.raises(ImageUnreadable, match=word) as caught:
        load(path)
    assert "shot.png" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_a_folder_and_a_pipe_are_refused(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (tmp_path / "no.png", tmp_path, pipe):
        with pytest.raises(ImageUnreadable):
            load(path)


def test_a_damaged_png_is_refused_even_if_it_would_pass_through() -> None:
    data = bytearray(picture(200, 200, noise=True))
    data[len(data) // 2] ^= 0xFF
    with pytest.raises(ImageUnreadable, match="damaged"):
        load(bytes(data))


def test_a_bomb_is_refused_before_it_is_decoded() -> None:
    limit = Image.MAX_IMAGE_PIXELS
    data = bomb(50_000, 50_000)
    tracemalloc.start()
    with pytest.raises(ImageUnreadable, match="50000 x 50000"):
        load(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5_000_000
    assert limit == Image.MAX_IMAGE_PIXELS


def test_a_file_beyond_the_bound_is_refused() -> None:
    with pytest.raises(ImageUnreadable, match="64 MiB"):
        load(picture(5, 5) + bytes(64 * 2**20))


def test_no_accepted_format_is_a_reason_not_a_loop() -> None:
    ref = ImageRef(data=picture(5, 5))
    with pytest.raises(ImageUnreadable, match="image/gif"):
        load_picture(ref, PictureLimits(9, 99, 999, frozenset({"image/gif"})))


@pytest.mark.parametrize(
    ("content", "reason"), [(picture(3, 3), None), (b"", "zero"), (POINTER, "LFS"), (b"x", "not")]
)
def test_the_cheap_check_of_loaders(content: bytes, reason: str | None, tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(content)
    found = is_image_file(path)
    assert found is None if reason is None else reason in str(found)
    assert "missing" in str(is_image_file(tmp_path / "b.png"))


def test_a_whole_picture_is_read_once_until_its_file_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, content = tmp_path / "a.png", picture(40, 30, noise=True)
    path.write_bytes(content)
    ref = ImageRef(path=path)
    check_picture(ref)
    with monkeypatch.context() as patched:
        patched.setattr(prepare, "read_header", None)
        check_picture(ref)
    damaged = tmp_path / "b.png"
    damaged.write_bytes(content[:-30] + bytes(30))
    os.utime(damaged, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))
    damaged.replace(path)
    for _ in range(2):
        with pytest.raises(ImageUnreadable, match=r"a\.png: image is truncated or damaged"):
            check_picture(ref)
    path.unlink()
    with pytest.raises(ImageUnreadable, match=r"a\.png: image is missing"):
        check_picture(ref)
    path.write_bytes(content)
    check_picture(ref)


@settings(max_examples=examples(40))
@given(st.integers(1, 300), st.integers(1, 300), st.sampled_from(["PNG", "JPEG", "GIF", "WEBP"]))
def test_the_header_says_what_pillow_says(width: int, height: int, kind: str) -> None:
    header = read_header(picture(width, height, kind))
    assert (header.width, header.height) == (width, height)
    assert header.media_type == f"image/{kind.lower()}"


@settings(max_examples=examples(150))
@given(
    st.sampled_from([picture(40, 30, kind, noise=True) for kind in ("PNG", "JPEG", "GIF", "WEBP")]),
    st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), max_size=4),
    st.integers(0, 10_000),
)
def test_a_mutated_file_is_an_image_or_unreadable_and_nothing_else(
    data: bytes, flips: list[tuple[int, int]], length: int
) -> None:
    mutated = bytearray(data)
    for at, value in flips:
        mutated[at % len(mutated)] = value
    try:
        found = load(bytes(mutated[: max(1, length)]), max_side=20)
    except ImageUnreadable:
        return
    assert max(found.width, found.height) <= 20
