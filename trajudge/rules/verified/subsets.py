"""Named parts of a task file, as the released package keeps them: ids, and a checksum of them."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from trajudge.rules.reading import decode, read_bytes
from trajudge.rules.verified.dataset import TaskId
from trajudge.util.errors import UserError

_NAME = re.compile(r"(?!\.+\Z)[\w.-]{1,200}")


class _Subset(Struct):
    task_ids: tuple[TaskId, ...]
    checksum: str | None = None


def checksum_of(task_ids: Sequence[TaskId]) -> str:
    """Return the package's checksum: SHA-256 of the sorted ids as compact JSON."""
    ordered = sorted(task_ids, key=lambda one: (isinstance(one, str), one))
    return hashlib.sha256(msgspec.json.encode(ordered)).hexdigest()


def subset_ids(named: str, tasks: Path) -> frozenset[str]:
    """Return the task ids of a subset, as texts: of a file, or by its name of one beside the task
    file (``NAME.json`` or ``subsets/NAME.json``, as in the package).

    Raises UserError for none, for ids that stand twice, and for a checksum that is not theirs.
    """
    path = _file(named, tasks)
    subset: _Subset = decode(read_bytes(path), _Subset, path)
    twice = [one for one, count in Counter(map(str, subset.task_ids)).items() if count > 1]
    if twice or not subset.task_ids:
        fault = f"names task {twice[0]} twice: keep one" if twice else "names no task: add some"
        raise UserError(f"{path}: {fault}")
    computed = checksum_of(subset.task_ids)
    if subset.checksum is not None and subset.checksum != computed:
        raise UserError(
            f"{path}: its checksum is not that of its {len(subset.task_ids)} task_ids, so they "
            f"were changed: get the file again, or write {computed} if the change is yours"
        )
    return frozenset(map(str, subset.task_ids))


def _file(named: str, tasks: Path) -> Path:
    """Raise UserError for a name that no file has."""
    path = Path(named)
    if path.exists() or not _NAME.fullmatch(named) or path.suffix == ".json":
        return path
    folder = tasks if tasks.is_dir() else tasks.parent
    places = [folder / f"{named}.json", folder / "subsets" / f"{named}.json"]
    for place in places:
        if place.is_file():
            return place
    raise UserError(
        f"--subset {named}: no file of that name, and neither {places[0]} nor {places[1]}: "
        "name the subset's file"
    )
