from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trajudge.eval.runs.plan import Filters, select
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


def chosen(filters: Filters, seed: int = 0) -> list[TrajectoryKey]:
    kept = select(
        KeyColumns.of(KEYS),
        filters,
        splits=SPLITS,
        benchmark_of=lambda key: key.benchmark,
        rng=np.random.default_rng(seed),
    )
    return [*kept]


def test_no_filter_keeps_everything_in_order() -> None:
    assert chosen(Filters()) == KEYS


def test_filters_are_joined_by_and() -> None:
    kept = chosen(Filters(benchmarks=["webarena"], agents=["b"], split="dev"))
    assert [key.task_id for key in kept] == ["webarena.0", "webarena.10", "webarena.20"]


def test_a_repeated_key_counts_once() -> None:
    kept = select(
        KeyColumns.of(KEYS + KEYS),
        Filters(),
        splits={},
        benchmark_of=lambda key: key.benchmark,
        rng=np.random.default_rng(0),
    )
    assert [*kept] == KEYS


@given(limit=st.integers(1, 100), seed=st.integers(0, 5))
def test_a_stratified_limit_is_exact_and_proportional(limit: int, seed: int) -> None:
    kept = chosen(Filters(limit=limit, stratified=True), seed)
    assert len(kept) == min(limit, len(KEYS)) == len(set(kept))
    assert kept == sorted(kept, key=KEYS.index)
    counts = Counter((key.benchmark, key.agent) for key in kept)
    for (benchmark, _), count in counts.items():
        share = (30 if benchmark == "webarena" else 10) * min(limit, 80) / 80
        assert abs(count - share) <= 1


def test_the_same_seed_draws_the_same_trajectories() -> None:
    filters = Filters(limit=13, stratified=True)
    assert chosen(filters, 4) == chosen(filters, 4) != chosen(filters, 5)


@pytest.mark.parametrize(
    ("filters", "sentence"),
    [
        (Filters(benchmarks=["webarna"]), "--benchmark webarna.*did you mean 'webarena'"),
        (Filters(benchmarks=["nothing"]), "no such benchmark: it has "),
        (Filters(agents=["zzzz"]), "--agent zzzz: the data has no such agent: it has a, b"),
        (Filters(tasks=["webarena.99"]), "--task webarena.99.*did you mean"),
        (Filters(tasks=["webarena.1"], split="dev"), "no trajectory is left of 80"),
    ],
)
def test_what_the_data_does_not_have_is_named(filters: Filters, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        chosen(filters)
