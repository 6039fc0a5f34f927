"""Texts are measured, cut and broken by the columns that a terminal gives them."""

from __future__ import annotations

import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from wcwidth import wcswidth

from tests.samples import examples
from trajudge.util.terminal import broken, cells, elided, padded

FAMILY = "\U0001f469\u200d\U0001f469\u200d\U0001f467"
THUMB = "\U0001f44d\U0001f3fd"
UNITS = (
    "a",
    "-",
    "Ł",
    "κ",
    "–",
    "…",
    "日",
    "본",
    "ｶ",
    "e\u0301",
    "\u2764\ufe0f",
    "😀",
    THUMB,
    FAMILY,
)
NAMES = st.lists(st.sampled_from(UNITS), max_size=40).map("".join)
TEXTS = st.lists(st.sampled_from([*UNITS, " ", "  "]), max_size=120).map("".join)


@pytest.mark.parametrize("text", [*UNITS, "", "ไทย", "judge 日本語 – 3 ≥ 2", "→ ×½ 한국어"])
def test_a_text_takes_the_columns_that_wcwidth_counts(text: str) -> None:
    assert cells(text) == wcswidth(text)


def test_every_character_that_is_counted_without_a_table_is_one_column() -> None:
    """Those are decided by a pattern here, so that our own texts need no library."""
    ranges = [(0x20, 0x7E), (0xA0, 0x2FF), (0x370, 0x482), (0x2010, 0x2027), (0x2030, 0x205E)]
    for first, last in [*ranges, (0x2190, 0x22FF)]:
        for code in range(first, last + 1):
            assert cells(chr(code)) == 1 == wcswidth(chr(code)), hex(code)


@pytest.mark.parametrize(
    ("name", "width", "short"),
    [
        ("a-judge:model", 7, "a-ju…el"),
        ("a-judge:model", 20, "a-judge:model"),
        ("日本語の裁判官", 8, "日本…官"),
        ("日本語の裁判官", 14, "日本語の裁判官"),
        ("e\u0301" * 9, 4, "e\u0301e\u0301…e\u0301"),
        (FAMILY * 5, 7, FAMILY * 2 + "…" + FAMILY),
    ],
)
def test_a_name_is_shortened_in_the_middle(name: str, width: int, short: str) -> None:
    assert elided(name, width) == short


@settings(max_examples=examples())
@given(NAMES, st.integers(1, 40))
def test_what_is_shortened_or_padded_has_the_width(name: str, width: int) -> None:
    short = elided(name, width)
    assert wcswidth(short) <= width
    assert wcswidth(padded(short, width)) == width == wcswidth(padded(short, width, right=True))


@settings(max_examples=examples())
@given(TEXTS, st.integers(8, 40), st.sampled_from(["", "  "]))
@example("  a fact  beside", 10, "  ")
@example("a " + "-" * 90, 10, "  ")
def test_no_line_is_wider_and_nothing_is_lost(text: str, width: int, indent: str) -> None:
    lines = broken(text, width, indent=indent)
    assert all(wcswidth(line) <= width for line in lines)
    assert "".join("".join(lines).split()) == "".join(text.split())
    assert all(line.startswith(indent) for line in lines[1:])


def test_a_word_that_fits_on_a_line_is_not_broken() -> None:
    assert broken("by judge-a-b-c at 1", 13) == ["by", "judge-a-b-c", "at 1"]


def test_a_longer_word_is_broken_after_a_punctuation_mark() -> None:
    assert broken("by judge-a:model-b.c", 10) == ["by", "judge-a:", "model-b.c"]
    assert broken("x" * 12, 10) == ["x" * 10, "xx"]


def test_a_path_stays_whole_and_a_sentence_without_spaces_does_not() -> None:
    path = "/folder/" + "a-b" * 8
    assert broken(f"see {path}", 20, indent="  ", whole=True) == ["see", f"  {path}"]
    assert broken("裁判官" * 5, 14, whole=True) == ["裁判官裁判官裁", "判官裁判官裁判", "官"]
    assert broken("judge-a-b-c-d", 9, whole=True) == ["judge-a-", "b-c-d"]


@pytest.mark.parametrize("unit", ["x", "日", "e\u0301"])
def test_a_word_that_is_very_long_is_broken_in_its_time(unit: str) -> None:
    """Every line measured the whole rest of the word: a minute for what others wrote."""
    begun = time.process_time()
    lines = broken(unit * 200_000, 80)
    assert "".join(lines) == unit * 200_000
    assert time.process_time() - begun < 15
