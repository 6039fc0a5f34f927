"""A table in every format: what it holds survives, whatever characters it has."""

from __future__ import annotations

import csv
from io import StringIO

import pytest

from trajudge.util.tables import FORMATS, Table, render

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


def test_text_aligns_words_left_and_figures_right() -> None:
    assert render([TABLE], "table").splitlines()[-1] == "none                           –  0"


@pytest.mark.parametrize("form", FORMATS)
def test_a_table_without_rows_and_no_table(form: str) -> None:
    empty = Table("Title", ("judge", "n"), [])
    assert "judge" in render([empty], form)  # type: ignore[arg-type]
    assert render([], form) == ""  # type: ignore[arg-type]
