"""Nothing in untrusted text is markup, and nothing in it is invisible."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.app.payloads import payloads
from trajudge.app.rendering import unfolding, visible

_BOX = re.compile(r'<span class="invisible" title="[^"<>]*">U\+([0-9A-F]{4,6})</span>')


@pytest.mark.parametrize(
    ("letter", "shown"),
    [
        ("\u200b", "U+200B"),
        ("\u202e", "U+202E"),
        ("\ufe0f", "U+FE0F"),
        ("\U000e0041", "U+E0041"),
        ("\u3164", "U+3164"),
        ("\u2800", "U+2800"),
        ("\x1b", "U+001B"),
        ("\ud800", "U+D800"),
    ],
)
def test_what_has_no_width_stands_as_its_code_point(letter: str, shown: str) -> None:
    text = visible(f"a{letter}b")
    assert f">{shown}</span>" in text
    assert letter not in text


def test_line_breaks_and_letters_of_all_scripts_stay() -> None:
    text = "año\n\t한국어 עברית"
    assert visible(text) == f"<bdi>{text}</bdi>"


def test_a_long_text_says_how_much_is_left_out() -> None:
    shown = visible("x" * 5_000_000, 10)
    assert shown.startswith("<bdi>xxxxxxxxxx</bdi>")
    assert "4,999,990 more characters" in shown
    assert len(shown) < 200


def test_what_has_to_be_read_whole_is_unfolded() -> None:
    text = "<b>" + "a\u200bb" * 10
    shown = unfolding(text, 12)
    front, _, fold = shown.partition("<details")
    assert "… 21 more characters</summary>" in fold
    assert front + fold[fold.index("<bdi>") : -len("</details>")] == visible(text[:12]) + visible(
        text[12:]
    )
    assert unfolding("short", 12) == visible("short")
    assert unfolding("a mug that is green", 8).startswith("<bdi>a mug </bdi><details")


@given(st.text(max_size=60) | st.sampled_from([*payloads()]))
def test_only_our_own_tags_are_left(text: str) -> None:
    shown = visible(text, 10**9)
    inside = shown.removeprefix("<bdi>").removesuffix("</bdi>")
    rest = _BOX.sub("", inside)
    assert not re.search("[<>\"']", rest)
    assert all(
        letter in "\n\t" or unicodedata.category(letter) not in {"Cc", "Cf", "Cs", "Co"}
        for letter in rest
    )
