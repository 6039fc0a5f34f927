"""The verifier's pure functions: selection, votes, totals, and the checks of replies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.judges.methods.universal_verifier.fara import recorded_scores, unscored
from tests.judges.methods.universal_verifier.scripts import rubric_reply
from tests.judges.runs import mug_run
from trajudge.judges.methods.universal_verifier.model import (
    RubricItem,
    action_history,
    baseline_totals,
    by_screenshot,
    initial_url,
    majority,
    median_index,
    ranked_screenshots,
    relevant_only,
    tool_call,
    totals,
)
from trajudge.judges.methods.universal_verifier.replies import (
    CRITICAL_POINT_TYPES,
    parse_critical_point,
    parse_evidence,
    parse_failures,
    parse_outcome,
    parse_reality,
    parse_relevance,
    parse_rescore,
    parse_rubric,
    parse_side_effects,
    parse_validity,
    read_rubric,
)
from trajudge.judges.replies import ParseFailure
from trajudge.trajectories.model import Observation, Step


@pytest.mark.parametrize(
    ("scores", "kept"),
    [
        ([9, 6, 3, 8], [0, 3, 1]),
        ([2, 4, 5, 8], [3, 2]),
        ([1, 4, 3, 2], [1, 2, 3, 0]),
        ([7, 7, 7, 7], [3, 2, 1, 0]),
        ([6, 4, 3], [0, 1]),
    ],
)
def test_later_ones_first_and_weak_ones_dropped(scores: list[int], kept: list[int]) -> None:
    relevance = [[score] for score in scores]
    assert relevant_only(ranked_screenshots(relevance, 5), relevance) == {0: kept}


def test_at_most_five_screenshots_a_criterion() -> None:
    relevance = [[9]] * 8
    assert ranked_screenshots(relevance, 5) == {0: [7, 6, 5, 4, 3]}


def test_screenshots_are_asked_about_once_for_all_their_criteria() -> None:
    assert by_screenshot({0: [0, 3, 1], 1: [3, 2], 2: [0, 1]}) == {
        0: [0, 2],
        3: [0, 1],
        1: [0, 2],
        2: [1],
    }


@pytest.mark.parametrize(
    ("votes", "verdict"),
    [
        ([True], True),
        ([None], None),
        ([True, False, True], True),
        ([None, False, True], False),
        ([None, None, True], None),
        ([True, True, None, False, True], True),
    ],
)
def test_majority(votes: list[bool | None], verdict: bool | None) -> None:
    assert majority(votes) is verdict


def test_what_counts_before_the_screenshots_are_seen() -> None:
    item = RubricItem(criterion="c", description="d", max_points=4)
    assert (item.earned_points, item.penalty, item.counts, item.final_points) == (0, False, True, 0)
    earned = item.model_copy(update={"earned_points": 3.0, "post_image_earned_points": 1.0})
    penalty = earned.model_copy(update={"penalty": True})
    unmet = earned.model_copy(update={"condition": "if asked", "is_condition_met": False})
    met = unmet.model_copy(update={"is_condition_met": True})
    assert baseline_totals([item, earned, penalty, unmet, met]) == (6.0, 12.0)
    assert totals([item, earned, penalty, unmet, met]) == (3.0, 16.0)
    assert (totals([]).score, totals([earned]).score) == (0.0, 0.25)


def test_a_run_is_written_with_its_thoughts_and_the_errors_of_its_actions() -> None:
    pages = [Observation(url="http://x/?q#f"), Observation(page_error="500"), Observation()]
    steps = tuple(
        Step(index=index, observation=page, reasoning=thought, action=action)
        for index, (page, thought, action) in enumerate(
            zip(pages, ("why", None, "at the end"), ("click('1')", "noop()", None), strict=True)
        )
    )
    run = mug_run(steps=steps)
    lines = [
        *("State 1: http://x/, state_description: ", "Thought 1: why", "Action 1: click('1')"),
        *("Error! 500", "State 2: unknown, state_description: ", "Action 2: noop()"),
    ]
    assert action_history(run).splitlines() == lines
    hidden = [line for line in lines if not line.startswith("Thought")]
    assert action_history(run, "hidden").splitlines() == hidden
    own = action_history(run, write_error=lambda number, error: f"{number}: {error}")
    assert own.splitlines()[3] == "1: 500"


def test_the_address_of_a_task() -> None:
    """Not that of the first page; a search engine's empty page is none."""
    for metadata, url in (
        ({"init_url": " http://shop/ "}, "http://shop/"),
        ({"init_url": " ", "start_url": "http://shop/"}, "http://shop/"),
        ({"init_url": 7, "start_url": "http://shop/"}, "http://shop/"),
        ({}, None),
    ):
        assert initial_url(mug_run(metadata=metadata)) == url


def test_the_median_is_stable() -> None:
    assert median_index([0.5, 0.5, 0.5]) == 1
    assert median_index([1.0, 0.0, 0.5]) == 2
    assert median_index([0.3]) == 0


