"""The bundled sample: agents that were recorded in a small web shop, with labels."""

from __future__ import annotations

from pathlib import Path


def sample_path() -> Path:
    """Return the folder of the sample: trajectories, images, ``labels.jsonl`` and
    ``facts.jsonl``."""
    return Path(__file__).parent
