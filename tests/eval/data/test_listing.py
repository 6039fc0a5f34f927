"""Pages behind each other are the whole table: nothing twice, nothing left out, in order."""

from __future__ import annotations

import numpy as np
import pytest

from tests.eval.data.view_runs import judgments
from trajudge.eval.store.filters import (
    SORTS,
    Filter,
    JudgmentView,
    judgment_page,
    parse_filter,
    parse_sorting,
    sorted_rows,
)
from trajudge.util.errors import UserError


@pytest.mark.parametrize("sort", [f"{sign}{name}" for name in SORTS for sign in ("", "-")])
@pytest.mark.parametrize("text", ["", "-judge:c"])
def test_pages_are_the_table(read: JudgmentView, sort: str, text: str) -> None:
    chosen, sorting = parse_filter(text), parse_sorting(sort)
    whole = sorted_rows(read, chosen, sorting).tolist()
    forwards, backwards = [], []
    page = judgment_page(read, chosen, sorting, limit=7)
    assert page.before is None
    assert page.total == len(whole) == int(chosen.judgments(read).sum())
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
def test_sorting_is_by_value_with_the_unknown_last(read: JudgmentView, name: str) -> None:
    for falling in (False, True):
        sorting = parse_sorting(f"-{name}" if falling else name)
        rows = sorted_rows(read, Filter(), sorting).tolist()
        values = [read.record(row)[name] for row in rows]
        known = [value for value in values if value is not None]
        assert known == sorted(known, reverse=falling)
        assert 0 < len(known) < len(values) == len(judgments())
        assert values[: len(known)] == known


def test_a_row_that_the_filter_leaves_out_has_neighbours(read: JudgmentView) -> None:
    chosen, sorting = parse_filter("judge:a"), parse_sorting("-task")
    whole = sorted_rows(read, chosen, sorting)
    other = int(np.flatnonzero(~chosen.judgments(read))[5])
    before = judgment_page(read, chosen, sorting, before=other).rows
    after = judgment_page(read, chosen, sorting, after=other).rows
    assert before + after == whole.tolist()
    assert before
    assert after


@pytest.mark.parametrize("row", [-1, 10**9])
def test_a_row_that_is_not_there_is_named(read: JudgmentView, row: int) -> None:
    with pytest.raises(UserError, match="no judgment"):
        judgment_page(read, Filter(), after=row)
    with pytest.raises(UserError, match="nothing is sorted by this"):
        parse_sorting("luck")
