"""How many labels decide."""

from __future__ import annotations

import pytest

from trajudge.eval.select.rates import labels_needed


@pytest.mark.parametrize(
    ("target", "truth", "n"),
    [
        (0.70, 0.80, 119),
        (0.75, 0.85, 103),
        (0.80, 0.90, 82),
        (0.85, 0.95, 59),
        (0.90, 0.95, 179),
        (0.80, 0.85, 365),
    ],
)
def test_the_exact_binomial_sizes(target: float, truth: float, n: int) -> None:
    assert labels_needed(target, truth) == n


def power(n: int, target: float, truth: float, alpha: float) -> float:
    from scipy import stats

    return float(
        sum(
            stats.binom.pmf(k, n, truth)
            for k in range(n + 1)
            if stats.binom.sf(k - 1, n, target) <= alpha
        )
    )


@pytest.mark.parametrize("alpha", [0.05, 0.01])
def test_it_is_the_first_number_with_the_power(alpha: float) -> None:
    n = labels_needed(0.6, 0.85, alpha=alpha)
    assert n is not None
    assert power(n, 0.6, 0.85, alpha) >= 0.8
    assert all(power(m, 0.6, 0.85, alpha) < 0.8 for m in range(1, n))


def test_showing_that_a_rate_is_too_low_is_the_same_task_mirrored() -> None:
    assert labels_needed(0.3, 0.2) == labels_needed(0.7, 0.8)


def test_a_rate_at_its_target_is_decided_by_no_number() -> None:
    assert labels_needed(0.8, 0.8) is None
    assert labels_needed(0.8, 0.8001) is None


def test_a_perfect_judge_needs_what_all_correct_needs() -> None:
    assert labels_needed(0.8, 1.0) == 14
