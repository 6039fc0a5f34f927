"""WebArena Verified: tasks, the agent's response, the trace of the run, and the verdict.

``tasks`` reads tasks, ``answers`` the agent's answer, and ``network`` the trace; ``evaluator``
compares them in either mode, ``release`` as the package does, and ``state`` queries the sites.
``runs`` evaluates recorded runs. ``register_browsergym`` registers the tasks as BrowserGym
environments.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trajudge.rules.verified.browsergym import register_browsergym

__all__ = ["register_browsergym"]


def __getattr__(name: str) -> object:
    """Import the public name on first use, because an import of the rules must be fast."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("trajudge.rules.verified.browsergym"), name)
