"""Calibration maps and reliability, and ``trajudge score --calibration``."""

from __future__ import annotations

import re
from itertools import cycle
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from tests.commands import score
from tests.eval.cases import key, label, said
from tests.eval.scored_run import make_run
from trajudge.eval.analysis.calibration import Calibrations, read_calibration
from trajudge.eval.store.run_folder import (
    JUDGMENTS,
    judgment_line,
    write_labels,
    write_manifest,
    write_rewards,
)
from trajudge.stats.calibration import (
    FittedMap,
    closer_sigmoid,
    fit_calibration,
    reliability,
)
from trajudge.util.errors import UserError


@pytest.mark.parametrize("method", ["isotonic", "platt"])
def test_the_map_is_fitted_on_dev_and_measured_on_test(
    method: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, out = make_run(tmp_path / "run"), tmp_path / "map.json"
    assert score([str(run), "--calibration", method, "--calibration-out", str(out)]) == 0
    screen = capsys.readouterr().out
    assert screen.count("\n") <= 40
    assert re.search(rf"^judge +{method} +98 .* 101$", screen, re.M)
    assert score([str(run), "--calibration", method, "--full"]) == 0
    text = capsys.readouterr().out
    assert "Calibration of judge on 101 test trajectories, fitted on 98 of dev" in text
    found = Calibrations.model_validate_json(out.read_text()).calibrations[0]
    assert (found.fitted_on, found.left_out) == (98, 1)
    assert found.calibrated.calibration_error < found.raw.calibration_error
    assert read_calibration(out, "judge").map.fitted()(0.5) == pytest.approx(
        found.map.fitted()(0.5)
    )
    with pytest.raises(UserError, match="no calibration of other; there are judge"):
        read_calibration(out, "other")
    out.write_text(out.read_text(), encoding="utf-16")
    with pytest.raises(UserError, match="is UTF-16: save it as UTF-8"):
        read_calibration(out, "judge")


@pytest.mark.parametrize(
    ("scores", "words", "message"),
    [
        (False, ["--calibration", "platt"], "no judge here gives scores"),
        (True, ["--calibration", "platt", "--split", "test"], "judge again with --split all"),
        (True, ["--calibration-out", "x.json"], "needs --calibration"),
    ],
)
def test_what_cannot_be_fitted_is_said(
    *,
    scores: bool,
    words: list[str],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert score([str(make_run(tmp_path / "run", scores=scores)), *words]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("splits", "message"),
    [
        ((None,), "the labels name no split: give each its own"),
        (("dev", "test"), "every task of dev is in test too: split the labels by task"),
    ],
)
def test_labels_without_two_splits_by_task_are_told_apart(
    splits: tuple[Literal["dev", "test"] | None, ...],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = make_run(tmp_path / "run")
    keys = [key(i, agent=agent) for i in range(199) for agent in (key(0).agent, "other")]
    judgments = [said(0, True, score=0.5).model_copy(update={"key": one}) for one in keys]
    given = zip(keys, cycle(splits), strict=False)
    write_labels(run, [label(0, True, split=s).model_copy(update={"key": one}) for one, s in given])
    (run / JUDGMENTS).write_bytes(b"".join(map(judgment_line, judgments)))
    write_rewards(run, {j.key: None for j in judgments})
    assert score([str(run), "--calibration", "auto"]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(("scores", "method"), [(True, "log-odds"), (False, "verdict")])
def test_auto_takes_what_the_judge_and_the_split_allow(
    *, scores: bool, method: str, tmp_path: Path
) -> None:
    run, out = make_run(tmp_path / "run", scores=scores), tmp_path / "map.json"
    assert score([str(run), "--calibration", "auto", "--calibration-out", str(out)]) == 0
    found = read_calibration(out, "judge")
    assert found.map.method == method, "98 trajectories are too few for isotonic regression"
    assert found.calibrated.brier < found.raw.brier


@pytest.mark.parametrize("data", ["--csv", "--json"])
def test_results_as_data_leave_no_calibration_out_in_silence(
    data: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, out = make_run(tmp_path / "run"), tmp_path / "map.json"
    words = [str(run), data, "--calibration", "auto"]
    assert score(words) == 2
    assert "hold no calibration" in capsys.readouterr().err
    assert score([*words, "--calibration-out", str(out)]) == 0
    assert read_calibration(out, "judge").calibrated.n == 101


def test_the_file_says_how_the_judge_was_configured(tmp_path: Path) -> None:
    run, out = make_run(tmp_path / "run"), tmp_path / "map.json"
    write_manifest(run, {"protocol": "default", "judge": "judge", "prompt_hash": "abc"})
    assert score([str(run), "--calibration", "auto", "--calibration-out", str(out)]) == 0
    configuration = read_calibration(out, "judge").configuration
    assert configuration is not None
    assert configuration.facts == {"prompt_hash": "abc"}


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


def test_the_highest_score_is_in_the_last_of_ten_bins() -> None:
    found = reliability([0.05, 0.15, 1.0, 0.95], [0, 1, 1, 0], np.arange(4), accepted=[0, 0, 1, 1])
    assert found.low.tolist() == [0, 0.1, 0.9]
    assert found.high.tolist() == pytest.approx([0.1, 0.2, 1])
    assert (found.n.tolist(), found.tasks.tolist()) == ([1, 1, 2], [1, 1, 2])
    assert found.accepted is not None and found.accepted.tolist() == [0, 0, 2]
    assert found.mean_score == pytest.approx([0.05, 0.15, 0.975])
    assert found.calibration_error == pytest.approx((0.05 + 0.85 + 2 * 0.475) / 4)
    assert found.brier == pytest.approx((0.05**2 + 0.85**2 + 0 + 0.95**2) / 4)


def test_an_isotonic_map_has_a_value_for_each_score_and_no_slope() -> None:
    found = fit_calibration([0.2, 0.8, 0.8], [False, True, False], "isotonic")
    assert found == FittedMap("isotonic", (0.2, 0.8), (0.0, 0.5), slope=0.0, intercept=0.0)


def test_one_outcome_cannot_be_fitted() -> None:
    with pytest.raises(ValueError, match="successes and failures"):
        fit_calibration([0.1, 0.9], [True, True], "isotonic")
