"""What decoding costs: whatever the files declare, one process stays within its bound."""

from __future__ import annotations

import resource
import struct
import subprocess
import sys
import threading
import time
import zlib
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image

from trajudge.trajectories.images import MemoryLimiter, PictureLimits, load_picture, needed
from trajudge.trajectories.model import ImageRef
from trajudge.util.errors import ImageUnreadable

GREY, RGB, GREY_ALPHA = 0, 2, 4
_CHANNELS = {GREY: 1, RGB: 3, GREY_ALPHA: 2}
_ALL = frozenset({"image/png", "image/jpeg"})


def whole_png(width: int, height: int, colour: int = GREY) -> bytes:
    """A complete PNG of zeros, a thousand times smaller than its pixels."""

    def chunk(name: bytes, body: bytes) -> bytes:
        return (
            struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
        )

    compressor, row = zlib.compressobj(1), bytes(1 + width * _CHANNELS[colour])
    rows = max(1, 2**20 // len(row))
    body = b"".join(
        compressor.compress(row * min(rows, height - at)) for at in range(0, height, rows)
    )
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0))
    body = chunk(b"IDAT", body + compressor.flush())
    return b"\x89PNG\r\n\x1a\n" + head + body + chunk(b"IEND", b"")


def load(data: bytes | Path) -> tuple[int, int]:
    ref = ImageRef(path=data) if isinstance(data, Path) else ImageRef(data=data)
    found = load_picture(ref, PictureLimits(2048, 4_000_000, 5_000_000, _ALL))
    return found.width, found.height


@pytest.mark.parametrize("size", [(1, 63_000_000), (63_000_000, 1), (65_536, 2)])
def test_a_picture_of_one_endless_line_is_refused(size: tuple[int, int]) -> None:
    with pytest.raises(ImageUnreadable, match=r"a side longer than the 65535"):
        load(whole_png(*size))


def test_the_longest_side_that_is_decoded_takes_little() -> None:
    assert load(whole_png(1, 65_535)) == (1, 2048)


def test_a_picture_that_alone_would_take_more_than_all_may_is_refused() -> None:
    with pytest.raises(ImageUnreadable, match=r"MiB to decode, more than the 450 MiB"):
        load(whole_png(7_900, 8_000, GREY_ALPHA))


def test_no_memory_is_a_picture_that_cannot_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """The system refuses the bytes, as where a container has fewer than we allow ourselves."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    data = whole_png(7_000, 7_000, RGB)
    load(whole_png(3_000, 3_000))  # what is imported on the way
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + 100 * 2**20, hard))
    try:
        with pytest.raises(ImageUnreadable, match="memory"):
            load(data)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def test_the_estimate_knows_what_the_libraries_hold() -> None:
    def opened(kind: str, mode: str = "RGB", **options: bool) -> Image.Image:
        buffer = BytesIO()
        Image.new(mode, (100, 100)).save(buffer, kind, **options)
        return Image.open(buffer)

    plain = needed(opened("PNG"), (100, 100))
    assert plain == 10_000 * (4 + 4)
    assert needed(opened("PNG", "P"), (100, 100)) == 10_000 * (1 + 4 + 4)
    assert needed(opened("JPEG"), (100, 100)) == plain
    assert needed(opened("JPEG", progressive=True), (100, 100)) == plain + 10_000 * 6
    assert needed(opened("WEBP"), (100, 100)) == plain + 10_000 * 12
    assert needed(opened("PNG"), (10, 10)) == 10_000 * 4 + 4 * (10 * 110 + 100)


def test_threads_wait_for_their_share_and_all_get_it() -> None:
    gate, held, most = MemoryLimiter(100), 0, 0
    lock = threading.Lock()

    def work(size: int) -> None:
        nonlocal held, most
        with gate.hold(size):
            with lock:
                held += size
                most = max(most, held)
            time.sleep(0.002)
            with lock:
                held -= size

    threads = [threading.Thread(target=work, args=(size,)) for size in [60, 30, 100, 1, 41] * 6]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert held == 0
    assert 60 < most <= 100
    with pytest.raises(ImageUnreadable), gate.hold(101):
        pass
    with gate.hold(100):
        pass


_MEASURED = """
import sys, threading
from pathlib import Path
from tests.trajectories.images.test_memory import load
def kilobytes(name):
    return int(Path("/proc/self/status").read_text().partition(name)[2].split()[0])
load(Path(sys.argv[1]))
before = kilobytes("VmRSS:")
threads = [threading.Thread(target=load, args=(Path(name),)) for name in sys.argv[2:]]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print((kilobytes("VmHWM:") - before) / 1024)
"""


@pytest.mark.slow
def test_threads_together_stay_within_the_bound(tmp_path: Path) -> None:
    """Three pictures of 36,000,000 pixels at once: the resident memory of a process of its own."""
    small, large = tmp_path / "small.png", tmp_path / "large.png"
    small.write_bytes(whole_png(3_000, 50, RGB))
    large.write_bytes(whole_png(6_000, 6_000, RGB))
    names = [str(small), *[str(large)] * 3]
    done = subprocess.run(
        [sys.executable, "-c", _MEASURED, *names], capture_output=True, text=True, check=True
    )
    assert 130 < float(done.stdout) < 500
