"""Intervals against their formulas."""

from __future__ import annotations

import pytest

from trajudge.rules.intervals import t_half_width, wilson


@pytest.mark.parametrize(("wrong", "trials"), [(0, 1), (3, 10), (10, 10)])
def test_the_limits_are_wilsons(wrong: int, trials: int) -> None:
    z = 1.959963984540054
    share = wrong / trials
    centre = (share + z * z / (2 * trials)) / (1 + z * z / trials)
    spread = (
        z / (1 + z * z / trials) * (share * (1 - share) / trials + (z / (2 * trials)) ** 2) ** 0.5
    )
    assert wilson(wrong, trials) == pytest.approx((centre - spread, centre + spread))
    assert wilson(0, 0) == (None, None)


def test_the_half_width_is_students() -> None:
    # t(0.975, 3) = 3.182446, s = 0.478714, n = 4
    assert t_half_width([1, 0.5, 0, 0]) == pytest.approx(3.182446 * 0.478714 / 2, rel=1e-5)
    assert t_half_width([0, 0, 0]) == 0
    assert t_half_width([1]) is None
    assert t_half_width([]) is None
