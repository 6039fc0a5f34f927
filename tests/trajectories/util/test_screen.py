"""Texts and tables on one screen: measured, cut, folded, and whole in every format."""

from __future__ import annotations

import csv
import time
import unicodedata
from collections.abc import Callable
from io import StringIO

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from wcwidth import wcswidth

from tests.samples import examples
from tests.screens import on_one_line
from tests.tables import table
from trajudge.util.tables import (
    FORMATS,
    Table,
    aligned,
    columns,
    first_warnings,
    fitted,
    folded,
    narrowed,
    render,
    screen_width,
    stacked,
    table_of,
    wrapped,
)
from trajudge.util.terminal import (
    broken,
    cells,
    count_of,
    elided,
    help_width,
    listed,
    one_line,
    padded,
    terminal_console,
)


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
    begun = time.process_time()
    lines = broken(unit * 50_000, 80)
    assert "".join(lines) == unit * 50_000
    assert time.process_time() - begun < 5


RATE = "83.0 [74.4, 89.2]"
PLACES = [f"Benchmark{n} [95 %]" for n in range(9)]


def test_a_narrow_table_stays_as_it_is() -> None:
    assert stacked(("judge", "n"), [("a", "12")], 60, names=1) == ["judge   n", "a      12"]


@pytest.mark.parametrize("lay_out", [stacked, columns])
def test_a_head_is_folded_only_where_the_line_is_one_column_too_long(
    lay_out: Callable[..., list[str]],
) -> None:
    head, rows = ("judge", "two words"), [("a", "1")]
    assert lay_out(head, rows, 16, names=1) == ["judge  two words", "a              1"]
    assert lay_out(head, rows, 15, names=1) == ["         two", "judge  words", "a          1"]


def test_a_column_of_words_keeps_eight_columns_and_figures_are_never_shortened() -> None:
    assert narrowed([20, 5, 9], 2, 0) == [8, 5, 9]
    assert narrowed([20, 5, 9], 2, 30) == [12, 5, 9]
    assert aligned([("a-judge:model", "1,234,567")], [7, 5], 1) == ["a-ju…el  1,234,567"]


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


TABLE = Table(
    "Title",
    ("judge", "precision [95 %]", "n"),
    [("a_b & 50% | c", "83.0 [76.4, 88.1]", "7"), ("none", "–", "0")],
    names=1,
)


def test_csv_splits_an_estimate_from_its_interval_and_blanks_the_undefined() -> None:
    rows = list(csv.reader(StringIO(render([TABLE], "csv"))))
    assert rows == [
        ["judge", "precision", "precision low", "precision high", "n"],
        ["a_b & 50% | c", "83.0", "76.4", "88.1", "7"],
        ["none", "", "", "", "0"],
    ]


def test_markdown_escapes_what_would_end_a_cell() -> None:
    lines = render([TABLE], "markdown").splitlines()
    assert lines[0] == "**Title**"
    assert lines[3] == "| :-- | --: | --: |"
    assert lines[4] == r"| a_b & 50% \| c | 83.0 [76.4, 88.1] | 7 |"


def test_latex_escapes_its_special_characters() -> None:
    text = render([TABLE], "latex")
    assert r"a\_b \& 50\% $|$ c & 83.0 [76.4, 88.1] & 7 \\" in text
    assert r"\begin{tabular}{lrr}" in text
    assert r"none & -- & 0 \\" in text


def test_two_columns_of_a_table_contain_words_unless_it_says_otherwise() -> None:
    table = table_of("Title", {"judge": str, "agent": str.upper, "n": str}, "a")
    assert table == Table("Title", ("judge", "agent", "n"), [("a", "A", "a")])
    assert table.names == 2


def test_text_aligns_words_left_and_figures_right() -> None:
    assert render([TABLE], "table").splitlines()[-1] == "none                           –  0"


@pytest.mark.parametrize("form", FORMATS)
def test_a_table_without_rows_and_no_table(form: str) -> None:
    empty = Table("Title", ("judge", "n"), [])
    assert "judge" in render([empty], form)  # type: ignore[arg-type]
    assert render([], form) == ""  # type: ignore[arg-type]


def test_the_width_is_that_of_columns_but_at_most_a_hundred(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for columns_given, width in (("80", 80), ("100", 100), ("250", 100), ("20", 60)):
        monkeypatch.setenv("COLUMNS", columns_given)
        assert screen_width() == width


def test_help_leaves_two_columns_free(monkeypatch: pytest.MonkeyPatch) -> None:
    for columns_given, width in (("80", 78), ("250", 98)):
        monkeypatch.setenv("COLUMNS", columns_given)
        assert help_width() == width


def test_text_goes_to_standard_output_unless_told_otherwise() -> None:
    assert [terminal_console().stderr, terminal_console(stderr=True).stderr] == [False, True]


def test_a_figure_stays_with_its_unit_and_its_interval() -> None:
    text = "word " * 13 + "24.5 % [12.1, 43.4] and more"
    lines = folded(text, 72)
    assert " ".join(line.strip() for line in lines) == text
    assert not any(line.lstrip().startswith(("%", "[")) for line in lines)


def test_what_is_too_long_keeps_its_beginning_and_its_reason() -> None:
    text = "seven judgments failed, the first because of what the server said: wrong key"
    assert folded(text, 40, most=1) == ["seven … said: wrong key"]
    assert folded("x" * 40, 40, most=1) == ["x" * 40]
    assert folded("x" * 41, 40, most=1) == ["x" * 24 + "…" + "x" * 13]


def test_a_sentence_names_as_many_as_let_it_stand_whole() -> None:
    names = [f"a-judge:with-a-long-name-{n:02}" for n in range(30)]

    def sentences(most: int | None) -> list[str]:
        return [f"Ranked: {listed(names, most)}; no difference.", f"First: {names[0]}."]

    ranked, first = fitted(sentences, 60)
    assert ranked == f"Ranked: {', '.join(names[:4])} and 26 more; no difference."
    assert first == f"First: {names[0]}."
    assert fitted(sentences, 10_000) == sentences(None)


def test_a_path_is_never_broken() -> None:
    path = "/a-folder/" + "x" * 90
    assert folded(f"the run is in {path}", 60)[-1].strip() == path


def test_only_the_first_warnings_are_shown_each_once() -> None:
    lines = first_warnings(["a", "b", "a", "c"], 80, rest="--full", most=2)
    assert lines == ["a", "b", "1 more warning: --full"]
    assert first_warnings([], 80, rest="--full") == []
    assert first_warnings("abcde", 80, rest="--full") == [*"abcde"]
    assert first_warnings("abcdef", 80, rest="--full") == [*"abcde", "1 more warning: --full"]


def test_only_names_are_shortened() -> None:
    rows = [("a-benchmark", "a-very-long-name-of-a-judge", "100.0 [52.0, 100.0]")]
    lines = columns(("benchmark", "judge", "precision"), rows, 50, names=2)
    assert all(len(line) <= 50 for line in lines)
    assert "100.0 [52.0, 100.0]" in lines[1]
    assert "…" in lines[1]


def test_nothing_is_obeyed_by_the_terminal() -> None:
    shown = columns(("name",), [("\x1b[2Jx",)], 80, names=1) + folded("\x1b[2Jx", 80)
    assert not any("\x1b" in line for line in shown)