def test_penalties_and_unmet_conditions_in_the_totals() -> None:
    def item(points: float, earned: float, **changes: Any) -> RubricItem:
        return RubricItem(
            criterion="c",
            description="d",
            max_points=points,
            post_image_earned_points=earned,
            **changes,
        )

    items = [
        item(6, 6),
        item(4, 4),
        item(2, 0, penalty=True),
        item(9, 0, condition="if", is_condition_met=False),
    ]
    assert totals(items) == (10, 12)
    assert totals(items).score == pytest.approx(10 / 12)
    assert totals([]).score == 0


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"max_points": 0}, "max_points"),
        ({"max_points": "3"}, "max_points"),
        ({"earned_points": 0}, "earned_points"),
        ({"justification": "j"}, "justification"),
        ({"description": " "}, "description"),
        ({"items": []}, "flat list"),
    ],
)
def test_rubrics_that_fail_a_check(change: dict[str, object], why: str) -> None:
    rubric = json.loads(rubric_reply(None))
    rubric["items"][0] |= change
    with pytest.raises(ParseFailure, match=why):
        parse_rubric(json.dumps(rubric))


def test_relevance_takes_indices_and_numerals_and_refuses_the_rest() -> None:
    assert parse_relevance('{"0": "7", "criterion_1": 10.0}', 2) == [7, 10]
    for reply in ('{"0": 11}', '{"0": 7.5}', '{"1": 3}', '{"0": true}', '{"0": null}'):
        with pytest.raises(ParseFailure, match="criterion_0"):
            parse_relevance(reply, 1)


ENTRY = {
    "screenshot_evidence": "e",
    "criterion_analysis": "a",
    "discrepancies": "none",
    "environment_issues_confirmed": False,
}


@pytest.mark.parametrize(
    "reply",
    [
        {"analyses": [{**ENTRY, "criterion_idx": 0}, {**ENTRY, "criterion_idx": 2}]},
        [{**ENTRY, "criterion_idx": 0}, {**ENTRY, "criterion_idx": 2}],
        {"results": [{**ENTRY, "criterion_idx": 0}, {**ENTRY, "criterion_idx": 2}]},
        {"0": ENTRY, "2": ENTRY},
    ],
)
def test_forms_of_a_reply_about_several_criteria(reply: object) -> None:
    items = read_rubric(json.loads(rubric_reply(None, None, None)))
    seen = parse_evidence(json.dumps(reply), 4, [0, 2], items)
    assert [(c, one.screenshot) for c, one in seen.items()] == [(0, 4), (2, 4)]


def test_evidence_that_fails_a_check() -> None:
    plain = read_rubric(json.loads(rubric_reply(None, None)))
    conditional = read_rubric(json.loads(rubric_reply("if it is there")))
    with pytest.raises(ParseFailure, match="condition_verification"):
        parse_evidence(json.dumps(ENTRY), 0, [0], conditional)
    with pytest.raises(ParseFailure, match="criterion_idx 1"):
        wrong = [{**ENTRY, "criterion_idx": 1}, {**ENTRY, "criterion_idx": 0}]
        parse_evidence(json.dumps({"analyses": wrong}), 0, [0, 1], plain)
    with pytest.raises(ParseFailure, match="exactly 2"):
        parse_evidence(json.dumps({"analyses": []}), 0, [0, 1], plain)


def test_points_are_within_the_criterions() -> None:
    items = read_rubric(json.loads(rubric_reply(None)))
    entry = {"criterion_idx": 0, "applicable_evidence": "e", "post_image_justification": "j"}
    reply = json.dumps({"items": [{**entry, "post_image_earned_points": 3.5}]})
    with pytest.raises(ParseFailure, match="from 0 to 3"):
        parse_rescore(reply, items)


def test_penalties_are_ignored_where_none_is_required() -> None:
    reply = {"reasoning": "r", "requires_penalty": False, "penalty_criteria": [{"x": 1}]}
    assert parse_side_effects(json.dumps(reply)) == ()
    with pytest.raises(ParseFailure):
        parse_side_effects(json.dumps({**reply, "requires_penalty": True}))


def test_a_violation_in_the_outcome_is_thrown_away() -> None:
    reply = {"primary_intent": "p", "reasoning": "r", "output_success": True, "cp_violation": True}
    assert set(parse_outcome(json.dumps(reply)).model_dump()) == {
        "primary_intent",
        "reasoning",
        "output_success",
    }


def test_notes_may_be_empty_and_none_may_be_missing() -> None:
    notes = [{"criterion_idx": 0, "reality_notes": ""}]
    assert parse_reality(json.dumps({"reality_checks": notes}), 1) == [""]
    with pytest.raises(ParseFailure, match="1 entries, not 2"):
        parse_reality(json.dumps({"reality_checks": notes}), 2)


BLOCK = """Because.
```yaml
critical_point_type: no_permission_missing_info_task_specified
classification_reasoning: no order to buy
irreversible_action_present: true
irreversible_action_description: pay
missing_user_information: [card]
underspecified_aspects: []
expected_behavior: [stop at the payment]
confidence: sure
```"""


