"""Submissions as the released package packs them: ``TASK_ID/agent_response.json`` and
``network.har``, in a folder or in a ``.tar.gz`` of one. The archive is untrusted.
"""

from __future__ import annotations

import re
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from lzma import LZMAError
from pathlib import Path, PurePosixPath

from trajudge.rules.reading import MAX_BYTES
from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.safe_files import UnsafeFile, open_regular

MAX_UNPACKED = 4 * 2**30
MAX_FILES = 100_000
_PART = re.compile(r"(?!\.+\Z)[\w.-]{1,200}")
_DAMAGED = (tarfile.TarError, zlib.error, LZMAError, EOFError, OSError, ValueError)


@contextmanager
def opened_runs(path: Path) -> Iterator[Path]:
    """Yield the folder of the runs: the path itself, or what an archive holds, unpacked for as long
    as the context lasts.

    Raises UserError for an archive that is damaged, too large, or holds a file twice.
    """
    if path.is_dir() or not path.exists():
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="trajudge-") as folder:
        try:
            with open_regular(path) as file, tarfile.open(fileobj=file, mode="r:*") as archive:
                _unpack(archive, path, Path(folder))
        except UnsafeFile as error:
            raise UserError(f"{path}: {error}: name a file that is read") from error
        except _DAMAGED as error:
            raise UserError(
                f"{path}: no folder of runs and no whole .tar.gz of one ({error}): "
                "name one, or pack it again"
            ) from error
        yield Path(folder)


def _unpack(archive: tarfile.TarFile, path: Path, folder: Path) -> None:
    """Write the regular files of runs, by the last two parts of their names; no link is followed,
    nothing else is made. Raises UserError."""
    left = MAX_UNPACKED
    for count, member in enumerate(archive):
        left -= max(member.size, 0)
        if left < 0 or member.size > MAX_BYTES or count >= MAX_FILES:
            most = f"{MAX_UNPACKED / 2**30:g} GiB, {MAX_BYTES / 2**20:g} MiB a file, {MAX_FILES:,}"
            raise UserError(
                f"{path}: unpacks to more than {most} files: unpack it and name the folder"
            )
        parts = PurePosixPath(member.name).parts[-2:]
        if not member.isfile() or len(parts) < 2 or not all(map(_PART.fullmatch, parts)):
            continue
        target = folder.joinpath(*parts)
        if target.exists():
            raise UserError(f"{path}: holds {'/'.join(parts)} twice: keep one run of each task")
        target.parent.mkdir(exist_ok=True)
        packed = archive.extractfile(member)
        if packed is not None:
            with packed, target.open("xb") as unpacked:
                shutil.copyfileobj(packed, unpacked, 2**20)
