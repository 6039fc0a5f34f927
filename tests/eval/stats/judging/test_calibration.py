"""Calibration maps and reliability against scikit-learn and statsmodels."""

from __future__ import annotations

import numpy as np
import pytest

from trajudge.stats.calibration import closer_sigmoid, fit_calibration, reliability

RNG = np.random.default_rng(4)
N = 400
SCORE = np.round(RNG.random(N), 2)
TRUTH = RNG.random(N) < SCORE**2  # overconfident: the truth is the square
NEW = np.linspace(0, 1, 37)


def test_isotonic_is_scikit_learns() -> None:
    from sklearn.isotonic import IsotonicRegression

    expected = IsotonicRegression(out_of_bounds="clip").fit(SCORE, TRUTH).predict(NEW)
    assert fit_calibration(SCORE, TRUTH, "isotonic")(NEW) == pytest.approx(expected)


def test_platt_is_a_logistic_regression_on_his_targets() -> None:
    api = pytest.importorskip("statsmodels.api", reason="statsmodels is the reference here")
    positives = int(TRUTH.sum())
    target = np.where(TRUTH, (positives + 1) / (positives + 2), 1 / (N - positives + 2))
    fit = api.GLM(target, np.column_stack([SCORE, np.ones(N)]), family=api.families.Binomial())
    slope, intercept = fit.fit().params
    found = fit_calibration(SCORE, TRUTH, "platt")
    assert (found.slope, found.intercept) == pytest.approx((slope, intercept), rel=1e-5)


def test_verdicts_become_the_shares_of_successes_among_them() -> None:
    verdict = SCORE >= 0.7
    fitted = fit_calibration(verdict, TRUTH, "verdict")
    for value in (True, False):
        mine = TRUTH[verdict == value]
        assert fitted(value) == pytest.approx((mine.sum() + 0.5) / (len(mine) + 1))
    turned = fit_calibration(~verdict, TRUTH, "verdict")
    assert turned(True) == turned(False) == pytest.approx((TRUTH.sum() + 1) / (N + 2))


def test_scores_that_are_probabilities_stay_as_they_are() -> None:
    """A sigmoid of the score cannot be the identity; one of the log-odds is."""
    score = RNG.random(20_000)
    truth = RNG.random(20_000) < score
    assert closer_sigmoid(score, truth) == "log-odds"
    middle = np.linspace(0.05, 0.95, 19)
    found = fit_calibration(score, truth, "log-odds")
    assert found(middle) == pytest.approx(middle, abs=0.02)
    assert (found.slope, found.intercept) == pytest.approx((1, 0), abs=0.06)
    sigmoid = 1 / (1 + np.exp(-(6 * score - 3)))
    assert closer_sigmoid(score, RNG.random(20_000) < sigmoid) == "platt"


@pytest.mark.parametrize("method", ["isotonic", "platt", "log-odds"])
def test_a_map_helps_on_new_data_and_never_turns_the_order(method: str) -> None:
    fitted = fit_calibration(SCORE, TRUTH, method)  # type: ignore[arg-type]
    assert (np.diff(fitted(NEW)) >= 0).all()
    score = RNG.random(4000)
    truth = RNG.random(4000) < score**2
    raw = reliability(score, truth, np.arange(4000))
    after = reliability(fitted(score), truth, np.arange(4000))
    assert after.calibration_error < raw.calibration_error / 2
    assert after.brier < raw.brier


def test_separable_scores_do_not_run_away() -> None:
    found = fit_calibration([0.1, 0.2, 0.8, 0.9], [False, False, True, True], "platt")
    assert 0 < found(0.1) < 0.5 < found(0.9) < 1


def test_bins_are_scikit_learns_and_tasks_widen_them() -> None:
    from sklearn.calibration import calibration_curve

    task = np.arange(N) // 4
    score = 0.97 * SCORE + 0.0013  # on no bin's edge, where the two round differently
    found = reliability(score, TRUTH, task)
    rate, mean = calibration_curve(TRUTH, score, n_bins=10)
    assert found.rate.estimate == pytest.approx(rate)
    assert found.mean_score == pytest.approx(mean)
    assert found.n.sum() == N
    low, high = found.rate.low, found.rate.high
    assert ((low <= found.rate.estimate) & (found.rate.estimate <= high)).all()
    equal = np.repeat(SCORE[:100], 4), np.repeat(TRUTH[:100], 4), np.repeat(np.arange(100), 4)
    apart = reliability(equal[0], equal[1], np.arange(400)).rate.width
    assert (reliability(*equal).rate.width > 1.3 * apart).all()


def test_one_outcome_cannot_be_fitted() -> None:
    with pytest.raises(ValueError, match="successes and failures"):
        fit_calibration([0.1, 0.9], [True, True], "isotonic")
