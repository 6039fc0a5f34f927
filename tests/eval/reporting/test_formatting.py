"""Figures as tables show them."""

from __future__ import annotations

import pytest

from trajudge.eval.reporting.sentences import percent, rate_cell, signed_cell, with_limits
from trajudge.eval.scoring.records import Counts, Score


@pytest.mark.parametrize("tiny", [-0.0, -1e-4])
def test_no_figure_is_minus_zero(tiny: float) -> None:
    """κ of a judge that agrees by chance read -0.00."""
    score = Score(
        judge="j", benchmark="b", label="success", n=0, positives=0,
        counts=Counts(tp=0, fp=0, fn=0, tn=0), precision=None, recall=None, f1=None, accuracy=None,
        npv=None, tnr=None, mcc=None, kappa=tiny, intervals={"kappa": (tiny, 0.5)},
    )  # fmt: skip
    assert rate_cell(score, "kappa") == "0.00 [0.00, 0.50]"
    assert signed_cell(tiny, tiny, 0.1) == "+0.0 [+0.0, +10.0]"
    assert (percent(tiny), with_limits(tiny, (tiny, 0.1))) == ("0.0", "0.0 [0.0, 10.0]")
