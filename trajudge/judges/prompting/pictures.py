"""Pictures for a prompt, within the limits of the model that reads them."""

from __future__ import annotations

from pydantic import field_serializer

from trajudge.judges.model import Detail, Picture
from trajudge.trajectories.images.prepare import load_picture
from trajudge.trajectories.model import ImageRef, Record
from trajudge.trajectories.tokens import ImagePricing, image_tokens


class ImageLimits(Record):
    """What a model takes: longest side and all pixels of an image, bytes of its file, media types;
    and by whose formula an image is counted in tokens. The defaults suit every provider."""

    max_side: int = 2048
    max_pixels: int = 4_000_000
    max_bytes: int = 5_000_000
    media_types: frozenset[str] = frozenset({"image/png", "image/jpeg", "image/webp", "image/gif"})
    pricing: ImagePricing = "unknown"

    @field_serializer("media_types")
    def _in_order(self, media_types: frozenset[str]) -> list[str]:
        # A set's order differs from process to process, and a run's manifest must not.
        return sorted(media_types)


def picture(ref: ImageRef, limits: ImageLimits, detail: Detail | None = None) -> Picture:
    """Load the image behind ``ref``, to be sent with ``detail``. Raises ImageUnreadable."""
    image = load_picture(
        ref,
        max_side=limits.max_side,
        max_pixels=limits.max_pixels,
        max_bytes=limits.max_bytes,
        media_types=limits.media_types,
    )
    return Picture(
        sha256=image.sha256,
        media_type=image.media_type,
        width=image.width,
        height=image.height,
        detail=detail,
        data=image.data,
    )


def picture_tokens(shown: Picture, limits: ImageLimits) -> int:
    """Estimate the tokens that the picture takes in the prompt."""
    return image_tokens(shown.width, shown.height, limits.pricing)
