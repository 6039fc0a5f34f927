"""The settings of ``trajudge audit``."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from trajudge.eval.settings import LabelConfig, TaskId


class AuditConfig(LabelConfig):
    """What is audited, against which labels, and where it is written.

    ``evaluator`` names a judge that is audited instead of the official reward (None),
    ``task_tables`` a folder with tables such as ``webarena.csv``, ``templates`` WebArena's task
    file.
    """

    runs: tuple[Path, ...] = ()
    judgments: Path | None = None
    split: Literal["dev", "test", "all"] = "all"
    task_id: TaskId = "recorded"
    evaluator: str | None = None
    data: str | None = None
    task_tables: Path | None = None
    templates: Path | None = None
    out: Path = Path("audit")
    full: bool = False
