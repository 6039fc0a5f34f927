"""How much of a search or a sample every run of the tests tries; ``make fuzz`` tries all of it.

A test that tries a part is marked ``sampled`` (property tests are searches by nature).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

import pytest

F = TypeVar("F", bound=Callable[..., Any])

FUZZING = "TRAJUDGE_FUZZ" in os.environ
_PART = 0.25


def examples(full: int = 100) -> int:
    """How many examples a property test searches, of as many as ``make fuzz`` does."""
    return full if FUZZING else round(full * _PART)


def repeats(few: int, full: int) -> int:
    """How often a seeded check is repeated: ``make fuzz`` repeats it in full (mark it
    ``sampled``)."""
    return full if FUZZING else few


def narrow(test: F) -> F:
    """Show what a slow command prints on the narrow terminal alone; ``make fuzz`` has both."""
    widths = [100, 80] if FUZZING else [80]
    both: F = pytest.mark.sampled(pytest.mark.parametrize("width", widths, indirect=True)(test))
    return both
