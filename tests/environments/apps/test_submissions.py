"""Lists with a search: what a number that somebody typed may be."""

from __future__ import annotations

import pytest

from trajudge.environments.apps.submissions import whole


@pytest.mark.parametrize(("text", "number"), [("1", 1), ("07", 7), ("99", 99)])
def test_a_whole_number_within_the_bounds_is_read(text: str, number: int) -> None:
    assert whole(text, 1, 99) == number


@pytest.mark.parametrize("text", ["", "0", "100", "-1", "1.5", "²", "९", "1" * 5000])
def test_anything_else_is_no_number(text: str) -> None:
    assert whole(text, 1, 99) is None
