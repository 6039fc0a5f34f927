"""Task files for the tests of the rules' commands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import trajudge.rules


def tasks_file(folder: Path, content: Any) -> list[str]:
    """Write the tasks and name them as a command's option."""
    path = folder / "tasks.json"
    path.write_text(json.dumps(content))
    return ["--tasks", str(path)]


DIFFERENCES = (Path(trajudge.rules.__file__).parent / "DIFFERENCES.md").read_text(encoding="utf-8")
