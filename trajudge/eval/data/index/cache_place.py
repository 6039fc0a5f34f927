"""Where side files of somebody's data are kept, and when they still belong to it.

They lie in the user's cache and never beside the data, until nobody has used them for 90 days. A
file is known again by its size, the time of its change, its status-change time and its number in
the file system: the last two cannot be set by an archive or a copy, so that a side file which came
with somebody's data is never believed.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

from trajudge.trajectories.util.local.cache import cache_folder

# File systems date a change to the tick of a clock: a file that changed this short before it was
# read may change again without a new date, so what was read of it is not kept. Nanoseconds.
SETTLED = 2_000_000_000
UNUSED = 90 * 24 * 3600  # seconds
_SIDE_FILE = re.compile(
    r"[0-9a-f]{32}\.(?:(?:index|columns|published|labels|rewards|keys)\.msgpack|run-index\.sqlite(?:-wal|-shm)?)"
)

FileIdentity = tuple[int, int, int, int]
"""Size, nanoseconds of the change and of the status change, number; all 0: there is no file."""


def place_in_cache(path: Path, name: str) -> Path | None:
    """Return where the side file ``name`` of a path is: where the cached replies are
    (``TRAJUDGE_CACHE`` names their file), else ``~/.cache/trajudge``. None for a user without a
    home."""
    name = hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:32] + name
    if replies := os.environ.get("TRAJUDGE_CACHE"):
        folder = Path(replies).expanduser().absolute().parent
    else:
        try:
            folder = cache_folder()
        except RuntimeError:
            return None
    forget_unused(folder)
    return folder / name


@cache
def forget_unused(folder: Path) -> None:
    """Remove side files that were not used for long; what is left behind does no harm. Once in a
    process."""
    oldest = time.time() - UNUSED
    with suppress(OSError):
        for entry in os.scandir(folder):
            if _SIDE_FILE.fullmatch(entry.name):
                status = entry.stat(follow_symlinks=False)
                if max(status.st_atime, status.st_mtime) < oldest:
                    Path(entry.path).unlink()


def identity_of(path: Path) -> FileIdentity:
    """Return what a file is known by."""
    try:
        status = path.stat()
    except OSError:  # whoever reads it says why
        return 0, 0, 0, 0
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino


def is_settled(identity: FileIdentity) -> bool:
    """Tell whether the file changed so long ago that another change would have another date."""
    return max(identity[1:3]) <= time.time_ns() - SETTLED
