"""Judges as rewards: a value for a trainer, or an abstention, never a number for a failure.

``reward`` maps a judgment to its value and ``rewarder`` runs the judge in process. ``serve`` starts
the HTTP server: ``server`` has its routes, ``service`` its state. ``client`` calls the server,
``trainers`` has the function or class of each trainer, and ``watch`` monitors the judge and the
policy for drift. No module here imports a trainer at its top. ``RewardClient`` is imported on first
use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trajudge.rewards.client import RewardClient

__all__ = ["RewardClient"]


def __getattr__(name: str) -> object:
    if name in __all__:
        return getattr(import_module("trajudge.rewards.client"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
