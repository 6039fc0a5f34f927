"""The bundled sample: agents that were recorded in a small web shop, with labels."""

from __future__ import annotations

from pathlib import Path

SAMPLE = "sample"  # what a user writes for it, of trajectories and of labels


def sample_path() -> Path:
    """Return the folder of the sample: trajectories, images, ``labels.jsonl`` and
    ``facts.jsonl``."""
    return Path(__file__).parent


def resolve_sample(spec: str, file: str = "") -> str:
    """Return ``KIND:PATH`` of the installed sample, or of a ``file`` of it, where ``spec`` is
    ``sample``; any other ``spec`` as it is."""
    return f"trajudge:{sample_path() / file}" if spec == SAMPLE else spec
