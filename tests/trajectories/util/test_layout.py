"""The lines of a table of any width fit the screen, and no figure is cut."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from wcwidth import wcswidth

from tests.samples import examples
from tests.screens import on_one_line
from trajudge.util.tables import stacked, wrapped

RATE = "83.0 [74.4, 89.2]"
PLACES = [f"Benchmark{n} [95 %]" for n in range(9)]


def test_a_narrow_table_stays_as_it_is() -> None:
    assert stacked(("judge", "n"), [("a", "12")], 60, names=1) == ["judge   n", "a      12"]


def test_figures_that_do_not_fit_go_into_blocks_beside_the_names() -> None:
    rows = [(f"judge-{n}", *[RATE] * 9) for n in range(2)]
    lines = stacked(("judge", *PLACES), rows, 80, names=1)
    blocks = "\n".join(lines).split("\n\n")
    assert max(map(len, lines)) <= 80
    assert all("judge-0" in block and "judge-1" in block for block in blocks)
    assert "\n".join(lines).count(RATE) == 18


def test_the_head_is_folded_first_a_number_beside_its_percent_sign() -> None:
    head = ("judge", "success precision [95 %]", "side effect precision [95 %]")
    lines = stacked(head, [("a", RATE, RATE)], 60, names=1)
    assert lines == [
        "       success precision        side effect",
        "judge             [95 %]   precision [95 %]",
        f"a      {RATE}  {RATE}",
    ]


def test_a_block_without_a_figure_is_left_out_and_named() -> None:
    rows = [("a" * 20, RATE, "–", "–", "–"), ("b" * 20, RATE, "–", "–", "")]
    head = ("judge", "precision [95 %]", "recall", "negative-predictive-value", "balanced-accuracy")
    lines = stacked(head, rows, 60, names=1)
    assert lines[0].split() == ["judge", "precision", "[95", "%]", "recall"]
    named = "without a figure: negative-predictive-value, balanced-accuracy"
    assert on_one_line(" ".join(lines[3:])) == named


def test_names_are_cut_only_as_far_as_figures_need_the_room() -> None:
    head, *lines = stacked(("judge", "n"), [("j" * 70, "1,234")], 60, names=1)
    assert {len(line) for line in (head, *lines)} == {60}


def test_words_go_over_several_lines() -> None:
    lines = stacked(("name", "evidence"), [("a", "word " * 30)], 60, names=2)
    assert max(map(len, lines)) <= 60
    assert " ".join(lines).count("word") == 30


def test_wide_names_stay_in_their_column() -> None:
    rows = [("日本語の裁判官", RATE), ("judge", RATE), ("e\u0301" * 8, RATE)]
    for width in (60, 30):
        _, *lines = stacked(("judge", "precision [95 %]"), rows, width, names=1)
        assert {wcswidth(line.partition(RATE)[0]) for line in lines} == {min(16, width - len(RATE))}


def test_one_huge_figure_goes_over_several_lines_beside_its_name() -> None:
    huge = ", ".join(str(n) for n in range(40))
    lines = stacked(("judge", "n", "steps"), [("a" * 70, "12", huge), ("b", "3", "7")], 60, names=1)
    assert max(map(len, lines)) <= 60
    assert huge in on_one_line("\n".join(lines).replace("aaaaa…aa", ""))
    assert lines[-1].split() == ["b", "7"]


def test_an_id_is_broken_only_where_it_has_no_line_of_its_own() -> None:
    judge = "universal-verifier:gpt-5-mini-2025"
    lines = wrapped(("judge", "evidence"), [(judge, "one-word-with-hyphens " * 4)], 60)
    assert max(map(len, lines)) <= 60
    assert any(line.startswith(f"{judge} ") for line in lines)
    assert "\n".join(lines).count("one-word-with-hyphens") == 4
    assert max(map(len, wrapped(("a", "b"), [(judge * 3, judge * 3)], 60))) <= 60


def test_many_columns_of_words_fit_the_screen() -> None:
    lines = wrapped([f"column-{n}" for n in range(9)], [["some words"] * 9], 60)
    assert max(map(len, lines)) <= 60


@settings(max_examples=examples())
@given(st.data(), st.integers(60, 100), st.integers(1, 3))
def test_no_line_is_too_long_and_no_figure_is_cut(
    data: st.DataObject, width: int, names: int
) -> None:
    word = st.text("abcdefg-_日本語한\u0301", min_size=1, max_size=50)
    figure = st.sampled_from(["–", "7", RATE, "1,234,567", "-44.9 [-77.6, +32.9]"])
    figures = data.draw(st.integers(1, 9))
    head = data.draw(st.tuples(*[word] * names)) + tuple(PLACES[:figures])
    row = st.tuples(*[word] * names, *[figure] * figures)
    rows = data.draw(st.lists(row, min_size=1, max_size=4))
    lines = stacked(head, rows, width, names=names)
    assert max(map(wcswidth, lines)) <= width
    whole = "\n".join(lines)
    for value in {cell for row in rows for cell in row[names:]} - {"–"}:
        assert whole.count(value) >= sum(cell == value for row in rows for cell in row[names:])
