"""The value of a judgment: a failure has none, and penalties keep success above failure; and what
stands for a missing one in a group."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tests.eval.cases import failed, key, label, observe, said
from trajudge.eval.analysis.calibration import calibrate
from trajudge.eval.select.binding import JudgeConfiguration
from trajudge.judges.model import Status
from trajudge.rewards.reward import (
    Abstained,
    Reward,
    RewardFunction,
    neutral_share,
    neutral_values,
    shape_judgment,
)
from trajudge.rewards.settings import RewardForm, RewardShaping
from trajudge.stats.calibration import FittedMap

VERDICTS = FittedMap("verdict", (0.0, 1.0), (0.2, 0.7))


@pytest.mark.parametrize("status", [status for status in Status if status is not Status.OK])
@pytest.mark.parametrize("form", ["identity", "verdict", "gate", "logit"])
def test_a_failure_never_is_a_number(status: Status, form: RewardForm) -> None:
    shaping = RewardShaping(form=form)
    assert shape_judgment(failed(1, status), VERDICTS, shaping) == (None, None, {}, "failed")
    open_ = said(1, None)
    assert shape_judgment(open_, None, shaping).abstained == "failed", (
        "neither yes nor no is no answer"
    )


def test_a_reward_without_a_value_says_why() -> None:
    with pytest.raises(ValidationError, match="if and only if the judge abstained"):
        Reward(key=key(1), value=None, judge="j", version="v")
    with pytest.raises(ValidationError, match="if and only if the judge abstained"):
        Reward(key=key(1), value=0.0, abstained="late", judge="j", version="v")


@pytest.mark.parametrize(
    ("form", "score", "success", "value"),
    [
        ("identity", None, True, 0.7),
        ("identity", None, False, 0.2),
        ("verdict", None, True, 1.0),
        ("verdict", 0.9, False, 0.0),
        ("logit", None, True, 0.5 + math.log(7 / 3) / 8),
    ],
)
def test_forms(form: RewardForm, score: float | None, *, success: bool, value: float) -> None:
    found = shape_judgment(said(1, success, score=score), VERDICTS, RewardShaping(form=form))
    assert found.value == pytest.approx(value)


@pytest.mark.parametrize(
    ("score", "value", "abstained"),
    [(0.9, 1.0, ""), (0.8, 1.0, ""), (0.79, None, "uncertain"), (0.3, 0.0, "")],
)
def test_a_gate_abstains_between_its_thresholds(
    score: float, value: float | None, abstained: str
) -> None:
    shaping = RewardShaping(form="gate", threshold=0.8, reject_below=0.5)
    found = shape_judgment(said(1, score > 0.5, score=score), None, shaping)
    assert (found.value, found.abstained) == (value, abstained)


def test_without_a_calibration_there_is_no_probability() -> None:
    found = shape_judgment(said(1, True, score=0.9), None, RewardShaping())
    assert (found.value, found.probability) == (0.9, None)


def test_penalties_are_said_and_scaled_with_the_range() -> None:
    judgment = said(1, True, score=0.9, side_effect=True)
    plain = shape_judgment(judgment, None, RewardShaping(low=-1, high=1))
    assert plain.penalties == {"side_effect": pytest.approx(0.5 * 0.4 * 2)}
    assert plain.value == pytest.approx(2 * 0.9 - 1 - 0.4)
    flips = RewardShaping(side_effect=0.8, repetition=0.3, allow_flip=True)
    assert shape_judgment(judgment, None, flips).value == pytest.approx(0.1)


def test_a_rejected_run_pays_of_what_lies_above_the_least_value() -> None:
    found = shape_judgment(
        said(1, False, score=0.3, side_effect=True), None, RewardShaping(low=-1, high=1)
    )
    assert found.penalties == {"side_effect": pytest.approx(0.5 * 0.3 * 2)}
    assert found.value == pytest.approx(2 * 0.3 - 1 - 0.3)


SCORES = st.floats(0, 1) | st.none()
LABELS = st.booleans() | st.none()


@given(
    *(SCORES, SCORES, LABELS, LABELS, LABELS, LABELS),
    st.sampled_from(["identity", "verdict", "logit"]),
    st.floats(0, 0.6),
    st.floats(0, 0.39),
    st.sampled_from([None, VERDICTS, FittedMap("platt", slope=5.0, intercept=-2.0)]),
)
def test_penalties_never_turn_success_and_failure(
    high: float | None,
    low: float | None,
    high_side: bool | None,
    high_loop: bool | None,
    low_side: bool | None,
    low_loop: bool | None,
    form: RewardForm,
    side_effect: float,
    repetition: float,
    fitted: FittedMap | None,
) -> None:
    yes = None if high is None else 0.5 + high / 2
    no = None if low is None else low / 2
    shaping = RewardShaping(form=form, side_effect=side_effect, repetition=repetition)
    accepted = said(1, True, score=yes, side_effect=high_side, repetition=high_loop)
    rejected = said(2, False, score=no, side_effect=low_side, repetition=low_loop)
    above, below = (shape_judgment(one, fitted, shaping) for one in (accepted, rejected))
    assert above.value is not None
    assert below.value is not None
    assert above.value >= below.value - 1e-12
    for found in (above, below):
        assert 0 <= found.value <= 1  # type: ignore[operator]
        assert all(penalty >= 0 for penalty in found.penalties.values())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"side_effect": 0.9}, r"--side-effect-penalty 0\.9 and --repetition-penalty 0\.1 are 1 "),
        ({"low": 1.0}, "low must be below high"),
        (
            {"form": "gate", "threshold": 0.4},
            r"--threshold 0\.4 of a gate is below --reject-below 0\.5",
        ),
        ({"form": "gate", "threshold": 0.0}, "--threshold 0 of a gate"),
    ],
)
def test_settings_that_cannot_work_are_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        RewardShaping.model_validate(settings)


@pytest.mark.parametrize(
    ("form", "threshold", "share"),
    [
        ("identity", None, 0.3),
        ("verdict", None, 0.9),  # of those with 0.6 and 0.95
        ("verdict", 0.9, 0.5),
        ("gate", 0.9, 5 / 6),  # 0.6 has no value
        ("logit", None, 0.5 + math.log(3 / 7) / 8),
    ],
)
def test_an_abstention_lies_where_the_values_lie(
    form: RewardForm, threshold: float | None, share: float
) -> None:
    """A lenient judge's verdicts have a mean of 0.9 where 0.3 succeed: 0.3 would punish."""
    shaping = RewardShaping(form=form, threshold=threshold)
    scores = [(0.1, 10), (0.6, 40), (0.95, 50)]
    assert neutral_share(shaping, 0.3, scores) == pytest.approx(share)
    assert neutral_share(RewardShaping(form="gate"), 0.3, ()) == 0.3


