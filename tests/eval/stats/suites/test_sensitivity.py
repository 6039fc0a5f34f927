"""Matched pairs by brute force, and a floor that equals what chance really does."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.worlds.proportions import bimodal_prior
from trajudge.stats.suites import (
    Tree,
    mad_decomposition,
    tree_from_cells,
    tree_from_rollouts,
)

CELL = st.tuples(
    st.integers(0, 2), st.integers(0, 2), st.integers(0, 1), st.integers(0, 3), st.integers(3, 5)
)


def tree_of(cells: list[tuple[int, int, int, int, int]]) -> Tree:
    table = np.array(cells)
    return tree_from_cells(
        np.zeros(len(table)), table[:, 0], table[:, 3], table[:, 4], table[:, 1:3]
    )


@given(st.lists(CELL, min_size=1, max_size=14, unique_by=lambda cell: cell[:3]))
def test_pairs_differ_on_one_axis_only(cells: list[tuple[int, int, int, int, int]]) -> None:
    expected = [
        abs(a[3] / a[4] - b[3] / b[4])
        for a, b in combinations(cells, 2)
        if a[0] == b[0] and a[2] == b[2] and a[1] != b[1]
    ]
    found = mad_decomposition(tree_of(cells), 0)
    np.testing.assert_allclose(np.sort(np.abs(found.differences)), np.sort(expected))
    if expected:
        assert found.mad == pytest.approx(np.mean(expected))
        assert found.excess == found.mad - found.floor
    else:
        assert np.isnan(found.mad)


@pytest.mark.slow
@given(
    st.lists(st.booleans(), min_size=3, max_size=3), st.lists(st.booleans(), min_size=2, max_size=3)
)
def test_the_floor_is_the_mean_over_all_deals(first: list[bool], second: list[bool]) -> None:
    axis = np.array([0] * len(first) + [1] * len(second))[:, None]
    tree = tree_from_rollouts([0] * len(axis), [0] * len(axis), first + second, axis)
    gaps = [abs(np.mean(deal[:3]) - np.mean(deal[3:])) for deal in permutations(first + second)]
    assert mad_decomposition(tree, 0).floor == pytest.approx(np.mean(gaps))


@pytest.mark.parametrize(
    ("rollouts", "noise"), [(1, 0.175), (3, 0.129), (5, 0.108), (10, 0.082), (20, 0.061)]
)
def test_pure_noise_is_all_floor(rollouts: int, noise: float) -> None:
    """The paper's calibration and no effect of the axis: its 0.09-0.21 is the size of chance."""
    rng, n, prior = np.random.default_rng(0), 20_000, bimodal_prior(3)
    part = rng.choice(2, size=n, p=prior.weight)
    rates = np.repeat(rng.beta(prior.a[part], prior.b[part]), 2)
    tree = tree_from_cells(
        np.zeros(2 * n),
        np.repeat(np.arange(n), 2),
        rng.binomial(rollouts, rates),
        np.full(2 * n, rollouts),
        np.tile([0, 1], n)[:, None],
    )
    found = mad_decomposition(tree, 0)
    assert found.mad == pytest.approx(noise, abs=0.005)
    assert found.excess == pytest.approx(0, abs=0.005)


def test_a_real_effect_is_excess() -> None:
    tree = tree_from_cells([0, 0], [0, 0], [20, 0], [20, 20], [[0], [1]])
    found = mad_decomposition(tree, 0)
    assert found.mad == found.percentile_90 == 1
    assert found.excess > 0.8
