from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tables import table
from trajudge.util.terminal import count_of, listed, one_line


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a plain name", "a plain name"),
        ("  two  spaces stay", "  two  spaces stay"),
        ("\x1b[31mred\x1b[0m", r"\x1b[31mred\x1b[0m"),
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
        ("one\r\n  two\nthree\n", "one two three"),
        ("\x9b2J", r"\x9b2J"),
        ("abc\u202etxt.exe", r"abc\x202etxt.exe"),
        ("naïve 日本語 ✓", "naïve 日本語 ✓"),
    ],
)
def test_controls_are_shown_not_obeyed(text: str, shown: str) -> None:
    assert one_line(text) == shown


@given(st.text())
def test_no_control_character_is_left(text: str) -> None:
    assert all(unicodedata.category(character) != "Cc" for character in one_line(text))


@table(
    "count noun written",
    """
    0    | label      | 0 labels
    1    | label      | 1 label
    1302 | label      | 1,302 labels
    1    | trajectory | 1 trajectory
    2    | trajectory | 2 trajectories
    2    | day        | 2 days
    2    | batch      | 2 batches
    """,
)
def test_a_noun_agrees_with_its_count(count: str, noun: str, written: str) -> None:
    assert count_of(int(count), noun) == written


def test_a_list_of_many_names_ends_with_their_count() -> None:
    assert listed("abc") == listed("abc", 3) == "a, b, c"
    assert listed("abcdef", 2) == "a, b and 4 more"
    assert listed("abc", 2, sign="; ") == "a; b and 1 more"