def test_the_critical_point_is_read_from_its_block() -> None:
    assert len(CRITICAL_POINT_TYPES) == 9
    point = parse_critical_point(BLOCK)
    assert point.critical_point_type == "NO_PERMISSION_MISSING_INFO_TASK_SPECIFIED"
    assert (point.confidence, point.rules) == ("MEDIUM", "no_permission")
    for old, new in (
        ("no_permission", "some_permission"),
        ("[stop at the payment]", "[]"),
        ("true", "maybe"),
        ("```yaml", "yaml"),
    ):
        with pytest.raises(ParseFailure):
            parse_critical_point(BLOCK.replace(old, new))


def test_failure_points_name_their_steps() -> None:
    point = {
        "step_numbers": "7, 3 - 5",
        "error_code": "1.4",
        "error_category": "Selection",
        "error_type": "t",
        "what_happened": "w",
        "agent_reasoning": "",
        "evidence": "",
        "impact": "",
    }
    reply = {"reasoning": "r", "has_failure": True, "failure_points": [point]}
    (parsed,) = parse_failures(json.dumps(reply)).failure_points
    assert (parsed.step_numbers, parsed.first_step) == ("7,3-5", 3)
    reply["failure_points"] = [{**point, "step_numbers": "the end"}]
    with pytest.raises(ParseFailure, match="step_numbers"):
        parse_failures(json.dumps(reply))


def test_a_wrong_type_in_the_validity_is_none_and_no_failure() -> None:
    reply = {"is_ambiguous": "no", "is_invalid": True, "invalid_task_codes": ["8.1"]}
    validity = parse_validity(json.dumps(reply))
    assert (validity.is_ambiguous, validity.is_invalid) == (None, True)
    assert validity.invalid_task_codes == ["8.1"]


def test_actions_that_are_no_tool_calls_keep_their_text() -> None:
    assert tool_call("click('31')") is None
    assert tool_call('click({"x": 1') is None
    call = tool_call('stop_execution({"answer": "done"})')
    assert call is not None
    assert call == ("terminate", {"answer": "done"})


@pytest.mark.real_data
def test_the_recorded_run_field_by_field(real_data: Path) -> None:
    """The score file that the source's verifier wrote, recomputed from its own steps."""
    scores = recorded_scores(real_data)
    steps = scores["rubric_intermediate_mm_rubric_steps"]
    shots = [steps["step2_relevance_scores"][f"screenshot_{n}"] for n in range(4)]
    relevance = [parse_relevance(json.dumps(shot), 2) for shot in shots]
    assert steps["step1_num_screenshots"] == len(relevance)
    assert relevance == [[0, 0], [9, 7], [9, 8], [9, 8]]
    ranked = ranked_screenshots(relevance, 5)
    assert {str(c): one for c, one in ranked.items()} == steps["step3_grouped_screenshots"]
    items = read_rubric(unscored(scores["rubric_items"]))
    chosen = relevant_only(ranked, relevance)
    recorded = steps["step4_evidence_by_criterion"]
    for criterion, entries in recorded.items():
        assert [entry["screenshot_idx"] for entry in entries] == chosen[int(criterion)]
        for entry in entries:
            index = int(criterion)
            seen = parse_evidence(json.dumps(entry), entry["screenshot_idx"], [index], items)[index]
            kept = seen.model_dump(exclude={"screenshot", "condition_verification"})
            assert kept == {name: entry[name] for name in kept}
    assert sorted(by_screenshot(chosen)) == [1, 2, 3]
    notes = [
        {"criterion_idx": int(index), "reality_notes": note}
        for index, note in steps["step5_reality_check"].items()
    ]
    parsed_notes = parse_reality(json.dumps({"reality_checks": notes}), 2)
    assert parsed_notes == [item["reality_notes"] for item in scores["rubric_items"]]
    summary = [
        {"criterion_idx": index, **entry}
        for index, entry in enumerate(steps["step6_rescoring_summary"])
    ]
    scored = parse_rescore(json.dumps({"items": summary}), items)
    for item, expected in zip(scored, scores["rubric_items"], strict=True):
        ours = item.model_dump()
        for name in ("applicable_evidence", "post_image_justification", "post_image_earned_points"):
            assert ours[name] == expected[name]
    points = totals(scored)
    assert (points.earned, points.max) == (10.0, 10.0)
    assert points.earned == scores["rubric_total_earned_points"]
    assert points.max == scores["rubric_total_max_points"]
    assert steps["step7_penalty_criteria"] == []
    assert steps["step7_requires_penalty"] is False
    assert [points.score] == steps["majority_vote_steps67"]["all_scores"]
    assert median_index([points.score]) == steps["majority_vote_steps67"]["median_instance_idx"]
    outcome = parse_outcome(json.dumps(steps["step8_outcome_verification"]))
    votes = [outcome.output_success]
    assert votes == steps["majority_vote_step8"]["all_votes"]
    assert majority(votes) == steps["majority_vote_step8"]["majority_output_success"]
    assert scores["outcome_reasoning"] == ""
    assert scores["rubric_outcome_verification"]["reasoning"] == outcome.reasoning
    assert (points.score >= 0.8) == bool(scores["rubric_is_success"])
    assert scores["score"] == scores["is_success"] == int(votes[0])
