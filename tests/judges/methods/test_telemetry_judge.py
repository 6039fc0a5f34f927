"""The telemetry judge: what it counts, what it learns, what it keeps."""

from __future__ import annotations

import asyncio
from math import isnan
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.judges.runs import ScriptedAsk, mug_run
from trajudge.judges.methods.telemetry import Telemetry, TelemetryOptions
from trajudge.judges.model import Skipped
from trajudge.judges.registry import make_judge
from trajudge.judges.telemetry import (
    FEATURES,
    TelemetryModel,
    ended_by_environment,
    features,
    fit,
    folds_of,
    logistic_regression,
    out_of_fold,
    read_model,
)
from trajudge.trajectories.model import Step, Trajectory
from trajudge.util.errors import UserError


def run_of(*actions: str, **changes: object) -> Trajectory:
    steps = tuple(Step(index=index, action=action) for index, action in enumerate(actions))
    return mug_run(steps=steps, **changes)


def told(run: Trajectory) -> dict[str, float]:
    return dict(zip(FEATURES, features(run), strict=True))


def test_counts_the_shape_of_the_actions() -> None:
    values = told(run_of("click('1')", "click('1')", "fill('2', 'x')", "send_msg_to_user('ok')"))
    assert values["share_click"] == 0.5
    assert values["distinct_share"] == 0.75
    assert values["kinds"] == 3
    assert np.expm1(values["steps"]) == pytest.approx(4)
    assert np.expm1(values["longest_repeat"]) == pytest.approx(2)
    assert values["ends_with_message"] == 1
    assert np.expm1(values["log_message_length"]) == pytest.approx(2)


def test_a_declared_answer_ends_a_run_as_a_message_does() -> None:
    values = told(run_of("click('1')", "answer('$12')", truncated=False))
    assert values["ends_with_message"] == 1
    assert np.expm1(values["log_message_length"]) == pytest.approx(len('{"answer": "$12"}'))


def test_what_a_run_does_not_tell_is_not_a_number() -> None:
    values = told(run_of("click('1')", truncated=None))
    assert isnan(values["budget_exhausted"])
    assert isnan(values["log_input_tokens"])
    recorded = {"cum_input_tokens": 0.0, "cum_output_tokens": -1.0, "cum_n_retry": 3.0}
    values = told(run_of("click('1')", telemetry=recorded))
    assert (values["log_input_tokens"], values["ends_infeasible"]) == (0.0, 0.0)
    assert isnan(values["log_output_tokens"])
    assert np.expm1(values["log_retries"]) == pytest.approx(3)
    assert told(run_of("report_infeasible('no')"))["ends_infeasible"] == 1.0


def test_no_reward_comes_in() -> None:
    """Neither the official one nor one that a loader might leave among the telemetry."""
    plain = run_of("click('1')", official_reward=0.0)
    leaked = run_of(
        "click('1')",
        official_reward=1.0,
        telemetry={"cum_reward": 1.0, "cum_raw_reward": 1.0, "reward": 1.0, "success": 1.0},
    )
    np.testing.assert_array_equal(features(plain), features(leaked))


def test_a_run_that_said_nothing_and_had_steps_left_was_ended_by_the_environment() -> None:
    assert ended_by_environment(run_of("click('1')"))
    assert not ended_by_environment(run_of("click('1')", truncated=True))
    assert not ended_by_environment(run_of("send_msg_to_user('Done.')"))
    assert not ended_by_environment(run_of("report_infeasible('no')"))


@given(st.lists(st.text(max_size=30), max_size=8))
def test_any_text_for_an_action_gives_finite_numbers(actions: list[str]) -> None:
    shape = told(run_of(*actions))
    assert all(np.isfinite(shape[name]) for name in FEATURES if name.startswith("share_"))


def made(seed: int = 0, tasks: int = 40) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Runs of 4 agents on ``tasks`` tasks whose success follows two features, and some chance."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(4 * tasks, len(FEATURES)))
    labels = rows[:, 0] - rows[:, 1] + 0.3 * rng.normal(size=len(rows)) > 0
    return rows, labels, np.repeat([f"shop/{task}" for task in range(tasks)], 4)


def test_learns_what_decides_and_keeps_the_precision_it_aims_at() -> None:
    model = fit(*made(), np.random.default_rng(0), target_precision=0.9)
    rows, labels, _ = made(seed=1)
    scores = np.array([model.probability(row) for row in rows.tolist()])
    accepted = scores >= model.threshold
    assert accepted.sum() > 40
    assert labels[accepted].mean() > 0.85


def test_the_same_seed_gives_the_same_model() -> None:
    first, again = (fit(*made(), np.random.default_rng(3), target_precision=0.85) for _ in range(2))
    assert first == again


