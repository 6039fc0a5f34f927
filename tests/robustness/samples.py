"""The bundled sample with what is known of it, read once."""

from __future__ import annotations

from functools import cache

from trajudge.robustness.subjects import Subjects, subjects


@cache
def sample() -> Subjects:
    """Labelled runs of scripted agents with facts from the state."""
    return subjects("sample")
