"""A specification that has every part."""

from __future__ import annotations

from typing import Any

EVERY = "every configuration"
WHOLE: dict[str, Any] = {
    "name": "bench",
    "privileged": {"tasks": 10, "by_state": 10},
    "realistic": {"applications": "clones"},
    "integrity": {"feasible": EVERY, "coherent": EVERY, "nontrivial": EVERY},
    "sandboxed": {"deterministic_reset": True},
    "multifactorial": {"axes": {"theme": 3, "profile": 2}, "independent": True},
}