@pytest.mark.parametrize(("form", "share"), [("verdict", 0.2), ("gate", 0.2 / 0.6)])
def test_an_abstention_counts_the_verdicts_of_a_judge_with_a_threshold_of_its_own(
    form: RewardForm, share: float
) -> None:
    """heuristic accepts a score of 1, not of 0.5: what it says itself decides the value."""
    scores = [0.0, 0.2, 0.5, 0.5, 1.0] * 20
    labels = {
        key(i): label(i, i % 2 == 0, split="dev" if i < 50 else "test") for i in range(len(scores))
    }
    judgments = [said(i, score == 1, score=score) for i, score in enumerate(scores)]
    observed = {"judge": observe(judgments, labels, "negative")}
    [calibration] = calibrate(observed, labels, "platt")
    function = RewardFunction(JudgeConfiguration(judge="judge"), RewardShaping(form=form))
    given = [function(one).value for one in judgments[50:]]
    valued = [value for value in given if value is not None]
    assert sum(valued) / len(valued) == pytest.approx(share)
    assert replace(function, calibration=calibration).neutral_value == pytest.approx(share)


def group(*values: float | None) -> list[Reward]:
    return [
        Reward(
            key=key(i), value=value, abstained="" if value is not None else "late", judge="j",
            version="v",
        )
        for i, value in enumerate(values)
    ]  # fmt: skip


def test_a_neutral_member_has_no_advantage_and_moves_no_mean() -> None:
    values = np.array(neutral_values(group(1, 0, None, 1)))
    assert values == pytest.approx([1, 0, 2 / 3, 1])
    assert values.mean() == pytest.approx(2 / 3)


def test_what_a_group_without_any_value_gets() -> None:
    assert neutral_values(group(None, None), base_rate=0.3) == [0.3, 0.3]
    with pytest.raises(Abstained, match=r"webarena/agent/webarena\.0: late .* no neutral value"):
        neutral_values(group(None, None))


def test_a_group_with_all_values_stays_as_it_is() -> None:
    assert neutral_values(group(1, 0)) == [1, 0]
