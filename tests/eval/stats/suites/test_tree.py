"""The tree of outcomes and what is averaged over it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trajudge.stats import suites as trees

ROWS = st.lists(
    st.tuples(st.sampled_from("AB"), st.sampled_from("xyz"), st.sampled_from("lm"), st.booleans()),
    min_size=1,
    max_size=40,
)


@given(ROWS)
def test_rollouts_become_cells_and_rates(rows: list[tuple[str, str, str, bool]]) -> None:
    app, scenario, axis, success = (list(column) for column in zip(*rows, strict=True))
    tree = trees.tree_from_rollouts(app, scenario, success, np.array(axis)[:, None])
    cells: dict[tuple[str, str, str], list[bool]] = {}
    for a, s, x, y in sorted(rows):
        cells.setdefault((a, s, x), []).append(y)
    np.testing.assert_allclose(tree.rates, [np.mean(values) for values in cells.values()])
    for name, nested, pooled in zip(
        tree.app_names, trees.app_rates(tree), trees.app_rates(tree, "pooled"), strict=True
    ):
        mine = {key: values for key, values in cells.items() if key[0] == name}
        names = {key[1] for key in mine}
        by_scenario = [
            np.mean([np.mean(v) for key, v in mine.items() if key[1] == s]) for s in names
        ]
        assert nested == pytest.approx(np.mean(by_scenario))
        assert pooled == pytest.approx(np.mean([y for v in mine.values() for y in v]))


def test_two_apps_may_name_their_scenarios_alike() -> None:
    tree = trees.tree_from_rollouts(["A", "B"], ["s", "s"], [1, 0])
    assert tree.scenario.tolist() == [0, 1]
    assert tree.levels.shape == (2, 0)


def test_filled_share_counts_each_scenarios_own_grid() -> None:
    """One full 2 x 2 grid, and a diagonal of 3 out of 3 x 3."""
    axes = [[0, 0], [0, 1], [1, 0], [1, 1], [0, 0], [1, 1], [2, 2]]
    tree = trees.tree_from_cells(["a"] * 7, [1] * 4 + [2] * 3, [1] * 7, [1] * 7, axes)
    assert tree.filled_share() == pytest.approx(7 / 13)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20), st.floats(0, 0.49))
def test_suite_statistics_are_scipys(rates: list[float], share: float) -> None:
    from scipy.stats import trim_mean

    array = np.array([rates, rates])
    assert trees.trimmed_mean(share)(array).tolist() == pytest.approx([trim_mean(rates, share)] * 2)
    assert trees.interquartile_mean(array)[0] == pytest.approx(trim_mean(rates, 0.25))
    assert trees.median(array)[0] == np.median(rates)
    assert trees.mean(array)[0] == pytest.approx(np.mean(rates))


def test_bad_input_is_refused() -> None:
    with pytest.raises(ValueError, match="no rollouts"):
        trees.tree_from_rollouts([], [], [])
    with pytest.raises(ValueError, match="0 or 1"):
        trees.tree_from_rollouts(["a"], ["s"], [float("nan")])
    with pytest.raises(ValueError, match="at least one rollout"):
        trees.tree_from_cells(["a"], ["s"], [0], [0])
    with pytest.raises(ValueError, match="trimmed"):
        trees.trimmed_mean(0.5)
