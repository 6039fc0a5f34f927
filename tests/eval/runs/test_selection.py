from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trajudge.eval.runs.plan import select
from trajudge.eval.runs.settings import DataConfig
from trajudge.eval.store.table import KeyColumns
from trajudge.trajectories.model import TrajectoryKey
from trajudge.util.errors import UserError

KEYS = [
    TrajectoryKey(benchmark=benchmark, agent=agent, task_id=f"{benchmark}.{task}")
    for benchmark, tasks in (("webarena", 30), ("workarena", 10))
    for agent in ("a", "b")
    for task in range(tasks)
]
SPLITS = {(k.benchmark, k.task_id): "dev" if k.task_id.endswith("0") else "test" for k in KEYS}


def chosen(data: DataConfig, seed: int = 0) -> list[TrajectoryKey]:
    keys, rng = KeyColumns.of(KEYS), np.random.default_rng(seed)
    kept, _ = select(keys, data, data.split or "all", SPLITS, rng)
    return [*kept]


def test_no_filter_keeps_everything_in_order() -> None:
    assert chosen(DataConfig()) == KEYS


def test_data_are_joined_by_and() -> None:
    kept = chosen(DataConfig(benchmark=("webarena",), agent=("b",), split="dev"))
    assert [key.task_id for key in kept] == ["webarena.0", "webarena.10", "webarena.20"]


def test_a_repeated_key_counts_once() -> None:
    rng = np.random.default_rng(0)
    kept, _ = select(KeyColumns.of(KEYS + KEYS), DataConfig(), "all", {}, rng)
    assert [*kept] == KEYS


@given(limit=st.integers(1, 100), seed=st.integers(0, 5))
def test_a_stratified_limit_is_exact_and_proportional(limit: int, seed: int) -> None:
    kept = chosen(DataConfig(limit=limit, stratified=True), seed)
    assert len(kept) == min(limit, len(KEYS)) == len(set(kept))
    assert kept == sorted(kept, key=KEYS.index)
    counts = Counter((key.benchmark, key.agent) for key in kept)
    for (benchmark, _), count in counts.items():
        share = (30 if benchmark == "webarena" else 10) * min(limit, 80) / 80
        assert abs(count - share) <= 1


def test_the_same_seed_draws_the_same_trajectories() -> None:
    data = DataConfig(limit=13, stratified=True)
    assert chosen(data, 4) == chosen(data, 4) != chosen(data, 5)


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (DataConfig(benchmark=("webarna",)), "--benchmark webarna.*did you mean 'webarena'"),
        (DataConfig(benchmark=("nothing",)), "no such benchmark: it has "),
        (DataConfig(agent=("zzzz",)), "--agent zzzz: the data has no such agent: it has a, b"),
        (DataConfig(task=("webarena.99",)), "--task webarena.99.*did you mean"),
        (DataConfig(task=("webarena.1",), split="dev"), "no trajectory is left of 80"),
    ],
)
def test_what_the_data_does_not_have_is_named(data: DataConfig, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        chosen(data)
