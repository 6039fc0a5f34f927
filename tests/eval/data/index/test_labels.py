"""Labels and rewards of a run's files as columns: what they hold is what the records hold."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.eval.cases import key, label
from trajudge.annotations import store
from trajudge.annotations.model import Label, Role, primary_labels
from trajudge.eval.store.labels import (
    SPLITS,
    LabelColumns,
    RewardColumns,
    RunLabels,
    StoredAnnotations,
    labels_of,
    read_label_columns,
    splits_of,
)
from trajudge.eval.store.run_folder import (
    LABELS,
    REWARDS,
    read_labels,
    read_rewards,
    write_labels,
    write_rewards,
)
from trajudge.eval.store.table import KeyColumns
from trajudge.util.errors import UserError


def equal(one: LabelColumns | RewardColumns, other: LabelColumns | RewardColumns) -> None:
    assert type(one) is type(other)
    assert list(one.keys) == list(other.keys)
    for name in ("verdicts", "reward"):
        if hasattr(one, name):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


VALUES = st.none() | st.booleans() | st.integers(-1, 5) | st.sampled_from([0.5, "dev", "true", "4"])
FIELDS = st.sampled_from([*Label.model_fields, "other"])


@given(st.dictionaries(FIELDS.filter(lambda name: name != "key"), VALUES, max_size=4))
def test_a_line_is_taken_only_as_validation_takes_it(
    tmp_path_factory: pytest.TempPathFactory, changes: dict[str, Any]
) -> None:
    path = tmp_path_factory.mktemp("labels") / LABELS
    store.write(path, [label(1, None), label(2, True)])
    header, first, second = path.read_bytes().splitlines()
    path.write_bytes(b"\n".join([header, first, orjson.dumps(orjson.loads(second) | changes), b""]))
    taken = read_label_columns(path)
    if taken is not None:
        records = primary_labels(store.load(path))
        assert dict(taken) == records
        equal(taken.columns, LabelColumns.of(records))
        write_labels(path.parent, taken)
        assert primary_labels(store.load(path)) == records


@pytest.mark.parametrize(
    "line",
    [
        '{"key":{"benchmark":"w","agent":"a","task_id":"1","attempt":0},"raw_task_id":"1",'
        '"annotator":"A"}',
        '{"key":{"benchmark":"assistantbench","agent":"a","task_id":"x.improved.1","attempt":0},'
        '"raw_task_id":"1","annotator":"A","role":"primary","success":null,"side_effect":null,'
        '"repetition":null,"optimality":null,"split":"dev"}',
        '{"key":{"benchmark":"w","agent":"\\u00e9","task_id":"1","attempt":0},"raw_task_id":"1",'
        '"annotator":"\\u001F","role":"primary","success":null,"side_effect":null,'
        '"repetition":null,"optimality":null,"split":null}',
    ],
    ids=["left out", "not canonical", "escaped"],
)
def test_a_line_that_is_written_otherwise_is_kept(tmp_path: Path, line: str) -> None:
    first = store.annotation_line(label(1, None))
    path = tmp_path / "given.jsonl"
    path.write_bytes(store.header_line() + line.encode() + b"\n" + first)
    labels = read_label_columns(path)
    assert labels is not None
    write_labels(tmp_path, labels)
    assert sorted(store.load(tmp_path / LABELS), key=lambda one: one.key.order) == sorted(
        store.load(path), key=lambda one: one.key.order
    )


def test_labels_of_some_keys_keep_their_order_and_their_splits(tmp_path: Path) -> None:
    given = [label(n, n % 2 == 0).model_copy(update={"split": s}) for n, s in enumerate(SPLITS)]
    store.write(tmp_path / LABELS, given)
    labels = read_label_columns(tmp_path / LABELS)
    assert labels is not None
    annotations = StoredAnnotations(labels)
    assert [*annotations] == given
    assert annotations[1:] == given[1:]
    assert labels_of(annotations) is labels
    some = labels.of(KeyColumns.of([key(2), key(7), key(0)]))
    assert [*some.items()] == [(key(2), given[2]), (key(0), given[0])]
    assert splits_of(some) == splits_of(dict(some)) == {(key(2).benchmark, key(2).task_id): "test"}


def test_other_files_are_left_to_the_reader_of_records(tmp_path: Path) -> None:
    path = tmp_path / LABELS
    twice = [label(1, True), label(1, False)]
    store.write(path, twice)
    assert read_label_columns(path) is None
    assert dict(read_labels(tmp_path)) == {key(1): twice[1]}
    path.write_bytes(path.read_bytes().rstrip())
    assert dict(read_labels(tmp_path)) == {key(1): twice[1]}, "a last line without its newline"
    path.write_bytes(b'{"format":"trajudge-annotations","version":9}\n')
    with pytest.raises(UserError, match="version 9"):
        read_labels(tmp_path)
    (tmp_path / REWARDS).write_bytes(b"{}\n")
    with pytest.raises(UserError, match=r"line 1: .*missing required field `key`"):
        read_rewards(tmp_path)
    lines = [{"key": vars(key(1)), "official_reward": reward} for reward in (0.0, None, 1.0)]
    (tmp_path / REWARDS).write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    assert dict(read_rewards(tmp_path)) == {key(1): 1.0}


def test_only_primary_labels_count_and_a_missing_one_is_missing(tmp_path: Path) -> None:
    second = label(1, False).model_copy(update={"role": Role.SECONDARY})
    write_labels(tmp_path, [label(1, True), second, label(2, None)])
    labels = read_labels(tmp_path)
    assert isinstance(labels, RunLabels)
    assert [labels[key(1)].success, len(labels), key(3) in labels] == [True, 2, False]
    with pytest.raises(KeyError):
        labels[key(3)]


def test_many_labels_and_rewards_take_some_tens_of_bytes_each(tmp_path: Path) -> None:
    count = 4_000
    write_labels(tmp_path, (label(number, None) for number in range(count)))
    write_rewards(tmp_path, {key(number): 1.0 for number in range(count)})
    read_labels(tmp_path), read_rewards(tmp_path)
    tracemalloc.start()
    kept = read_labels(tmp_path), read_rewards(tmp_path)
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [*map(len, kept)] == [count, count]
    assert size / count < 300, "names of tasks included"


def test_rewards_hold_others_that_are_the_same() -> None:
    def columns(rewards: dict[object, float | None]) -> RewardColumns:
        return RewardColumns.of({key(task): reward for task, reward in rewards.items()})

    whole = columns({1: 0.0, 2: None, 3: 1.0})
    assert whole.hold(columns({})) and whole.hold(columns({3: 1.0, 2: None}))
    assert not whole.hold(columns({3: 0.5})) and not whole.hold(columns({2: 0.0}))
    assert not whole.hold(columns({3: 1.0, 4: None})) and not columns({}).hold(whole)
