"""How the model of an agent is reached, as typed settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from trajudge.judges.calls.handle import single_model

if TYPE_CHECKING:
    from trajudge.judges.calls.handle import ModelHandle
    from trajudge.judges.calls.settings import CallConfig


class ModelSettings(NamedTuple):
    """A model and how its calls are made."""

    model: str
    calls: CallConfig


def model_side(settings: ModelSettings) -> ModelHandle:
    """Open the model that these settings name. Raises UserError for what cannot work."""
    return single_model(settings.model, settings.calls)
