"""What is known of a model, and who says so, in a line for the screen."""

from __future__ import annotations

from trajudge.judges.calls.handle import ModelHandle
from trajudge.judges.models.prices import KnownPrice

_WINDOWS = {
    "table": "by the table",
    "named": "by --context",
    "file": "by --models",
    "server": "by its server",
    "litellm": "by litellm",
    "guess": "a guess",
}


def known_facts(handle: ModelHandle) -> str:
    """Say the model's window, limit of a reply and price, each with its source."""
    window = handle.window
    return (
        f"{handle.model}: window {window.tokens:,} tokens ({_WINDOWS[window.source]}), "
        f"replies up to {handle.max_tokens:,}, {_price(handle.priced)}"
    )


def _price(known: KnownPrice) -> str:
    price = known.price
    if price is None:
        return "price unknown (name it with --models or --prices)"
    dearer = f", more above {price.tiers[0].above:,} tokens" if price.tiers else ""
    return (
        f"${price.input:g} in and ${price.output:g} out per million tokens{dearer} "
        f"({known.source.source}: {known.source.detail})"
    )
