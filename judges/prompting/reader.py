"""A model as a judge's options name it: what may be sent to it, and how to reach it."""

from __future__ import annotations

from trajudge.judges.prompting.pictures import ImageLimits
from trajudge.trajectories.model import Record


class Reader(Record):
    """``model`` is the name to give to ``Ask``, None for the run's own model;
    ``max_prompt_tokens`` is what its window leaves for the prompt, pictures included."""

    model: str | None = None
    max_prompt_tokens: int = 120_000
    images: ImageLimits = ImageLimits()

    def __str__(self) -> str:
        return self.model or "own"
