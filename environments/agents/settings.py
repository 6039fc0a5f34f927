"""How the model of an agent is reached, as typed settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trajectories.model import Record

if TYPE_CHECKING:
    from eval.model_side import ModelSide


class ModelSettings(Record):
    """The options of ``eval.judge`` that say how a model is reached, under the same names; None is
    the default there."""

    model: str
    adapter: str | None = None
    script: str | None = None
    base_url: str | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    rpm: float | None = None
    tpm: float | None = None
    context: int | None = None
    timeout: float | None = None
    max_cost: float | None = None
    prices: str | None = None
    cache: str | None = None
    seed: int | None = None


def model_side(settings: ModelSettings) -> ModelSide:
    """Open the model that these settings name. Raises UserError for what cannot work."""
    from eval.model_side import single_side  # noqa: PLC0415 - scripted agents need no model
    from eval.options import parse  # noqa: PLC0415

    words = [
        word
        for name, value in settings.model_dump(exclude_none=True).items()
        for word in (f"--{name.replace('_', '-')}", str(value))
    ]
    return single_side(settings.model, parse(words))
