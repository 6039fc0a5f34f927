"""Values at the edge of what is read: a unit or a scale may not come twice."""

from __future__ import annotations

import pytest

from trajudge.rules.values import InvalidValue, normalise


@pytest.mark.parametrize(
    ("kind", "value", "normal"),
    [
        ("duration", "1 h 1 min", "PT1H1M"),
        ("duration", "PT1H1M", "PT1H1M"),
        ("number", "two thousand three hundred", "2300"),
        ("number", "one million two thousand", "1002000"),
    ],
)
def test_units_and_scales_that_fall_are_read(kind: str, value: str, normal: str) -> None:
    assert str(normalise(kind, value)) == normal


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("duration", "1 h 1 h"),
        ("duration", "1 min 1 h"),
        ("number", "two thousand three thousand"),
        ("number", "two thousand one million"),
    ],
)
def test_a_unit_or_scale_that_comes_again_is_no_value(kind: str, value: str) -> None:
    with pytest.raises(InvalidValue):
        normalise(kind, value)
