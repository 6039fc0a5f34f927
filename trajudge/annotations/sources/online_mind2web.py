"""Expert labels of Online-Mind2Web (300 tasks, six agents), from ``human_label.json``.

"1" is success; "0" is failure and "2" not executable, which the benchmark counts as failure. A
label belongs to an agent's first attempt at a task. Agents have the file's names (``Operator``,
``SeeAct``, ``Browser_Use``, ...), which the folder of an agent's trajectories must also have
(``trajectories.loaders.online_mind2web``).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from trajudge.annotations.model import Label
from trajudge.trajectories.model import TrajectoryKey
from trajudge.util import jsonl as python_json
from trajudge.util.errors import UserError
from trajudge.util.files import DataFolder, read_regular, utf8

KIND = "online-mind2web"
FILE = "human_label.json"

_MAX_BYTES = 256 * 2**20
_ROWS = msgspec.json.Decoder(list[dict[str, str]])
_SUFFIX = "_human_label"
_ANNOTATOR = "expert"
_SUCCESS = {"0": False, "1": True, "2": False}


def detect(path: Path) -> bool:
    """Return True if ``path`` is a ``human_label.json`` or a folder with one."""
    return path.name == FILE or (path / FILE).is_file()


def load(path: Path) -> list[Label]:
    """Read every label of the file, or of ``human_label.json`` in a folder, in file order.

    Raises UserError if the file is missing or invalid.
    """
    file = path / FILE if path.is_dir() else path
    try:
        inside = DataFolder(path) if path.is_dir() else None
        content = inside.read(file, _MAX_BYTES) if inside else read_regular(file, _MAX_BYTES)
        rows = python_json.decode(utf8(content, file), _ROWS)
    except OSError as error:
        raise UserError(
            f"{file} cannot be read ({error.strerror}): name Online-Mind2Web's {FILE}"
        ) from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{file} is no {FILE} of Online-Mind2Web: {error}") from None
    return list(_annotations(file, rows))


def _annotations(file: Path, rows: list[dict[str, str]]) -> Iterator[Label]:
    for number, row in enumerate(rows):
        task = row.get("task_id")
        if not task:
            raise UserError(f"{file}: entry {number} has no task_id")
        for column, label in row.items():
            if not column.endswith(_SUFFIX):
                continue
            if label not in _SUCCESS:
                raise UserError(
                    f"{file}: {column} of task {task} is {label!r}, not '0', '1' or '2'"
                )
            key = TrajectoryKey(benchmark=KIND, agent=column.removesuffix(_SUFFIX), task_id=task)
            yield Label(key=key, raw_task_id=task, annotator=_ANNOTATOR, success=_SUCCESS[label])
