"""Names of places: which words count."""

from __future__ import annotations

import pytest

from trajudge.rules.values.texts import parse_name


@pytest.mark.parametrize(
    ("name", "words"),
    [("The Museum of the City", ("city", "museum")), ("The And", ("and", "the"))],
)
def test_small_words_count_where_there_is_no_other(name: str, words: tuple[str, ...]) -> None:
    assert parse_name(name) == words
