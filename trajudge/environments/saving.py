"""The file of a command's result, written behind what the command prints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from trajudge.util.files import save_bytes


def save_result(path: Path, content: Any) -> None:
    """Write a result that has been printed as indented JSON: it is not lost to a file that cannot
    be written. Raises UserError."""
    save_bytes(path, orjson.dumps(content, option=orjson.OPT_INDENT_2))
