"""Capabilities of models: windows, images, reasoning, the names and limits of parameters."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from trajudge.judges.models.names import model_name
from trajudge.judges.models.table import row_of_model
from trajudge.trajectories.model import Record
from trajudge.trajectories.tokens import ImagePricing

# Tokens of a reply by default: of a model that reasons first, and of any other.
REASONING_TOKENS = 16_000
REPLY_TOKENS = 1_024


class Capability(Record):
    """Capabilities of a model.

    ``context`` and ``output`` in tokens; images by longest side and area in pixels, bytes of the
    encoded file, and by whose formula one is counted in tokens. ``temperature``: whether the model
    takes one while it reasons;
    ``default_effort``: how it reasons when no effort is named. A Claude is told to think by an
    ``effort``, by ``adaptive_thinking`` or, without that or with ``budget_thinking``, by a budget;
    ``thinks_when_told``: it does not otherwise, unless it ``always_thinks``. ``cache_minimum``: the
    tokens that a prompt must begin with alike for its provider to cache them on request.
    ``structured_output`` None: nobody states it.
    """

    context: int
    output: int
    images: bool = True
    limit_name: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    temperature: bool = True
    reasoning: bool = False
    structured_output: bool | None = None
    adaptive_thinking: bool = False
    budget_thinking: bool = False
    effort: bool = False
    thinks_when_told: bool = False
    always_thinks: bool = False
    default_effort: str | None = None
    cache_minimum: int = 1024
    image_max_side: int = 2048
    image_max_pixels: int = 2048 * 2048
    image_max_bytes: int = 5_000_000
    image_pricing: ImagePricing = "unknown"
    image_media_types: frozenset[str] = frozenset({"image/png", "image/jpeg", "image/webp"})

    def reasons(self, effort: str | None = None, budget: int | None = None) -> bool:
        """Tell whether the model reasons before it answers, with this effort and token budget."""
        if effort or budget:
            return effort != "none"
        told_only = self.thinks_when_told or self.default_effort == "none"
        return self.reasoning and (self.always_thinks or not told_only)

    def default_max_tokens(self, effort: str | None = None, budget: int | None = None) -> int:
        """Return the tokens of a reply where nobody names them, reasoning included."""
        if not self.reasons(effort, budget):
            return min(REPLY_TOKENS, self.output)
        wanted = max(REASONING_TOKENS, (budget or 0) + REPLY_TOKENS)
        return max(1, min(wanted, self.output, self.context // 2))

    def takes_temperature(self, effort: object = None) -> bool:
        """Tell whether the model takes a temperature with this effort of reasoning."""
        return self.temperature or (effort or self.default_effort) == "none"


@cache
def capability(model: str) -> Capability:
    """Look up ``model``, with or without ``provider/``: its row in the table, and what that does
    not state by its family (``capabilities.toml``); a careful default for the unknown."""
    name = model_name(model)
    family = next(facts for pattern, facts in _families() if fnmatchcase(name, pattern))
    found = row_of_model(model)
    return Capability(**{**family, **(_stated(found.row) if found else {})})


def is_known(model: str) -> bool:
    """Tell whether the table states the window of ``model``."""
    found = row_of_model(model)
    return found is not None and "context" in found.row


def _stated(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts of a row. Of images, it names only models that take them or take none."""
    return {"images": False} | {k: v for k, v in row.items() if k in Capability.model_fields}


@cache
def _families() -> list[tuple[str, dict[str, Any]]]:
    """Load the patterns in the order of the file: the first match counts."""
    text = files("trajudge.judges.models").joinpath("capabilities.toml").read_text()
    return [
        (pattern, {name: value for name, value in entry.items() if name != "patterns"})
        for entry in tomllib.loads(text)["family"]
        for pattern in entry["patterns"]
    ]
