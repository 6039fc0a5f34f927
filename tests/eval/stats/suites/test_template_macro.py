"""Template-macro means and paired differences against scipy's t."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trajudge.stats.suites import ONE_UNIT, t_interval, template_macro


@given(st.lists(st.floats(0, 1), min_size=2, max_size=30), st.floats(0.5, 0.99))
def test_t_interval_is_scipys(values: list[float], confidence: float) -> None:
    from scipy.stats import t

    half = (
        t.ppf((1 + confidence) / 2, len(values) - 1) * np.std(values, ddof=1) / len(values) ** 0.5
    )
    ours = t_interval([values], confidence)
    assert ours.estimate[0] == pytest.approx(np.mean(values))
    assert ours.width[0] == pytest.approx(2 * half)


def test_each_template_counts_once_and_each_site_once() -> None:
    """Shopping: templates 1 (of 3 tasks: 1, 1, 0) and 2 (0). GitLab: template 1 (1)."""
    found = template_macro([1, 1, 1, 2, 1], ["shopping"] * 4 + ["gitlab"], [1, 1, 0, 0, 1])
    assert found.sites == ("gitlab", "shopping")
    assert found.overall.estimate[0] == pytest.approx((2 / 3 + 0 + 1) / 3)
    assert found.per_site.estimate.tolist() == pytest.approx([1, 1 / 3])
    assert found.site_macro.estimate[0] == pytest.approx(2 / 3)
    assert np.isnan(found.per_site.low[0])
    assert found.per_site.notes == (ONE_UNIT,)
    assert not found.overall.notes


def test_missing_outcomes_are_refused_and_nothing_is_explained() -> None:
    with pytest.raises(ValueError, match="nan"):
        template_macro([1], ["s"], [float("nan")])
    assert t_interval([[]]).notes == (ONE_UNIT,)
    assert np.isnan(t_interval([[]]).estimate[0])


def test_all_failed_is_zero_with_zero_width() -> None:
    """As the paper prints for its naive ensemble: 0.0 % ± 0.0 %."""
    found = template_macro([1, 2, 3], ["s"] * 3, [0, 0, 0])
    assert (found.overall.estimate[0], found.overall.width[0]) == (0, 0)
