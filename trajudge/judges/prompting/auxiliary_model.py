"""Auxiliary models: models that a judge's options name beside the run's own."""

from __future__ import annotations

from trajudge.judges.prompting.pictures import ImageLimits
from trajudge.trajectories.model import Record


class AuxiliaryModel(Record):
    """A model beside the run's own, such as a captioner, and the limits of its prompts.

    ``model`` is the name to pass to a ``ModelClient``, None for the run's own model;
    ``max_prompt_tokens`` is what its window leaves for the prompt, pictures included.
    """

    model: str | None = None
    max_prompt_tokens: int = 120_000
    images: ImageLimits = ImageLimits()

    def __str__(self) -> str:
        return self.model or "own"
