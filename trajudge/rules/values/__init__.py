"""Typed values of WebArena Verified: one documented normal form a kind, in two modes.

``normalise`` gives the normal form of one value, ``equal`` compares a specification's value with an
agent's, ``match_unordered`` pairs whole lists. ``texts`` and ``quantities`` say of each kind what
is read and what is the same; ``release`` holds the published package's semantics; DIFFERENCES.md
tells the two apart by example.
"""

from __future__ import annotations

from trajudge.rules.limits import (
    BadPattern,
    BadSpecification,
    InvalidValue,
    TooLarge,
    TooSlow,
    Undecided,
)
from trajudge.rules.values.compare import KINDS, equal, normalise
from trajudge.rules.values.model import Match, Mode

__all__ = [
    "KINDS",
    "BadPattern",
    "BadSpecification",
    "InvalidValue",
    "Match",
    "Mode",
    "TooLarge",
    "TooSlow",
    "Undecided",
    "equal",
    "normalise",
]
