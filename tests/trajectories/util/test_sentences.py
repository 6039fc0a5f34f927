"""Sentences: folded to the screen, close names for wrong ones, and what pydantic says."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field, ValidationError
from wcwidth import wcswidth

from tests.samples import examples
from tests.screens import on_one_line, one_screen
from trajudge.trajectories.model import TrajectoryKey
from trajudge.util.errors import did_you_mean
from trajudge.util.tables import Table, columns, first_screen, folded
from trajudge.util.validation import first_error, refused_value

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


@pytest.mark.parametrize(("tables", "omitted"), [(1, [32]), (2, [48, 47])])
def test_a_screen_is_filled_to_its_last_line(tables: int, omitted: list[int]) -> None:
    table = Table("", ("judge", "n"), [(f"judge-{n}", str(n)) for n in range(60)], names=1)
    shown = first_screen(
        ["one", "two"], [table] * tables, ["x", "y", "z"], ["a", "b"], rest="rest", width=60
    ).splitlines()
    assert len(shown) == 40
    assert shown[:4] == ["one", "two", "", "judge      n"]
    assert shown[-7:] == ["", "x", "y", "z", "a", "b", "rest"]
    assert [line for line in shown if line.startswith("and")] == [
        f"and {count} more: --full" for count in omitted
    ]


@pytest.mark.parametrize(
    ("above", "warnings"),
    [(19, [*"abcde", "1 more warning: --full"]), (20, [*"abcd", "2 more warnings: --full"])],
)
def test_fewer_warnings_are_shown_where_tables_need_the_lines(
    above: int, warnings: list[str]
) -> None:
    table = Table("", ("judge", "n"), [("a", "1")], names=1)
    shown = first_screen(["x"] * above, [table] * 2, ["y"], "abcdef", rest="rest", width=60)
    assert shown.splitlines()[-2 - len(warnings) :] == ["y", *warnings, "rest"]


KNOWN = ["gpt-4o", "gpt-4o-mini", "gemini/gemini-2.5-pro", "claude-sonnet-4-5", "Qwen/Qwen3-8B"]


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("gtp-4o", "gpt-4o"),
        ("gpt4o-mini", "gpt-4o-mini"),
        ("gemini-2.5-pro", "gemini/gemini-2.5-pro"),
        ("claude-sonet-4-5", "claude-sonnet-4-5"),
        ("qwen3-8b", "Qwen/Qwen3-8B"),
    ],
)
def test_the_closest_known_name(typed: str, meant: str) -> None:
    assert did_you_mean(typed, KNOWN) == f", did you mean {meant!r}?"


def test_nothing_where_nothing_is_close() -> None:
    assert did_you_mean("my-finetune", KNOWN) == ""


class Bounded(BaseModel):
    score: float = Field(ge=0, le=1)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"benchmark":"b","agent":"a","task_id":"t","attempt":-1}', "attempt is -1 (Input"),
        ("3", "the line is 3 (Input"),
        ("", "the line is not JSON (EOF while parsing a value at line 1"),
        ('{"benchmark":"b', "the line is not JSON (EOF while parsing a string at line 1"),
    ],
)
def test_field_value_and_reason(content: str, said: str) -> None:
    with pytest.raises(ValidationError) as refused:
        TrajectoryKey.model_validate_json(content)
    assert first_error(refused.value, "the line").startswith(said)


def test_a_field_that_is_missing_is_named() -> None:
    with pytest.raises(ValidationError) as refused:
        TrajectoryKey.model_validate_json('{"benchmark":"b","agent":"a"}')
    assert first_error(refused.value, "the line") == "task_id is missing"
    with pytest.raises(ValidationError) as refused:
        Bounded.model_validate({"score": 2.0})
    assert refused_value(refused.value)[:2] == ("score", 2.0)
    assert not refused_value(refused.value).missing


def test_a_number_that_is_none_is_not_said_to_be_out_of_bounds() -> None:
    """NaN is neither below a limit nor above it, and the first limit would be named."""
    with pytest.raises(ValidationError) as refused:
        Bounded.model_validate_json('{"score":NaN}')
    assert first_error(refused.value, "the line") == "score is nan (it is no number)"


def test_a_long_value_is_cut() -> None:
    content = '{"benchmark":"b","agent":"a","task_id":"t","attempt":"%s"}' % ("x" * 5000)
    with pytest.raises(ValidationError) as refused:
        TrajectoryKey.model_validate_json(content)
    assert len(first_error(refused.value, "the line")) < 300
