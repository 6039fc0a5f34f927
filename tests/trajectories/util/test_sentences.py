"""Sentences are folded to the screen; where they are too long, names are shortened first."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from wcwidth import wcswidth

from tests.samples import examples
from tests.screens import on_one_line, one_screen
from trajudge.util.tables import Table, columns, first_screen, folded

LONG = "judge-" + "of-a-long-name-" * 12 + "end"


def test_a_very_long_name_is_shortened_not_cut_out_of_a_warning() -> None:
    text = f"warning: precision without an interval (success; {LONG} on two benchmarks): one task"
    for width in (100, 80, 60):
        lines = folded(text, width, most=3)
        assert max(map(len, lines)) <= width
        whole = on_one_line(" ".join(lines))
        assert "judge-of" in whole
        assert "name-end on two benchmarks): one task" in whole
        assert " … " not in whole


def test_a_long_name_fits_the_screen_in_a_short_sentence_too() -> None:
    assert max(map(len, folded(f"Precision: {LONG} > other", 80, most=3))) <= 80


def test_a_path_that_one_copies_stays_whole() -> None:
    path = "/folder" * 20 + "/decision.txt"
    assert f"  {path}" in folded(f"Everything else: {path}", 60)


@settings(max_examples=examples())
@given(
    st.lists(st.text("ab-日😀\u0301%", min_size=1, max_size=90), min_size=1, max_size=60),
    st.integers(60, 100),
    st.integers(1, 4),
)
def test_no_sentence_leaves_its_lines(words: list[str], width: int, most: int) -> None:
    lines = folded(" ".join(words), width, most=most)
    assert len(lines) <= most
    assert max(map(wcswidth, lines)) <= width


def test_columns_of_figures_without_room_stand_below_one_another() -> None:
    rate = "83.0 [74.4, 89.2]"
    head = ("judge", *[f"precision {n} [95 %]" for n in range(4)])
    lines = columns(head, [("a" * 30, *[rate] * 4), ("b", *[rate] * 4)], 60, names=1)
    assert max(map(len, lines)) <= 60
    assert "\n".join(lines).count(rate) == 8


@settings(max_examples=examples())
@given(st.integers(60, 100), st.integers(1, 60), st.integers(1, 9), st.integers(1, 2))
def test_a_screen_with_any_table_is_one_screen(
    width: int, rows: int, figures: int, tables: int
) -> None:
    head = ("judge", *[f"column {n} [95 %]" for n in range(figures)])
    body = [(f"法官 {n}", *["83.0 [74.4, 89.2]"] * figures) for n in range(rows)]
    table = Table("a title " * 9, head, body, names=1)
    one_screen(first_screen(["finding"], [table] * tables, rest="rest", width=width), width)
