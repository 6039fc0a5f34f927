"""Files that appear under their name only when they are whole."""

from __future__ import annotations

from pathlib import Path


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file, replacing an earlier one; a killed process leaves the earlier one. Raises
    OSError."""
    part = path.with_name(path.name + ".part")
    part.write_bytes(content)
    part.replace(path)
