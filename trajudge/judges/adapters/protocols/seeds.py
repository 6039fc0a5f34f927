"""The seed of a call: samples are asked with seeds of their own."""

from __future__ import annotations

from typing import Any

from trajudge.trajectories.util.options import LARGEST


def of_sample(parameters: dict[str, Any], sample: int) -> dict[str, Any]:
    """Return the parameters with the seed of this sample: that of the first one, plus its number,
    for servers give one answer to a request with one seed, however often they are asked."""
    seed = parameters.get("seed")
    if not sample or not isinstance(seed, int):
        return parameters
    return {**parameters, "seed": (seed + sample) % (LARGEST + 1)}
