"""The limits hold the truth of judges whose behaviour is known."""

from __future__ import annotations

import numpy as np
import pytest

from tests.worlds.robustness import OTHERS, coverage, outcomes, simulated, worst_cases


@pytest.mark.slow
def test_intervals_cover_what_is_true() -> None:
    """120 simulations: at 95 % fewer than 88 % would be chance in one of a thousand."""
    rng = np.random.default_rng(1)
    found = coverage(120, lambda: outcomes(rng))
    assert len(found) == 7
    assert min(found.values()) >= 0.88, found
    assert found["attack success"] < 1 and found["excess flips over the identity"] < 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["12 tasks", "hardly fooled", "precise judge"])
def test_limits_of_precision_hold_where_little_is_counted(name: str) -> None:
    """A bootstrap of precision itself held in 75 to 89 % of such designs."""
    rng, design = np.random.default_rng(2), OTHERS[name]
    found = coverage(100, lambda: worst_cases(simulated(rng, design), design, rng))
    assert min(found.values()) >= 0.88, found
