"""What a model takes of pictures, and how it counts them."""

from __future__ import annotations

from trajudge.judges.models.capabilities import Capability
from trajudge.judges.models.names import model_name
from trajudge.judges.prompting.pictures import ImageLimits
from trajudge.trajectories.tokens import ImagePricing


def image_limits(model: str, known: Capability) -> ImageLimits:
    """Return the limits of the pictures that a model is shown."""
    return ImageLimits(
        max_side=known.image_max_side,
        max_pixels=known.image_max_pixels,
        max_bytes=known.image_max_bytes,
        media_types=known.image_media_types,
        pricing=image_pricing(model),
    )


def image_pricing(model: str) -> ImagePricing:
    """Tell by whose formula an image is counted in tokens."""
    name = model_name(model)
    if name.startswith("claude-"):
        return "anthropic"
    if name.startswith(("gpt-4o-mini", "gpt-4.1-mini", "gpt-4.1-nano")):
        return "openai-mini"
    return "openai" if name.startswith(("gpt-4", "gpt-5", "chatgpt-")) else "unknown"
