"""A distribution as pip leaves it, without pip: its name and its entry points."""

from __future__ import annotations

from pathlib import Path


def write_metadata(site: Path, name: str, points: str) -> None:
    """Write the metadata of the distribution ``name`` 1.0 in ``site``, a folder to be on
    ``sys.path``; ``points`` is the content of its ``entry_points.txt``."""
    info = site / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(points)
