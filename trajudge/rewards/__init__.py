"""Judges as rewards: a value for a trainer, or an abstention, never a number for a failure.

``reward`` makes a judgment's value, ``rewarder`` asks the judge, ``serve`` starts the HTTP server
(``server``, and what it knows: ``service``), ``client`` asks it, ``trainers`` holds what each
trainer is given, ``watch`` says whether rewards can still be trusted. Trainers are imported by
nobody here. ``RewardClient`` is imported when it is first used.
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
