"""Typed values of WebArena Verified: one documented normal form per kind, in two modes.

``normalise`` returns the normal form of a value, ``equal`` compares a specification's value with an
agent's, ``match_unordered`` matches whole lists. ``texts`` and ``quantities`` document for each
kind what is read and what is equal; ``release`` has the published package's semantics;
DIFFERENCES.md shows the differences by example.
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
