"""McNemar and Holm against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trajudge.eval.stats.judging.comparison import holm, mcnemar


@pytest.mark.slow
@given(st.lists(st.sampled_from([0.0, 0.001, 0.01, 0.02, 0.04, 0.3, 1.0]), max_size=8))
def test_holm_rejects_what_stepping_down_rejects(p_values: list[float]) -> None:
    """At every level: in ascending order, until the first p above level / (tests left)."""
    for level in (0.0101, 0.0501, 0.101):
        rejected = set()
        for done, i in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
            if p_values[i] > level / (len(p_values) - done):
                break
            rejected.add(i)
        assert {i for i, p in enumerate(holm(p_values)) if p <= level} == rejected


def test_holm_leaves_out_what_was_not_tested() -> None:
    np.testing.assert_allclose(holm([0.01, np.nan, 0.04]), [0.02, np.nan, 0.04])
    assert holm([]).shape == (0,)


@given(st.lists(st.tuples(st.booleans(), st.booleans()), max_size=60))
def test_mcnemar_is_the_exact_binomial_test(pairs: list[tuple[bool, bool]]) -> None:
    from scipy.stats import binomtest

    test = mcnemar([a for a, _ in pairs], [b for _, b in pairs])
    n = test.only_first + test.only_second
    assert n == sum(a != b for a, b in pairs)
    if n:
        assert test.p_value == pytest.approx(binomtest(test.only_first, n).pvalue)
    else:
        assert test.p_value == 1
    assert test.mid_p <= test.p_value


def test_mid_p_of_a_split_of_one_to_four() -> None:
    """2 (P[X=0] + P[X=1] / 2) with X ~ Bin(5, 1/2)."""
    right = [True] + [False] * 4
    assert mcnemar(right, [not x for x in right]).mid_p == pytest.approx(2 * (1 + 2.5) / 32)
