"""Progress of fetching, on stderr: a bar on a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from time import monotonic

from trajudge.trajectories.hub.mirror import DownloadCounts, HubCopy
from trajudge.trajectories.util.progress import progress_bar

_LINE_EVERY_SECONDS = 10.0


@contextmanager
def fetch_progress(copy: HubCopy, total: int) -> Iterator[Callable[[], None]]:
    """Yield the function that counts one more of ``total`` files and shows what was downloaded.

    Silent until something is really downloaded, so that a complete local copy reads without a word.
    """
    numbers = count(1)
    last_line = 0.0

    def advance() -> None:
        nonlocal last_line
        done = next(numbers)
        if not copy.counts.downloaded:
            return
        if sys.stderr.isatty():
            show(f"fetching ({_downloads(copy.counts)})", done, total)
        elif monotonic() - last_line > _LINE_EVERY_SECONDS or done == total:
            last_line = monotonic()
            sys.stderr.write(f"fetching: {done}/{total}, {_downloads(copy.counts)}\n")

    with progress_bar() as show:
        yield advance


def _downloads(counts: DownloadCounts) -> str:
    missing = f", {counts.missing} not in the dataset" if counts.missing else ""
    return f"{counts.downloaded} files, {counts.bytes / 1e6:.1f} MB{missing}"
