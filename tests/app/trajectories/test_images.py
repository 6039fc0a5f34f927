"""Images are served by hash: only what a loader named, checked, and never anything that runs."""

from __future__ import annotations

import struct
import zlib
from hashlib import sha256
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image

from tests.app.made_runs import png
from tests.app.serving import Served, served
from trajudge.app.images import (
    ImageShelf,
    KnownImage,
    PixelDifference,
    UnknownImage,
    difference_picture,
    pixel_difference,
)
from trajudge.app.serving import Room
from trajudge.app.trajectory_page import TrajectoryAccess, routes
from trajudge.app.workspace import Workspace
from trajudge.trajectories.model import ImageRef
from trajudge.util.errors import ImageUnreadable
from trajudge.util.files import DataFolder


def bomb(width: int, height: int) -> bytes:
    """A PNG of a few bytes that declares a large picture."""
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    crc = struct.pack(">I", zlib.crc32(b"IHDR" + head))
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I", len(head)) + b"IHDR" + head + crc


def encoded(kind: str, size: tuple[int, int] = (400, 300)) -> bytes:
    buffer = BytesIO()
    Image.new("RGB", size, (90, 120, 160)).save(buffer, kind)
    return buffer.getvalue()


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "GIF"])
def test_pictures_are_told_by_their_first_bytes(kind: str, tmp_path: Path) -> None:
    shelf, content = ImageShelf(None), encoded(kind)
    known = put(shelf, tmp_path, content, "no-extension")
    assert known == KnownImage(sha256(content).hexdigest(), 400, 300)
    whole = shelf.original(known.sha256)
    assert (whole.data, whole.media_type) == (content, f"image/{kind.lower()}")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>", "is not a PNG"),
        (b"<html><script>1</script>", "is not a PNG"),
        (b"", "empty"),
        (b"version https://git-lfs.github.com/spec/v1\n", "git-LFS pointer"),
        (encoded("BMP"), "is not a PNG"),
        (encoded("TIFF"), "is not a PNG"),
    ],
)
def test_what_is_no_picture_is_refused(content: bytes, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(ImageUnreadable, match=sentence):
        put(ImageShelf(None), tmp_path, content)


@pytest.mark.parametrize("content", [bomb(60_000, 60_000), bomb(2**31 - 1, 1), png()[:200]])
def test_bombs_and_torn_files_are_refused_before_a_pixel_is_decoded(
    content: bytes, tmp_path: Path
) -> None:
    shelf = ImageShelf(tmp_path / "small")
    known = put(shelf, tmp_path, content)
    for ask in (shelf.original, lambda digest: shelf.thumbnail(digest, 256)):
        with pytest.raises(ImageUnreadable):
            ask(known.sha256)
    assert not (tmp_path / "small").exists()


def test_nothing_outside_of_the_data_is_shown(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (tmp_path / "secret.png").write_bytes(png())
    (data / "link.png").symlink_to(tmp_path / "secret.png")
    shelf = ImageShelf(None)
    for path in (data / "../secret.png", data / "link.png", tmp_path / "secret.png"):
        with pytest.raises(ImageUnreadable, match="outside of the data"):
            shelf.put(ImageRef(path=path), DataFolder(data))


def test_a_file_that_changed_is_another_picture(tmp_path: Path) -> None:
    shelf = ImageShelf(None)
    known = put(shelf, tmp_path, png())
    (tmp_path / "shot.png").write_bytes(png(shade=10))
    with pytest.raises(ImageUnreadable, match="has changed"):
        shelf.original(known.sha256)


def test_thumbnails_are_small_and_kept(tmp_path: Path) -> None:
    shelf = ImageShelf(tmp_path / "small")
    known = put(shelf, tmp_path, encoded("PNG", (1_000, 9_000)))
    first = shelf.thumbnail(known.sha256, 256)
    with Image.open(BytesIO(first)) as small:
        assert (small.format, small.size) == ("WEBP", (256, 384))
    (tmp_path / "shot.png").unlink()
    assert shelf.thumbnail(known.sha256, 256) == first


def test_the_cache_of_thumbnails_has_a_size(tmp_path: Path) -> None:
    shelf = ImageShelf(tmp_path / "small", cache_bytes=500)
    for shade in range(70):
        known = put(shelf, tmp_path, png(shade=shade), f"{shade}.png")
        shelf.thumbnail(known.sha256, 256)
    files = [*(tmp_path / "small").iterdir()]
    assert (tmp_path / "small" / f"{known.sha256}-256.webp") in files
    assert len(files) < 20


def test_pictures_that_came_inline_are_forgotten_in_turn() -> None:
    shelf = ImageShelf(None)
    first = shelf.put(ImageRef(data=png()), None)
    noise = [encoded("PNG") + bytes(15 * 2**20) + bytes((place,)) for place in range(5)]
    for content in noise:
        shelf.put(ImageRef(data=content), None)
    with pytest.raises(UnknownImage):
        shelf.original(first.sha256)


@pytest.fixture
def shop(tmp_path: Path) -> tuple[TrajectoryAccess, KnownImage]:
    access = TrajectoryAccess(ImageShelf(tmp_path / "small"))
    return access, put(access.shelf, tmp_path, png())


def test_the_address_serves_it_once(
    shop: tuple[TrajectoryAccess, KnownImage], tmp_path: Path
) -> None:
    access, known = shop
    with served(Workspace(), [Room(routes(access))]) as server:
        for query, kind in (("", "image/png"), ("?w=256", "image/webp")):
            answer = head(server, f"/image/{known.sha256}{query}")
            assert (answer[0], answer[1]["content-type"]) == (200, kind)
            assert answer[1]["cache-control"] == "private, immutable, max-age=31536000"
            assert answer[1]["x-content-type-options"] == "nosniff"
            tag = answer[1]["etag"]
            assert head(server, f"/image/{known.sha256}{query}", If_None_Match=tag)[0] == 304
        for path in ("/image/" + "0" * 64, "/image/..%2f..%2fetc%2fpasswd", "/image/x"):
            assert server.ask(path).status == 404
        for width in ("0", "-1", "100000", "256.0", "x"):
            assert server.ask(f"/image/{known.sha256}?w={width}").status == 404
        # What a browser has already is not read again.
        for file in tmp_path.glob("*.png"):
            file.unlink()
        tag = f'"{known.sha256}"'
        assert head(server, f"/image/{known.sha256}", If_None_Match=tag)[0] == 304
        assert head(server, f"/image/{known.sha256}")[0] == 404


def head(server: Served, path: str, **headers: str) -> tuple[int, dict[str, str]]:
    from http.client import HTTPConnection

    connection = HTTPConnection("127.0.0.1", server.port, timeout=60)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request("GET", path, headers=named)
    response = connection.getresponse()
    response.read()
    connection.close()
    return response.status, {name.lower(): value for name, value in response.getheaders()}


GREY, RED = (120, 120, 120), (220, 0, 0)


def picture(
    shelf: ImageShelf,
    folder: Path,
    name: str,
    size: tuple[int, int] = (200, 100),
    at: tuple[int, int, int, int] | None = None,
) -> KnownImage:
    """A grey picture, with a red box where one is asked for."""
    image = Image.new("RGB", size, GREY)
    if at is not None:
        image.paste(RED, at)
    buffer = BytesIO()
    image.save(buffer, "PNG")
    return put(shelf, folder, buffer.getvalue(), name)


def difference(shelf: ImageShelf, before: KnownImage, after: KnownImage) -> PixelDifference:
    told = pixel_difference(shelf, before, after)
    assert isinstance(told, PixelDifference)
    return told


def test_what_changed_is_told_and_drawn_where_it_is(tmp_path: Path) -> None:
    shelf = ImageShelf(None)
    before = picture(shelf, tmp_path, "a.png")
    after = picture(shelf, tmp_path, "b.png", at=(100, 20, 140, 70))
    told = difference(shelf, before, after)
    assert told.sentence == (
        "10.0 % of the pixels differ, all of them between (100, 20) and (140, 70)."
    )
    drawn = Image.open(BytesIO(difference_picture(shelf, before.sha256, after.sha256)))
    assert (drawn.format, drawn.size) == ("WEBP", (200, 100))
    red, faded = drawn.convert("RGB").getpixel((120, 45)), drawn.convert("RGB").getpixel((20, 45))
    assert isinstance(red, tuple)
    assert isinstance(faded, tuple)
    assert red[0] > 180 and red[1] < 60
    assert min(faded) > 180 and max(faded) - min(faded) < 6


def test_a_share_of_a_thousandth_is_the_least_that_is_told(tmp_path: Path) -> None:
    for width, shown in ((100, "0.1 %"), (101, "less than 0.1 %")):
        shelf = ImageShelf(None)
        before = picture(shelf, tmp_path, "a.png", (width, 10))
        after = picture(shelf, tmp_path, "b.png", (width, 10), at=(3, 4, 4, 5))
        assert difference(shelf, before, after).sentence == (
            f"{shown} of the pixels differ, all of them between (3, 4) and (4, 5)."
        )
        assert Image.open(BytesIO(shelf.thumbnail(before.sha256, 50))).size == (50, 5)


def test_pictures_that_are_alike_and_of_other_sizes(tmp_path: Path) -> None:
    shelf = ImageShelf(None)
    before = picture(shelf, tmp_path, "a.png")
    same = difference(shelf, before, before)
    assert (same.sentence, same.differs) == ("No pixel differs.", False)
    shorter = picture(shelf, tmp_path, "b.png", (200, 75))
    told = difference(shelf, before, shorter)
    assert "25.0 % of the pixels differ" in told.sentence
    assert "other sizes: 200 x 100 and 200 x 75" in told.sentence
    longer = difference(shelf, shorter, before)
    assert (longer.width, longer.height, longer.differs) == (200, 75, False)


def test_what_cannot_be_compared_is_a_sentence(tmp_path: Path) -> None:
    shelf = ImageShelf(None)
    before = picture(shelf, tmp_path, "a.png")
    broken = KnownImage("0" * 64, 1, 1)
    assert "cannot be compared" in str(pixel_difference(shelf, before, broken))
    with pytest.raises(UnknownImage):
        difference_picture(shelf, before.sha256, "0" * 64)
    hostile = put(shelf, tmp_path, bomb(3_000, 3_000), "bomb.png")
    assert "cannot be compared" in str(pixel_difference(shelf, before, hostile))


def put(shelf: ImageShelf, folder: Path, content: bytes, name: str = "shot.png") -> KnownImage:
    (folder / name).write_bytes(content)
    return shelf.put(ImageRef(path=folder / name), DataFolder(folder))