def test_the_file_s_model_says_what_sklearn_s_said() -> None:
    rows, labels, groups = made()
    model = fit(rows, labels, groups, np.random.default_rng(0), target_precision=0.85)
    reread = TelemetryModel.model_validate_json(model.model_dump_json())
    assert reread == model
    from sklearn.linear_model import LogisticRegression

    standard = (rows - model.means) / model.scales
    theirs = LogisticRegression(C=0.3, max_iter=2000).fit(standard, labels)
    ours = [reread.probability(row) for row in rows.tolist()]
    np.testing.assert_allclose(ours, theirs.predict_proba(standard)[:, 1], rtol=0, atol=1e-12)
    plain = LogisticRegression().fit(standard, labels)
    weights, intercept = logistic_regression(standard, labels)
    np.testing.assert_allclose(weights, plain.coef_[0], rtol=0, atol=1e-12)
    assert intercept == pytest.approx(plain.intercept_[0], abs=1e-12)


def test_held_out_chances_are_those_of_scikit_learn_in_five_folds() -> None:
    from sklearn.linear_model import LogisticRegression

    rows, labels, groups = made()
    ours = out_of_fold(rows, labels, groups, np.random.default_rng(2))
    for train, test in folds_of(labels, groups, np.random.default_rng(2), 5):
        scaled = (rows - rows[train].mean(axis=0)) / rows[train].std(axis=0)
        theirs = LogisticRegression(C=0.3, max_iter=2000).fit(scaled[train], labels[train])
        chances = theirs.predict_proba(scaled[test])[:, 1]
        np.testing.assert_allclose(ours[test], chances, rtol=0, atol=1e-9)
    scarce = np.arange(len(labels)) // 4 < 2  # two tasks, and with them two folds
    both = out_of_fold(rows, scarce, groups, np.random.default_rng(2))
    assert np.all(np.isfinite(both)) and np.all(both > 0)


@pytest.mark.parametrize("seed", range(8))
def test_the_folds_are_those_of_scikit_learn(seed: int) -> None:
    from sklearn.model_selection import StratifiedGroupKFold

    rng = np.random.default_rng(seed)
    groups = rng.integers(40, size=150).astype(str)
    labels, count = rng.random(150) < 0.2 + 0.05 * seed, 2 + seed % 4
    split = StratifiedGroupKFold(
        count, shuffle=True, random_state=int(np.random.default_rng(seed).integers(2**31))
    )
    theirs = split.split(np.zeros((150, 1)), labels, groups)
    ours = folds_of(labels, groups, np.random.default_rng(seed), count)
    for mine, other in zip(ours, theirs, strict=True):
        assert [each.tolist() for each in mine] == [each.tolist() for each in other]


def test_without_a_threshold_that_reaches_the_target_nothing_is_accepted() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(200, len(FEATURES)))
    labels, groups = rng.random(200) < 0.2, np.arange(200).astype(str)
    model = fit(rows, labels, groups, rng, target_precision=0.99)
    assert model.threshold > 1


@pytest.fixture
def model_file(tmp_path: Path) -> Path:
    path = tmp_path / "model.json"
    model = fit(*made(), np.random.default_rng(0), target_precision=0.85)
    path.write_text(model.model_dump_json())
    return path


def test_judges_with_the_probability_as_score(model_file: Path) -> None:
    judge = Telemetry(TelemetryOptions(model=model_file))
    verdict = asyncio.run(judge(mug_run(), ScriptedAsk()))
    model = read_model(model_file)
    assert verdict.score == model.probability(features(mug_run()))
    assert verdict.success == (verdict.score >= model.threshold)
    with pytest.raises(Skipped, match="no action is recorded"):
        asyncio.run(judge(mug_run(steps=()), ScriptedAsk()))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "No such file"),
        ("", "holds no telemetry model"),
        ('{"features": ["x"]}', "holds no telemetry model"),
        ("WRONG-SIZES", "one mean, scale and weight"),
    ],
)
def test_a_wrong_file_is_said(
    tmp_path: Path, model_file: Path, content: str | None, said: str
) -> None:
    path = tmp_path / "wrong.json"
    if content is not None:
        good = TelemetryModel.model_validate_json(model_file.read_bytes())
        wrong = good.model_copy(update={"means": good.means[1:]}).model_dump_json()
        path.write_text(wrong if content == "WRONG-SIZES" else content)
    with pytest.raises(UserError, match=said):
        make_judge("telemetry", {"model": path})


def test_without_a_file_the_mend_is_said() -> None:
    with pytest.raises(UserError, match="trajudge judges train"):
        make_judge("telemetry")
