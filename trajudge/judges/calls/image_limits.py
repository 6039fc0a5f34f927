"""What a model takes of pictures."""

from __future__ import annotations

from trajudge.judges.models.capabilities import Capability
from trajudge.judges.prompting.pictures import ImageLimits


def image_limits(known: Capability) -> ImageLimits:
    """Return the limits of the pictures that a model is shown."""
    return ImageLimits(
        max_side=known.image_max_side,
        max_pixels=known.image_max_pixels,
        max_bytes=known.image_max_bytes,
        media_types=known.image_media_types,
        pricing=known.image_pricing,
    )
