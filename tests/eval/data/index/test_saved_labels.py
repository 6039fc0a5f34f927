"""What side files keep of labels, rewards and keys is what reading the files anew gives."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from trajudge.annotations import Annotation
from trajudge.annotations import store as labels_store
from trajudge.annotations.model import Role
from trajudge.eval.store import inputs
from trajudge.eval.store import labels as label_lines
from trajudge.eval.store import table as saved_tables
from trajudge.eval.store.inputs import find_source
from trajudge.eval.store.labels import read_label_columns, read_reward_columns
from trajudge.eval.store.run_folder import REWARDS, write_rewards
from trajudge.eval.store.table import SETTLED
from trajudge.trajectories import store
from trajudge.trajectories.model import Trajectory, TrajectoryKey

NOW = time.time()
KEYS = [
    TrajectoryKey(benchmark=benchmark, agent="ä", task_id=f"{benchmark}.{task}", attempt=attempt)
    for benchmark, task, attempt in (("webarena", 3, 0), ("workarena", 2, 1), ("webarena", 1, 7))
]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(saved_tables, "LARGE", 1)
    monkeypatch.setenv("TRAJUDGE_CACHE", str(tmp_path / "cache" / "replies.sqlite"))
    monkeypatch.setattr(time, "time_ns", lambda: time.monotonic_ns() + 2 * SETTLED + int(NOW * 1e9))
    return tmp_path / "cache"


def label(key: TrajectoryKey, number: int, role: Role = Role.PRIMARY) -> Annotation:
    return Annotation(
        key=key,
        raw_task_id=f"{key.task_id}.resized",
        annotator="A",
        role=role,
        success=(True, False, None)[number],
        split=(None, "dev", "test")[number],
        comment="needs a longer line" if number == 1 else None,
    )


def written(path: Path, *more: Annotation) -> Path:
    labels_store.write(path, [*more, *(label(key, at) for at, key in enumerate(KEYS))])
    return path


@pytest.mark.parametrize("others", [(), (label(KEYS[0], 1, Role.SECONDARY),)])
def test_labels_are_decoded_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, others: tuple[Annotation, ...]
) -> None:
    path = written(tmp_path / "labels.jsonl", *others)
    first = read_label_columns(path)
    monkeypatch.delattr(label_lines, "_label")
    again = read_label_columns(path)
    assert first is not None
    assert again is not None
    assert dict(again) == dict(first) == {key: label(key, at) for at, key in enumerate(KEYS)}
    assert again.splits() == first.splits() != {}
    assert [*again.sorted_lines()] == [*first.sorted_lines()]
    assert again.are_all == first.are_all == (not others)


def test_changed_labels_are_read_anew(tmp_path: Path, cache: Path) -> None:
    path = written(tmp_path / "labels.jsonl")
    read_label_columns(path)
    (side,) = cache.iterdir()
    times = path.stat()
    path.write_bytes(path.read_bytes().replace(b'"success":true', b'"success":null'))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    changed = read_label_columns(path)
    assert changed is not None
    assert changed[KEYS[0]].success is None
    content = side.read_bytes()
    for damaged in (b"", content[:50], content[:-1] + bytes([content[-1] ^ 1])):
        side.write_bytes(damaged)
        assert read_label_columns(path) == changed


def test_rewards_are_decoded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rewards = dict(zip(KEYS, (1.0, None, 0.25), strict=True))
    write_rewards(tmp_path, rewards)
    assert dict(read_reward_columns(tmp_path / REWARDS) or {}) == rewards
    monkeypatch.delattr(label_lines, "_REWARD_DECODER")
    assert dict(read_reward_columns(tmp_path / REWARDS) or {}) == rewards
    write_rewards(tmp_path, {KEYS[0]: 0.5})
    monkeypatch.undo()
    assert dict(read_reward_columns(tmp_path / REWARDS) or {}) == {KEYS[0]: 0.5}


def trajectories(folder: Path, keys: list[TrajectoryKey], compress: store.Compression = "") -> str:
    some = (Trajectory(key=key, raw_task_id=key.task_id, goal="go") for key in keys)
    store.write(folder, some, compress=compress)
    return f"trajudge:{folder}"


@pytest.mark.parametrize("compress", ["", "gz"])
def test_keys_of_our_files_are_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compress: store.Compression
) -> None:
    source = find_source(trajectories(tmp_path / "data", [*KEYS, KEYS[0]], compress), None)
    assert [*source.read_index().keys] == [*KEYS, KEYS[0]]
    with monkeypatch.context() as patched:
        patched.delattr(inputs, "open_source")
        assert [*source.read_index().keys] == [*KEYS, KEYS[0]]
    trajectories(tmp_path / "data", KEYS[:2], compress)
    assert [*source.read_index().keys] == KEYS[:2]


def test_a_line_without_a_key_is_told_of_at_every_reading(tmp_path: Path) -> None:
    source = find_source(trajectories(tmp_path / "data", KEYS), None)
    with (tmp_path / "data" / "trajectories.jsonl").open("ab") as file:
        file.write(b'{"format":1}\nno JSON\n')
    for _ in range(2):
        index = source.read_index()
        assert [*index.keys] == KEYS
        assert [one.source.rpartition(":")[2] for one in index.unreadable] == ["4", "5"]


def test_keys_of_other_files_are_not_kept(tmp_path: Path, cache: Path) -> None:
    source = inputs.in_memory([Trajectory(key=KEYS[0], raw_task_id="1", goal="go")])
    assert [*source.read_index().keys] == KEYS[:1]
    assert not cache.exists()
