"""Texts of specifications: which words of a name count, and which text is the pattern."""

from __future__ import annotations

import pytest

from trajudge.rules.limits import PATTERN_REPEATS, BadPattern, compiled
from trajudge.rules.values.release import same_string
from trajudge.rules.values.texts import parse_name


@pytest.mark.parametrize(
    ("name", "words"),
    [("The Museum of the City", ("city", "museum")), ("The And", ("and", "the"))],
)
def test_small_words_count_where_there_is_no_other(name: str, words: tuple[str, ...]) -> None:
    assert parse_name(name) == words


def test_either_text_may_be_the_pattern() -> None:
    assert same_string("^gate [12]$", "gate 1") and same_string("gate 1", "^gate [12]$")
    assert not same_string("^gate [12]$", "gate 3")


def test_a_pattern_may_repeat_as_often_as_is_allowed() -> None:
    assert compiled(f"^a{{{PATTERN_REPEATS}}}$", 0)
    with pytest.raises(BadPattern, match="repeats more than 100,000 times"):
        compiled(f"^a{{{PATTERN_REPEATS + 1}}}$", 0)
