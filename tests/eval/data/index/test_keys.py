"""Keys in columns are found as a dict finds them."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from trajudge.eval.store.table import KeyColumns, KeyPlaces, are_equal, first_of_each
from trajudge.trajectories.model import TrajectoryKey

KEYS = st.builds(
    TrajectoryKey,
    benchmark=st.sampled_from(["webarena", "workarena", ""]),
    agent=st.sampled_from(["a", "b"]),
    task_id=st.sampled_from(["1", "2", "webarena.3.resized"]),
    attempt=st.sampled_from([0, 1, 2**40]),
)


@given(st.lists(KEYS, unique=True), st.lists(KEYS), st.data())
def test_places_are_those_of_a_dict(
    keys: list[TrajectoryKey], asked: list[TrajectoryKey], data: st.DataObject
) -> None:
    chosen = [place for place in range(len(keys)) if data.draw(st.booleans())]
    known = {keys[place]: place for place in chosen}
    places = KeyPlaces(KeyColumns.of(keys), np.array(chosen, dtype=np.int64))
    assert len(places) == len(known)
    for key in [*asked, *keys]:
        assert places.find(key) == known.get(key)
        assert (key in places) == (key in known)


@given(st.lists(KEYS))
def test_repeats_are_left_out_in_the_order_of_arrival(keys: list[TrajectoryKey]) -> None:
    columns = KeyColumns.of(keys)
    assert [*columns.at(first_of_each(columns))] == list(dict.fromkeys(keys))


def test_equal_keys_have_one_order() -> None:
    first = [TrajectoryKey(benchmark="b", agent="a", task_id=str(n)) for n in range(4)]
    columns = KeyColumns.of(first)
    assert are_equal(columns, KeyColumns.of(first))
    assert are_equal(columns.at([1, 2]), KeyColumns.of(first[1:3]))
    assert not are_equal(columns, KeyColumns.of(first[::-1]))
    assert not are_equal(columns, KeyColumns.of(first[:3]))
    assert not are_equal(KeyColumns.of(first[:3]), columns)
