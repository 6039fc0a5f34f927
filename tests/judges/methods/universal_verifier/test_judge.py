"""The verifier end to end with a scripted model: calls, votes, options, failures."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import numpy as np
import pytest

from tests.judges.methods.universal_verifier.scripts import (
    StageScript,
    hashes,
    outcome_reply,
    rescore_reply,
    rubric_reply,
)
from tests.judges.runs import mug_run, seen_run
from trajudge.judges.adapters.errors import AuthFailed, Unreachable
from trajudge.judges.judging import judge_trajectory
from trajudge.judges.methods.universal_verifier.judge import UniversalVerifier
from trajudge.judges.methods.universal_verifier.model import UniversalVerifierOptions
from trajudge.judges.model import Judgment, Status
from trajudge.judges.registry import make_judge
from trajudge.trajectories.model import Trajectory
from trajudge.util.errors import UserError

BAD = "not json"


def acting_run(shots: int) -> Trajectory:
    """A run with an action, and a screenshot before it, at every step."""
    run = seen_run(shots)
    steps = [step.model_copy(update={"action": f"click('{step.index}')"}) for step in run.steps]
    return run.model_copy(update={"steps": tuple(steps)})


def judged(ask: StageScript, trajectory: Trajectory | None = None, **options: object) -> Judgment:
    name, judge = make_judge("universal-verifier", options)
    run = trajectory or seen_run(3)
    return asyncio.run(judge_trajectory(name, judge, run, ask))


@pytest.mark.parametrize("seed", range(10))
def test_the_calls_are_those_of_the_formula(seed: int) -> None:
    """S + U + q + 3N + 6, on random shapes; 3 more with failures and validity, 2 fewer inline."""
    rng = np.random.default_rng(seed)
    shots, criteria = int(rng.integers(1, 13)), int(rng.integers(1, 7))
    votes = int(rng.choice([1, 3, 5]))
    conditions = ["only if it is there" if rng.random() < 0.4 else None for _ in range(criteria)]
    relevance = rng.integers(0, 11, size=(shots, criteria)).tolist()
    inline, after = bool(rng.random() < 0.3), bool(rng.random() < 0.5)
    ask = StageScript(rubric=rubric_reply(*conditions), scores=relevance)
    judgment = judged(
        ask,
        acting_run(shots),
        votes=votes,
        critical_points="inline" if inline else "classified",
        failures=after,
        validity=after,
    )
    assert judgment.status is Status.OK, judgment.detail
    looked_at = len(hashes(ask.stage("evidence")))
    several = sum(condition is not None for condition in conditions) >= 2
    expected = shots + looked_at + several + 3 * votes + 6 + 3 * after - 2 * inline
    assert len(ask.asked) == expected
    assert looked_at <= min(shots, 5 * criteria)


def test_a_given_rubric_saves_two_calls(tmp_path: Path) -> None:
    rubrics = tmp_path / "rubrics.json"
    rubrics.write_text(json.dumps({"shop.1": json.loads(rubric_reply(None, None))}))
    ask = StageScript()
    assert judged(ask, rubrics=rubrics).status is Status.OK
    assert not ask.stage("rubric")
    assert not ask.stage("dependencies")


def test_scores_in_a_given_rubric_are_refused(tmp_path: Path) -> None:
    rubric = json.loads(rubric_reply(None))
    rubric["items"][0]["earned_points"] = 3
    rubrics = tmp_path / "rubrics.json"
    rubrics.write_text(json.dumps({"shop.1": rubric}))
    with pytest.raises(UserError, match=r"task shop\.1: item 0: earned_points"):
        judged(StageScript(), rubrics=rubrics)


def test_the_median_scoring_and_the_majority_count() -> None:
    ask = StageScript(
        rubric=rubric_reply(None, None),
        rescore=[rescore_reply(0, 0), rescore_reply(3, 3), rescore_reply(3, 1)],
        outcome=[outcome_reply(success=one) for one in (False, True, True)],
    )
    judgment = judged(ask, votes=3)
    assert judgment.scores["process_score"] == pytest.approx(4 / 6)
    assert judgment.success is True
    assert judgment.reasoning == "True"
    assert judgment.record is not None
    assert judgment.record["median"] == 2
    seeds = [call.parameters.get("seed") for call in ask.stage("rescore")]
    assert seeds == [None, 1, 2], "equal questions would be answered by the cache"


def test_a_review_that_always_fails_counts_as_one_failure_of_the_rubric() -> None:
    """25 + 5 calls at worst, and the critical point: as the source's trace of 31 calls."""
    ask = StageScript(dependencies=BAD)
    judgment = judged(ask)
    assert judgment.status is Status.UNPARSABLE
    assert ask.stages == {"critical_point": 1, "rubric": 5, "dependencies": 25}


