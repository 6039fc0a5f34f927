"""How much of a search or a sample every run of the tests tries; ``make fuzz`` tries all of it.

A test that tries a part is marked ``sampled`` (property tests are searches by nature).
"""

from __future__ import annotations

import os

FUZZING = "TRAJUDGE_FUZZ" in os.environ
_PART = 0.4


def examples(full: int = 100) -> int:
    """How many examples a property test searches, of as many as ``make fuzz`` does."""
    return full if FUZZING else round(full * _PART)
