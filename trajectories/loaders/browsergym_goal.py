"""The goal of a BrowserGym run: messages of text and images in the OpenAI form."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping

from trajectories.inert import mapping
from trajectories.loaders.files import text
from trajectories.model import ImageRef


def read_goal(
    goal_object: object, first: Mapping[object, object], warnings: list[str]
) -> tuple[str | None, tuple[ImageRef, ...]]:
    """Text and images of ``goal_object``, or of the first observation where that is missing.

    Images count if they are base64 data URLs; nothing is fetched, and others leave a warning.
    """
    parts = goal_object if goal_object else first.get("goal_object")
    if not isinstance(parts, list | tuple):
        return text(first.get("goal")), ()
    texts = [found for part in parts if (found := text(mapping(part).get("text")))]
    images = tuple(_images(parts, warnings))
    return "\n".join(texts) or text(first.get("goal")), images


def _images(parts: list[object] | tuple[object, ...], warnings: list[str]) -> Iterator[ImageRef]:
    for part in parts:
        url = mapping(part).get("image_url")
        url = mapping(url).get("url") if isinstance(url, dict) else url
        if url is None:
            continue
        head, _, data = url.partition(",") if isinstance(url, str) else ("", "", "")
        if not (head.startswith("data:image/") and head.endswith(";base64")):
            warnings.append("An image of the goal is not part of the files.")
            continue
        try:
            yield ImageRef(data=base64.b64decode(data, validate=True))
        except (binascii.Error, ValueError):
            warnings.append("An image of the goal is not valid base64.")