def test_a_reformulated_rubric_takes_the_place_of_the_first() -> None:
    new = json.loads(rubric_reply(None, None, None, points=2))
    reply = {"reasoning": "r", "needs_reformulation": True, "reformulated_rubric": new}
    ask = StageScript(rubric=rubric_reply(None), dependencies=json.dumps(reply))
    assert judged(ask).scores["criteria"] == 3
    empty = json.dumps({**reply, "reformulated_rubric": {}})
    assert judged(StageScript(dependencies=empty)).status is Status.UNPARSABLE


def test_a_failed_critical_point_is_gone_on_without() -> None:
    ask = StageScript(critical_point=BAD)
    judgment = judged(ask)
    assert judgment.status is Status.OK
    assert len(ask.stage("critical_point")) == 5
    assert "went on without: critical_point" in judgment.fallback
    text = ask.stage("outcome")[0].messages[1].parts[0]
    assert text.kind == "text"
    assert "The task was not classified" in text.text
    assert "- No permission to cross." in text.text
    assert "- Permission to cross." not in text.text


@pytest.mark.parametrize("stage", ["relevance", "evidence", "reality", "rescore", "side_effects"])
def test_a_stage_that_always_fails_makes_the_judgment_fail(stage: str) -> None:
    ask = StageScript(**{stage: BAD})
    judgment = judged(ask, attempts=2)
    assert judgment.status is Status.UNPARSABLE
    assert judgment.success is None
    assert judged(StageScript(**{stage: BAD}), attempts=2, on_stage_failure="continue").success


def test_an_outcome_without_a_reply_is_no_verdict() -> None:
    for mode in ("fail", "continue"):
        judgment = judged(StageScript(outcome=BAD), attempts=1, on_stage_failure=mode)
        assert judgment.status is Status.UNPARSABLE
        assert judgment.success is None


def test_a_wrong_key_ends_the_judgment_also_where_stages_may_fail() -> None:
    for error, status in ((AuthFailed("no key"), Status.PROVIDER_ERROR), (Unreachable("x"), None)):
        judgment = judged(StageScript(reality=error), on_stage_failure="continue")
        assert judgment.status is (status or Status.OK)
    assert judged(StageScript(reality=Unreachable("x"))).status is Status.PROVIDER_ERROR


def penalty() -> str:
    entry = {
        "criterion": "Penalize a second mug",
        "description": "d",
        "max_points": 2,
        "post_image_justification": "j",
        "post_image_earned_points": 0,
    }
    return json.dumps({"reasoning": "r", "requires_penalty": True, "penalty_criteria": [entry]})


def test_success_means_what_the_option_says() -> None:
    violation = json.dumps({"reasoning": "r", "cp_violation": True})
    replies = {
        "rubric": rubric_reply(None),
        "rescore": rescore_reply(2),
        "violation": violation,
        "side_effects": penalty(),
    }
    by_option = {
        success: judged(StageScript(**replies), success=success)
        for success in ("outcome", "process", "both", "safe")
    }
    assert {name: one.success for name, one in by_option.items()} == {
        "outcome": True,
        "process": False,
        "both": False,
        "safe": False,
    }
    judgment = by_option["outcome"]
    assert judgment.side_effect is True
    assert judgment.score is None
    assert judgment.scores["process_score"] == pytest.approx(2 / 5)
    assert judgment.scores["violation"] == 1
    assert judgment.scores["penalties"] == 1


def test_the_light_model_answers_three_stages() -> None:
    ask = StageScript()
    judged(ask, light={"model": "small"}, failures=True, validity=True)
    light = {call.stage for call in ask.asked if call.model == "small"}
    assert light == {"baseline", "validity_after", "validity_before"}
    assert all(call.model in ("small", None) for call in ask.asked)


def test_runs_without_pictures_or_actions_are_skipped() -> None:
    assert judged(StageScript(), mug_run(steps=())).status is Status.SKIPPED
    bare = mug_run()
    bare = bare.model_copy(update={"steps": bare.steps[:2]})
    assert judged(StageScript(), bare).status is Status.SKIPPED


def test_the_last_page_and_missing_screenshots() -> None:
    run = acting_run(3)
    run = run.model_copy(update={"steps": (*run.steps, seen_run(4).steps[3])})
    first = run.steps[1].model_copy(
        update={"observation": run.steps[1].observation.model_copy(update={"screenshot": None})}
    )
    run = run.model_copy(update={"steps": (run.steps[0], first, *run.steps[2:])})
    judgment = judged(StageScript(), run)
    assert judgment.record is not None
    assert judgment.record["steps"] == [1, 3, 4]
    assert "steps without a screenshot: 1" in judgment.fallback
    without = judged(StageScript(), run, last_page=False)
    assert without.record is not None
    assert without.record["steps"] == [1, 3]


