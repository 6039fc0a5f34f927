"""The benchmark's simulations, some of them: intervals hold, and measuring is fast enough."""

from __future__ import annotations

import pytest

from benchmarks.robustness import coverage, expanding, measuring


@pytest.mark.slow
def test_intervals_cover_what_is_true() -> None:
    """120 simulations: at 95 % fewer than 88 % would be chance in one of a thousand."""
    found = coverage(120, seed=1)
    assert len(found) == 6
    assert min(found.values()) >= 0.88, found
    assert found["attack success"] < 1 and found["excess flips over the identity"] < 1


def test_verdicts_are_measured_and_variants_made_at_once_by_the_thousand() -> None:
    """That it runs; how long it takes is the benchmark's to say."""
    assert measuring(10_000) > 0
    variants, _, each = expanding(13)
    assert variants > 200 and each > 0
