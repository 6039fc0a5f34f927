"""The rubric judge: criteria, relevance, findings; every stage good and bad."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.judges.http_judging import judged_over_http
from tests.judges.methods.replies import CRITERIA, RELEVANCE, answers, findings, rubric_stage_of
from tests.judges.runs import StagedAsk, pictures, png, seen_run, texts
from tests.llm_replies import Incoming
from tests.llm_server import LlmServer
from trajudge.judges.methods.rubric import (
    Criterion,
    Rubric,
    RubricOptions,
    most_relevant,
    parse_findings,
)
from trajudge.judges.model import Judgment, Verdict
from trajudge.judges.prompting import Shot
from trajudge.judges.replies import ParseFailure


def judged(tmp_path: Path, options: dict[str, object] | None = None, **replies: str) -> Judgment:
    judge = Rubric(RubricOptions.model_validate(options or {}))
    with LlmServer(text=answers(**replies)) as server:
        return judged_over_http(server, judge, seen_run(), tmp_path)


def test_gives_outcome_side_effect_and_process_score(tmp_path: Path) -> None:
    judgment = judged(tmp_path)
    assert (judgment.status, judgment.success, judgment.side_effect) == ("ok", True, False)
    assert judgment.scores == {"process_score": 0.75, "outcome": 1.0}
    stages = [call.stage for call in judgment.calls]
    assert stages == ["criteria", "relevance", "relevance", "relevance", "verdict"]


def test_without_screenshots_two_calls_do(tmp_path: Path) -> None:
    judgment = judged(tmp_path, {"representation": "none"})
    assert [call.stage for call in judgment.calls] == ["criteria", "verdict"]
    assert judgment.status == "ok"


def test_a_critical_criterion_that_fails_decides(tmp_path: Path) -> None:
    judgment = judged(tmp_path, verdict=findings(first=0.2, second=1))
    assert judgment.success is False
    assert judgment.scores["outcome"] == 1.0
    assert "critical criteria failed: 1" in judgment.reasoning


def test_a_criterion_that_is_not_critical_does_not(tmp_path: Path) -> None:
    assert judged(tmp_path, verdict=findings(first=1, second=0)).success is True


def test_criteria_are_written_before_the_run_is_seen() -> None:
    """The same call for every run of a task: nothing of the run is in it."""
    ask = StagedAsk(criteria=CRITERIA, relevance=RELEVANCE, verdict=findings())
    other = StagedAsk(criteria=CRITERIA, relevance=RELEVANCE, verdict=findings())
    judge = Rubric(RubricOptions())
    asyncio.run(judge(seen_run(3), ask))
    asyncio.run(judge(seen_run(5, answer="Something else."), other))
    assert ask.stage("criteria") == other.stage("criteria")


@pytest.mark.parametrize(
    ("stage", "reply", "said"),
    [
        ("criteria", "I will not.", "criteria: the reply holds no JSON object"),
        ("criteria", '{"criteria": []}', "criteria: criteria: List should have at least 1 item"),
        ("criteria", '{"criteria": [{"criterion": "x"}]}', "criteria.0.critical: Field required"),
        ("relevance", '{"relevance": [7]}', "screenshot of step 1: the reply gives 1 grades for 2"),
        ("relevance", '{"relevance": [7, 11]}', "screenshot of step 1: relevance.1: "),
        ("verdict", findings(findings=[]), "not one for each of 2 criteria"),
        ("verdict", findings(side_effect_steps=[0]), "step 0 is cited, and the run has 3 steps"),
        (
            "verdict",
            findings(findings=[{"criterion": [1], "steps": [], "score": 1}]),
            "findings.0.criterion: ",
        ),
        ("verdict", findings(outcome="yes"), "outcome: Input should be a valid boolean"),
        ("verdict", findings(first=2), "findings.0.score: "),
    ],
)
def test_a_bad_reply_at_any_stage_is_unparsable(
    tmp_path: Path, stage: str, reply: str, said: str
) -> None:
    judgment = judged(tmp_path, None, **{stage: reply})
    assert judgment.status == "unparsable"
    assert said in judgment.detail
    assert judgment.success is None


def test_a_cited_step_that_does_not_exist_is_unparsable(tmp_path: Path) -> None:
    cited = [
        {"criterion": 1, "steps": [2, 9], "score": 1},
        {"criterion": 2, "steps": [], "score": 1},
    ]
    judgment = judged(tmp_path, verdict=findings(findings=cited))
    assert judgment.status == "unparsable"
    assert judgment.detail == "step 9 is cited, and the run has 3 steps"


@pytest.mark.parametrize("stage", ["criteria", "relevance", "verdict"])
@pytest.mark.parametrize(
    ("fault", "status"),
    [("refusal", "refused"), ("500", "provider_error"), ("length", "truncated")],
)
def test_trouble_at_any_stage_has_its_own_status(
    tmp_path: Path, stage: str, fault: str, status: str
) -> None:
    def script(incoming: Incoming) -> str | None:
        return fault if rubric_stage_of(incoming) == stage else None

    with LlmServer(text=answers(), script=script) as server:
        judgment = judged_over_http(server, Rubric(RubricOptions()), seen_run(), tmp_path)
        assert judgment.status == status
        server.script = None
        asked = server.stats.answered
        if fault == "500":  # what had been answered is not asked again
            assert judged_over_http(server, Rubric(RubricOptions()), seen_run(), tmp_path).success
            assert (
                server.stats.answered - asked
                <= {"criteria": 5, "relevance": 4, "verdict": 1}[stage]
            )


def test_only_the_most_relevant_screenshots_are_shown() -> None:
    grades = [f'{{"relevance": [{first}, {second}]}}' for first, second in ((9, 0), (1, 1), (0, 8))]
    ask = StagedAsk(criteria=CRITERIA, relevance=grades, verdict=findings())
    asyncio.run(Rubric(RubricOptions(per_criterion=1))(seen_run(3), ask))
    messages = ask.stage("verdict")[0].messages
    assert [picture.width for picture in pictures(messages)] == [8, 10]
    assert "at steps 1, 3." in texts(messages)[-1]


def test_among_equally_relevant_ones_the_later_comes_first() -> None:
    shots = [Shot(number, png()) for number in (1, 2, 3)]
    chosen = most_relevant(shots, [[5, 0], [5, 9], [5, 0]], 1)
    assert [shot.number for shot in chosen] == [3, 2]
    every = most_relevant(shots, [[1, 9], [5, 9], [5, 2]], 5)
    assert [shot.number for shot in every] == [3, 2, 1]


@pytest.mark.parametrize(
    ("scores", "success", "told"),
    [
        ((0.5, 0.0), True, "Step 2 puts it in."),
        ((0.49, 1.0), False, "Step 2 puts it in. [critical criteria failed: 1]"),
    ],
)
def test_a_critical_criterion_fails_below_a_half(
    scores: tuple[float, float], success: bool, told: str
) -> None:
    criteria = [Criterion(1, "a", critical=True), Criterion(2, "b", critical=False)]
    assert parse_findings(findings(*scores), criteria, 3) == Verdict(
        success=success,
        side_effect=False,
        scores={"process_score": sum(scores) / 2, "outcome": 1.0},
        reasoning=told,
    )
    rejected = parse_findings(findings(*scores, outcome=False), criteria, 3)
    assert (rejected.success, rejected.reasoning) == (False, "Step 2 puts it in.")
    for number in (0, 4):
        with pytest.raises(ParseFailure, match=f"step {number} is cited, and the run has 3 steps"):
            parse_findings(findings(side_effect_steps=[1, 3, number]), criteria, 3)


@given(
    st.lists(st.one_of(st.integers(), st.booleans(), st.floats(), st.text(max_size=3)), max_size=4),
    st.integers(0, 5),
)
def test_only_steps_of_the_run_are_evidence(cited: list[Any], steps: int) -> None:
    text = json.dumps(
        {
            "findings": [{"criterion": 1, "steps": cited, "score": 1}],
            "side_effect": False,
            "outcome": True,
        }
    )
    real = all(type(number) is int and 1 <= number <= steps for number in cited)
    try:
        assert parse_findings(text, [Criterion(1, "x", True)], steps).success
        assert real
    except ParseFailure:
        assert not real