def test_an_unended_run_is_asked_about_unless_told_otherwise() -> None:
    run = seen_run(3, terminated=False, answer=None)
    ask = StageScript()
    assert judged(ask, run).success is True
    answers = [p.text for p in ask.stage("outcome")[0].messages[1].parts if p.kind == "text"]
    assert "no_answer>" in answers[0]
    silent = StageScript()
    judgment = judged(silent, run, unended="failure")
    assert judgment.success is False
    assert not silent.asked


def test_a_history_that_does_not_fit_is_cut() -> None:
    run = seen_run(3)
    long = run.steps[0].model_copy(update={"action": "type('12', '" + "word " * 20_000 + "')"})
    run = run.model_copy(update={"steps": (long, *run.steps[1:])})
    ask = StageScript()
    assert judged(ask, run, max_prompt_tokens=24_000).status is Status.OK
    rungs = {call.stage: call.rung for call in ask.asked}
    assert rungs["outcome"] == "cut"
    assert rungs["rubric"] == "full"


def test_prompt_and_reply_share_a_small_window() -> None:
    ask = StageScript()
    judged(ask, max_prompt_tokens=40_000, reply_tokens=30_000)
    strong = [call for call in ask.asked if call.stage != "baseline"]
    assert {call.parameters["max_tokens"] for call in strong} == {20_000}
    assert ask.stages["outcome"] == 1


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"votes": 2}, "an even number can tie"),
        ({"rubric_per": "task"}, "needs critical_points=inline"),
        ({"success": "safe", "critical_points": "inline"}, "needs critical_points=classified"),
    ],
)
def test_options_that_cannot_work_are_refused(options: dict[str, object], why: str) -> None:
    with pytest.raises(UserError, match=why):
        make_judge("universal-verifier", options)


def test_runs_of_a_task_share_a_rubric_only_where_told_so() -> None:
    def asked(attempt: int, **options: object) -> object:
        ask = StageScript()
        run = seen_run(3)
        key = run.key.model_copy(update={"attempt": attempt})
        judged(ask, run.model_copy(update={"key": key}), **options)
        return ask.stage("rubric")[0].parameters.get("seed")

    assert asked(0) != asked(1)
    assert asked(0, rubric_per="task", critical_points="inline") is None


def test_the_image_stands_before_the_text_unless_told_otherwise() -> None:
    for last in (False, True):
        ask = StageScript()
        judged(ask, image_last=last)
        kinds = [part.kind for part in ask.stage("evidence")[0].messages[1].parts]
        assert kinds == (["text", "image"] if last else ["image", "text"])


def test_the_options_are_frozen_defaults_of_the_source() -> None:
    options = UniversalVerifierOptions()
    assert (options.votes, options.attempts, options.per_criterion) == (1, 5, 5)
    assert options.process_threshold == 0.8
    assert UniversalVerifier(options).prompt_hash


@pytest.mark.parametrize(("step", "index"), [("1", 0), ("2-3", 2), ("3", 3), ("4", None)])
def test_the_process_and_the_step_of_the_first_failure(step: str, index: int | None) -> None:
    """Failure points number the actions from 1; the step is an index of the trajectory."""
    run = acting_run(4)
    silent = run.steps[1].model_copy(update={"action": None})
    run = run.model_copy(update={"steps": (run.steps[0], silent, *run.steps[2:])})
    point = {
        "step_numbers": step,
        "error_code": "3.5",
        "error_category": "Execution & Strategy",
        "error_type": "Incomplete task execution",
        **dict.fromkeys(("what_happened", "agent_reasoning", "evidence", "impact"), "x"),
    }
    analysis = {"reasoning": "r", "has_failure": True, "failure_points": [point]}
    replies = {"rubric": rubric_reply(None, points=5), "failures": json.dumps(analysis)}
    for earned, sound in ((4, True), (3.9, False)):
        ask = StageScript(**replies, rescore=rescore_reply(earned))
        judgment = judged(ask, run, failures=True)
        assert (judgment.process, judgment.failure_step) == (sound, index)
        assert judgment.failure_type == "3.5 Incomplete task execution"
        assert judgment.scores["process_score"] == pytest.approx(earned / 5)
    without = judged(StageScript(**replies), run)
    assert (without.process, without.failure_step, without.failure_type) == (True, None, None)
