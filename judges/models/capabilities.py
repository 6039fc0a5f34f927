"""Capabilities of models: windows, images, the names and limits of parameters."""

from __future__ import annotations

import tomllib
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from typing import Literal

from trajudge.judges.models.names import model_name
from trajudge.trajectories.model import Record


class Capability(Record):
    """Capabilities of a model.

    ``context`` and ``output`` in tokens; images by longest side and area in pixels, and bytes of
    the encoded file. ``temperature``: whether the model takes one. ``cache_minimum``: the tokens
    that a prompt must begin with alike for its provider to cache them on request.
    """

    context: int
    output: int
    images: bool
    limit_name: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    temperature: bool = True
    reasoning: bool = False
    cache_minimum: int = 1024
    image_max_side: int = 2048
    image_max_pixels: int = 2048 * 2048
    image_max_bytes: int = 5_000_000
    image_media_types: frozenset[str] = frozenset({"image/png", "image/jpeg", "image/webp"})


@cache
def capability(model: str) -> Capability:
    """Look up ``model``, with or without ``provider/``; a careful default for the unknown
    (``capabilities.toml`` says which)."""
    name = model_name(model)
    for pattern, known in _table():
        if fnmatchcase(name, pattern):
            return known
    raise AssertionError("capabilities.toml ends with the pattern *")


def is_known(model: str) -> bool:
    """Tell whether ``capabilities.toml`` has more than the careful default for ``model``."""
    name = model_name(model)
    return any(fnmatchcase(name, pattern) for pattern, _ in _table() if pattern != "*")


@cache
def _table() -> list[tuple[str, Capability]]:
    """Load the patterns in the order of the file: the first match counts."""
    text = files("trajudge.judges.models").joinpath("capabilities.toml").read_text()
    entries = tomllib.loads(text)["model"]
    return [
        (pattern, Capability(**{k: v for k, v in entry.items() if k != "patterns"}))
        for entry in entries
        for pattern in entry["patterns"]
    ]
