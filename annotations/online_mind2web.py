"""The experts' labels of Online-Mind2Web (300 tasks, six agents), from ``human_label.json``.

"1" is success; "0" failure and "2" not executable, which the benchmark counts as failure.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from trajudge.trajectories.util import python_json
from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.safe_files import DataFolder, read_regular

_MAX_BYTES = 256 * 2**20
_ROWS = msgspec.json.Decoder(list[dict[str, str]])
_SUFFIX = "_human_label"
_SUCCESS = {"0": False, "1": True, "2": False}


class HumanLabel(NamedTuple):
    """What the experts said of one agent's run on one task."""

    task_id: str
    agent: str
    success: bool


def human_labels(path: Path) -> Iterator[HumanLabel]:
    """Every label of the file (or of ``human_label.json`` in a folder), in file order.

    The agents are named as in the file: ``Operator``, ``SeeAct``, ``Browser_Use``, …
    Raises UserError if the file is missing or is not such a file.
    """
    file = path / "human_label.json" if path.is_dir() else path
    try:
        inside = DataFolder(path) if path.is_dir() else None
        data = inside.read(file, _MAX_BYTES) if inside else read_regular(file, _MAX_BYTES)
        rows = python_json.decode(data, _ROWS)
    except OSError as error:
        raise UserError(
            f"{file} cannot be read ({error.strerror}): name Online-Mind2Web's human_label.json"
        ) from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{file} is no human_label.json of Online-Mind2Web: {error}") from None
    return _labels(file, rows)


def _labels(file: Path, rows: list[dict[str, str]]) -> Iterator[HumanLabel]:
    for number, row in enumerate(rows):
        if "task_id" not in row:
            raise UserError(f"{file}: entry {number} has no task_id")
        for column, label in row.items():
            if not column.endswith(_SUFFIX):
                continue
            if label not in _SUCCESS:
                raise UserError(
                    f"{file}: {column} of task {row['task_id']} is {label!r}, not '0', '1' or '2'"
                )
            agent = column.removesuffix(_SUFFIX)
            yield HumanLabel(row["task_id"], agent, _SUCCESS[label])
