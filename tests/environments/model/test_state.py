"""Rows in memory, dumped in stable order and compared row by row."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trajudge.environments.model.schema import TableSchema, table
from trajudge.environments.model.state import (
    AppState,
    Change,
    Dump,
    Value,
    difference,
    digest,
    token,
)

MUG = table("mug", id="token", name="text", price="money", sold="flag")


@pytest.fixture
def state() -> Iterator[AppState]:
    made = AppState((MUG,))
    made.load({"mug": [("b", "Oak", 500, 0), ("a", "Slate", 900, 1)]})
    yield made
    made.close()


def test_a_table_is_its_columns_and_the_first_is_its_key() -> None:
    assert MUG.key == "id"
    assert MUG.names == ("id", "name", "price", "sold")
    assert TableSchema("t", (("id", "token"), ("n", "int"))).sql == (
        'CREATE TABLE "t" ("id" TEXT NOT NULL, "n" INTEGER NOT NULL, PRIMARY KEY ("id"))'
    )


def test_rows_are_read_written_and_removed(state: AppState) -> None:
    state.add("mug", id="c", name="Wool", price=100, sold=0)
    state.change("mug", "a", price=950, sold=0)
    state.remove("mug", "b")
    state.remove("mug", "nowhere")
    assert state.dump() == {
        "mug": {
            "a": {"id": "a", "name": "Slate", "price": 950, "sold": 0},
            "c": {"id": "c", "name": "Wool", "price": 100, "sold": 0},
        }
    }
    assert state.value("SELECT price FROM mug WHERE id = :id", id="a") == 950
    assert state.value("SELECT price FROM mug WHERE id = 'x'") is None
    assert state.get("mug", "x") is None
    assert state.row("mug", "a")["name"] == "Slate"
    with pytest.raises(KeyError, match="mug x"):
        state.row("mug", "x")


def test_a_row_without_a_value_is_refused(state: AppState) -> None:
    with pytest.raises(sqlite3.IntegrityError):
        state.add("mug", id="d", name="Cork", price=1)


@given(st.text(max_size=60))
def test_values_never_become_sql(text: str) -> None:
    state = AppState((MUG,))
    text = text.encode("utf-8", "ignore").decode()
    state.add("mug", id="a", name=text, price=1, sold=0)
    state.change("mug", "a", name=text + "'; DROP TABLE mug; --")
    stored = state.row("mug", "a")["name"]
    state.close()
    assert stored == text + "'; DROP TABLE mug; --"


def test_a_snapshot_is_the_whole_state_and_its_copies_are_apart(state: AppState) -> None:
    copy = AppState((MUG,), state.snapshot())
    copy.remove("mug", "a")
    assert set(state.dump()["mug"]) == {"a", "b"}
    assert copy.dump() != state.dump()
    copy.close()


def test_the_order_of_insertion_leaves_no_trace_in_the_dump(state: AppState) -> None:
    other = AppState((MUG,))
    other.load({"mug": [("a", "Slate", 900, 1), ("b", "Oak", 500, 0)]})
    assert list(other.dump()["mug"]) == list(state.dump()["mug"])
    assert digest(other.dump()) == digest(state.dump())
    assert other.cells(["mug"]) == state.cells(["mug"])
    other.close()


def test_the_version_follows_the_rows_through_writes_and_what_is_undone(state: AppState) -> None:
    def add(then: Exception | None = None) -> str:
        state.add("mug", id="c", name="Wool", price=100, sold=0)
        if then is not None:
            raise then
        return state.version

    first = state.version
    assert state.attempt(add, lambda _: False) != first
    assert state.version == first
    with pytest.raises(OSError, match="half"):
        state.attempt(lambda: add(OSError("half")), lambda _: True)
    assert state.version == first == digest(state.dump())
    assert state.attempt(add, lambda _: True) == state.version == digest(state.dump()) != first
    state.remove("mug", "c")
    assert state.version == first


def test_the_difference_names_every_row_and_column_that_changed(state: AppState) -> None:
    before = state.dump()
    assert difference(before, before) == []
    state.add("mug", id="c", name="Wool", price=100, sold=0)
    state.change("mug", "a", price=950)
    state.remove("mug", "b")
    found = difference(before, state.dump())
    assert [(change.kind, change.key, change.columns) for change in found] == [
        ("changed", "a", ("price",)),
        ("removed", "b", MUG.names),
        ("added", "c", MUG.names),
    ]
    assert found[0].before["price"] == 900
    assert found[0].after["price"] == 950
    assert isinstance(found[0], Change)


KEYS = st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 3))


@given(KEYS, KEYS)
def test_a_difference_undone_is_the_difference_back(
    one: dict[str, int], two: dict[str, int]
) -> None:
    before: Dump = {"t": {key: {"id": key, "n": n} for key, n in one.items()}}
    after: Dump = {"t": {key: {"id": key, "n": n} for key, n in two.items()}}
    there, back = difference(before, after), difference(after, before)
    opposite = {"added": "removed", "removed": "added", "changed": "changed"}
    assert [(opposite[c.kind], c.key, c.after, c.before) for c in there] == [
        (c.kind, c.key, c.before, c.after) for c in back
    ]
    assert bool(there) == (one != two)


def test_tokens_are_opaque_free_and_the_same_for_the_same_state(state: AppState) -> None:
    key = state.token("mug")
    assert key == state.token("mug")
    state.add("mug", id=key, name="New", price=1, sold=0)
    assert state.token("mug") != key
    made = [token("order", n) for n in range(50)]
    assert len(set(made)) == 50
    assert made != sorted(made)


def test_a_token_that_is_taken_is_not_given_out(state: AppState) -> None:
    key = state.token("mug")
    state.change("mug", "a", id=key)
    assert state.token("mug") != key


CUP = table("cup", id="token", name="text", price="money", sold="flag")
WRITES = ["add", "change", "remove", "load", "past", "in-vain", "undone", "undone-past"]


def _changed(state: AppState, name: str, key: str) -> Dump:
    state.change(name, key, price=-1)
    return state.dump()


def _write(state: AppState, how: str, number: int) -> None:
    """Write to one of the two tables in one of the ways there are."""
    name, key = ("mug", "cup")[number % 2], f"k{number % 3}"
    row: dict[str, Value] = {"id": f"n{number}", "name": how, "price": number, "sold": 0}
    match how:
        case "add":
            state.add(name, **row)
        case "change":
            state.change(name, key, price=number)
        case "remove":
            state.remove(name, key)
        case "load":
            state.load({name: [tuple(row.values())]})
        case "past":
            state.db.execute(f'UPDATE "{name}" SET price = price + 1')
        case "in-vain":
            with suppress(sqlite3.IntegrityError):
                state.add(name, id="incomplete")
        case "undone":
            state.attempt(partial(_changed, state, name, key), lambda _: False)
        case "undone-past":
            state.db.execute("SAVEPOINT past")
            state.change(name, key, price=-2)
            assert state.version == digest(state.dump())
            state.db.execute("ROLLBACK TO past")
            state.db.execute("RELEASE past")


@given(st.lists(st.tuples(st.sampled_from(WRITES), st.booleans()), max_size=12))
def test_what_is_kept_of_tables_is_what_a_new_reader_reads(steps: list[tuple[str, bool]]) -> None:
    state = AppState((MUG, CUP))
    state.load({name: [(f"k{n}", "Oak", n, 0) for n in range(3)] for name in ("mug", "cup")})
    for number, (how, look) in enumerate(steps):
        _write(state, how, number)
        if look:
            rows = state.dump()
            fresh, copy = AppState((MUG, CUP), state.snapshot()), state.copy()
            assert rows == copy.dump() == fresh.dump()
            assert state.version == copy.version == fresh.version
            copy.change("mug", "k1", price=-3)
            assert copy.dump()["cup"] is rows["cup"]
            assert state.dump() == rows
            copy.close()
            fresh.close()
    state.close()


def test_a_table_that_nothing_was_written_to_is_not_read_again() -> None:
    state = AppState((MUG, CUP))
    state.load({"mug": [("a", "Oak", 1, 0)], "cup": [("a", "Oak", 1, 0)]})
    first = state.dump()
    state.change("cup", "a", price=2)
    then = state.dump()
    assert then["mug"] is first["mug"]
    assert [change.table for change in difference(first, then)] == ["cup"]
    state.close()
