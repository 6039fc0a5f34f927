"""Pages behind each other are the whole table: nothing twice, nothing left out, in order."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import pytest

from tests.eval.data.run_index.runs import judgments, write
from trajudge.eval.store.queries import (
    SORTS,
    count_judgments,
    judgment_page,
    judgment_rows,
    parse_filter,
    parse_sorting,
)
from trajudge.eval.store.run_index import RunIndex
from trajudge.util.errors import UserError


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    with RunIndex(write(tmp_path_factory.mktemp("pages") / "run")).reading(60) as connection:
        yield connection


@pytest.mark.parametrize("sort", [f"{sign}{name}" for name in SORTS for sign in ("", "-")])
@pytest.mark.parametrize("text", ["", "-judge:c"])
def test_pages_are_the_table(read: sqlite3.Connection, sort: str, text: str) -> None:
    chosen, sorting = parse_filter(text), parse_sorting(sort)
    whole = [*judgment_rows(read, chosen, sorting)]
    assert len(whole) == count_judgments(read, chosen)
    forwards, backwards = [], []
    page = judgment_page(read, chosen, sorting, limit=7)
    assert page.before is None
    while True:
        forwards += page.rows
        if page.after is None:
            break
        page = judgment_page(read, chosen, sorting, after=page.after, limit=7)
    assert forwards == whole
    backwards = page.rows
    while page.before is not None:
        page = judgment_page(read, chosen, sorting, before=page.before, limit=7)
        assert page.after is not None
        backwards = page.rows + backwards
    assert backwards == whole


@pytest.mark.parametrize("name", ["score", "cost", "seconds"])
def test_sorting_is_by_value_with_the_unknown_last(read: sqlite3.Connection, name: str) -> None:
    for falling in (False, True):
        sorting = parse_sorting(f"-{name}" if falling else name)
        values = [getattr(row, name) for row in judgment_rows(read, parse_filter(""), sorting)]
        known = [value for value in values if value is not None]
        assert known == sorted(known, reverse=falling)
        assert 0 < len(known) < len(values) == len(judgments())
        assert values[: len(known)] == known


@pytest.mark.parametrize(
    "cursor",
    ["x", "[]", "[1]", '["a"]', "[1,2,3]", '[{},1]', "[1,1e400]", "[1,99999999999999999999]",
     '["\\ud800",1]', "[" * 5_000, "NaN", "null"],
)  # fmt: skip
def test_a_cursor_that_somebody_made_up_is_refused(read: sqlite3.Connection, cursor: str) -> None:
    with pytest.raises(UserError, match="go back to the beginning"):
        judgment_page(read, parse_filter(""), parse_sorting("score"), after=cursor)


def test_what_nothing_is_sorted_by_is_named() -> None:
    with pytest.raises(UserError, match="did you mean 'score'"):
        parse_sorting("-scores")
