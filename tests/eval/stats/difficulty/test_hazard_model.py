"""The hazard model against numerical derivatives, a general optimiser, and known truth."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.eval.stats.hazard_world import simulate
from trajudge.stats import difficulty as hazard_model
from trajudge.stats.difficulty import (
    Attempts,
    build_design,
    derivatives,
    fit_hazard,
    hardness_probability,
    log_likelihood,
    reference_success,
)


@given(st.floats(-12, 3), st.booleans())
def test_derivatives_are_those_of_the_likelihood(log_hazard: float, success: bool) -> None:
    y, h = np.array([float(success)]), 1e-4
    low, here, high = (log_likelihood(np.array([log_hazard + shift]), y) for shift in (-h, 0.0, h))
    first, second = derivatives(np.array([log_hazard]), y)
    assert first[0] == pytest.approx((high - low) / (2 * h), rel=1e-4, abs=1e-6)
    assert second[0] == pytest.approx(-(high - 2 * here + low) / h**2, rel=1e-2, abs=1e-5)


@pytest.mark.parametrize("log_hazard", [-200.0, -40.0, 8.0, 200.0])
def test_extreme_hazards_stay_finite(log_hazard: float) -> None:
    for y in (0.0, 1.0):
        values = derivatives(np.array([log_hazard]), np.array([y]))
        assert np.isfinite(values).all()


def test_the_mode_is_the_one_a_general_optimiser_finds() -> None:
    from scipy.optimize import minimize

    data, _ = simulate(0, tasks=12, agents=3)
    design = build_design(data)
    y, n = data.success.astype(float), design.matrix.shape[1]
    mean, precision = np.zeros(n), hazard_model._prior_precision(design, hazard_model.SCALE_PRIORS)
    mean[0] = -2

    def loss(effects: np.ndarray) -> float:
        predictor = design.offset + design.matrix @ effects
        return -log_likelihood(predictor, y) + float(precision @ (effects - mean) ** 2) / 2

    ours, covariance = hazard_model._mode(design, y, mean, precision, mean)
    theirs = minimize(loss, mean, method="BFGS", options={"gtol": 1e-8})
    np.testing.assert_allclose(ours, theirs.x, atol=1e-3)
    h, unit = 1e-4, np.eye(n)[0]
    curvature = (loss(ours + h * unit) - 2 * loss(ours) + loss(ours - h * unit)) / h**2
    assert np.linalg.inv(covariance)[0, 0] == pytest.approx(curvature, rel=1e-3)


def test_scales_are_the_mode_under_their_prior() -> None:
    from scipy.optimize import minimize

    effects, prior = np.array([0.3, -0.5, 0.1]), 0.5
    found = hazard_model._scale(effects, np.zeros((3, 3)), slice(0, 3), prior)

    def loss(log_scale: np.ndarray) -> float:
        s = float(np.exp(log_scale[0]))
        return float(3 * np.log(s) + effects @ effects / (2 * s**2) + s**2 / (2 * prior**2))

    best = minimize(loss, [np.log(0.4)], method="Nelder-Mead", options={"xatol": 1e-9})
    assert found == pytest.approx(float(np.exp(best.x[0])), rel=1e-4)


@pytest.mark.parametrize("seed", [0, 1])
def test_ranks_tasks_better_than_raw_success_rates(seed: int) -> None:
    from scipy.stats import spearmanr

    data, truth = simulate(seed)
    fit = fit_hazard(data)
    raw = np.nanmean(data.outcomes(), axis=0)
    assert fit.converged
    ours = spearmanr(reference_success(fit), truth).statistic
    assert ours > spearmanr(raw, truth).statistic + 0.02
    assert fit.ability.sum() == pytest.approx(0, abs=1e-9)


@pytest.mark.slow
def test_hardness_probabilities_are_calibrated() -> None:
    """Over 6 x 300 tasks, of those called hard with probability p about p are hard."""
    said, hard = [], []
    for seed in range(6):
        data, truth = simulate(20 + seed, tasks=300)
        said.append(hardness_probability(fit_hazard(data)))
        hard.append(truth <= 0.2)
    probability, event = np.concatenate(said), np.concatenate(hard)
    assert probability.mean() == pytest.approx(event.mean(), abs=0.03)
    for low, high in ((0, 0.25), (0.25, 0.75), (0.75, 1.01)):
        part = (probability >= low) & (probability < high)
        assert probability[part].mean() == pytest.approx(event[part].mean(), abs=0.06)


def test_all_failed_is_hard_and_finite() -> None:
    data, _ = simulate(0, tasks=20, agents=4)
    failed = Attempts(**{**vars(data), "success": np.zeros_like(data.success)})
    fit = fit_hazard(failed)
    assert np.isfinite(fit.log_hazard).all()
    assert (hardness_probability(fit) > 0.5).all()
