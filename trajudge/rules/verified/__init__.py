"""WebArena Verified: its tasks, the agent's response, the trace of the run, and the verdict.

``tasks`` reads tasks, ``answers`` the agent's answer, ``network`` what the run sent; ``evaluator``
holds them to each other in either mode, ``release`` as the package does, and ``state`` asks the
sites themselves. ``runs`` reads, judges and sums up what is on disk.
``register_browsergym`` makes BrowserGym's tasks of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trajudge.rules.verified.browsergym import register_browsergym

__all__ = ["register_browsergym"]


def __getattr__(name: str) -> object:
    """Import the one public name when it is first used: reading rules must cost nothing."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("trajudge.rules.verified.browsergym"), name)
