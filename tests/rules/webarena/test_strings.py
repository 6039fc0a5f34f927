"""How text is compared: the harness's cleaning, substrings, and the one-character rule."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trajudge.rules.webarena.strings import clean, exact_match, is_token, must_include


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("  Yes ", "yes"),
        ("'Yes'", "yes"),
        ('"Yes"', "yes"),
        ("'\"Yes\"'", '"yes"'),
        ("'Yes\"", "'yes\""),
        ("", ""),
        ("'", ""),
    ],
)
def test_cleaning_lowers_strips_and_takes_one_pair_of_quotes(text: str, cleaned: str) -> None:
    assert clean(text) == cleaned


def test_exact_means_all_of_it() -> None:
    assert exact_match("'Yoga Ball'", "yoga ball")
    assert not exact_match("Yoga ball", "a yoga ball")


def test_including_means_any_part_of_it_which_is_the_weakness() -> None:
    assert must_include("Yes", "yes, the final answer is no")
    assert must_include("14", "2140")
    assert not must_include("14", "1 4")


@pytest.mark.parametrize(
    "text",
    [
        "2 ",
        " 2. ",
        "2, 3",
        "is 2. then",
        "(2)",
        "'2'",
        '"2"',
        "$2",
        "2%",
        "2:",
        "2;3",
        "2's",
        "*2*",
        "two--2",
        "2...",
        "a: 2",
    ],
)
def test_one_character_is_found_where_it_stands_alone(text: str) -> None:
    assert is_token("2", text)


@pytest.mark.parametrize("text", ["12", "2.5", "1,2", "2/3", "2-3", "2:30", "~2", "x2", "n'2", ""])
def test_one_character_is_not_found_inside_a_word(text: str) -> None:
    assert not is_token("2", text)


def test_only_a_lone_reference_of_one_character_is_held_to_tokens() -> None:
    assert not must_include("2", "12", tokens=True)
    assert must_include("2", "12", tokens=False)
    assert must_include("12", "2120", tokens=True)


@given(st.characters(), st.text())
def test_no_text_is_ever_a_pattern(character: str, text: str) -> None:
    if is_token(character, text):
        assert character in text


@given(st.text())
def test_a_text_includes_itself(text: str) -> None:
    assert must_include(text, clean(text))


@pytest.mark.parametrize("unit", ["2", "2.", "2.)", "'", "2'", ",2", "--"])
def test_time_grows_with_the_length_and_no_faster(unit: str) -> None:
    """Quadratic time would run into the test's own time limit."""
    text = "x" + unit * (4_000_000 // len(unit)) + "x"
    assert is_token("7", text + " 7")
    assert not is_token("7", text + "7x")
