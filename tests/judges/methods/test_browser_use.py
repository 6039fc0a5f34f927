"""browser-use's built-in judge: what it is shown, by which words, and what its reply means."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from tests.judges.http_judging import judged_over_http
from tests.judges.methods.replies import BROWSER_USE, JUDGEMENT
from tests.judges.runs import StagedAsk, mug_run, pictures, seen_run, texts
from tests.llm_server import LlmServer, at
from trajudge.judges.methods.browser_use import BrowserUse, BrowserUseOptions, RunTexts
from trajudge.judges.model import Skipped
from trajudge.trajectories.loaders import open_source
from trajudge.trajectories.model import Observation, Step, Trajectory
from trajudge.trajectories.needs import last
from trajudge.util.errors import UserError


def browser_use(**options: object) -> BrowserUse:
    return BrowserUse(BrowserUseOptions.model_validate(options))


def shown(run: Trajectory, **options: object) -> StagedAsk:
    ask = StagedAsk(verdict=BROWSER_USE)
    asyncio.run(browser_use(**options)(run, ask))
    return ask


def test_the_judgement_is_the_verdict_with_its_flags_and_reason(tmp_path: Path) -> None:
    with LlmServer(text=BROWSER_USE) as server:
        judgment = judged_over_http(server, browser_use(structured=True), seen_run(), tmp_path)
        [asked] = server.seen
    assert (judgment.status, judgment.success, judgment.score) == ("ok", False, None)
    assert judgment.scores == {"impossible": 0, "captcha": 1}
    assert judgment.reasoning == "The cart was never opened.\nA captcha stopped the agent."
    schema = asked.payload["response_format"]["json_schema"]["schema"]
    assert list(schema["properties"]) == list(JUDGEMENT)


@pytest.mark.parametrize(
    "reply",
    ["true", "{}", '{"verdict": "true"}', '{"verdict": true, "reached_captcha": "no"}', "null"],
)
def test_a_reply_without_a_verdict_is_unparsable(tmp_path: Path, reply: str) -> None:
    with LlmServer(text=reply) as server:
        judgment = judged_over_http(server, browser_use(answer="text"), seen_run(), tmp_path)
        assert "response_format" not in server.seen[0].payload
    assert (judgment.status, judgment.success) == ("unparsable", None)


def test_flags_that_are_missing_are_false(tmp_path: Path) -> None:
    with LlmServer(text='{"verdict": true, "failure_reason": null}') as server:
        judgment = judged_over_http(server, browser_use(), seen_run(), tmp_path)
    assert (judgment.success, judgment.reasoning) == (True, "")
    assert judgment.scores == {"impossible": 0, "captcha": 0}


def test_the_last_screenshots_come_after_the_text_in_order_of_time() -> None:
    [asked] = shown(seen_run(13)).asked
    system, user = asked.messages
    assert [part.kind for part in user.parts] == ["text", *["image"] * 10]
    assert [picture.width for picture in pictures([user])] == [8 + index for index in range(3, 13)]
    assert {picture.detail for picture in pictures([user])} == {None}
    assert "10 screenshots of the run follow" in texts([user])[0]
    assert [part.kind for part in system.parts] == ["text"]


def test_a_run_without_screenshots_is_judged_by_its_texts() -> None:
    bare = mug_run(steps=(Step(index=0, action="click('1')"),))
    for run, options in ((bare, {}), (seen_run(), {"representation": "none"})):
        [asked] = shown(run, **options).asked
        assert not pictures(asked.messages)
        assert "\n0 screenshots" in texts(asked.messages)[1]


def test_steps_are_actions_and_the_errors_that_the_next_page_tells() -> None:
    steps = (
        Step(index=0, observation=Observation(url="http://secret.test/"), action="click('1')"),
        Step(
            index=1,
            observation=Observation(page_error="Timeout: no element 1"),
            reasoning="I believe that all is well.",
            action="stop()",
        ),
    )
    [asked] = shown(mug_run(steps=steps)).asked
    prompt = texts(asked.messages)[1]
    assert "Step 1:\nActions: click('1')\nError 1: Timeout: no element 1\n\nStep 2:\n" in prompt
    assert "secret.test" not in prompt
    assert "I believe" not in prompt


def test_what_the_actions_extracted_is_shown_where_it_was_kept() -> None:
    steps = tuple(Step(index=index, action=f"act({index})") for index in range(3))
    results = [["Opened.", "Three lamps <final_result>"], [], "odd"]
    [asked] = shown(mug_run(steps=steps, metadata={"results": results})).asked
    prompt = texts(asked.messages)[1]
    assert "Actions: act(0)\nResult 1: Opened.\nResult 2: Three lamps " in prompt
    assert "Three lamps <final_result>" not in prompt
    assert prompt.count("Result ") == 2
    for odd in (None, [], [None], {"0": ["x"]}):
        [asked] = shown(mug_run(steps=steps, metadata={"results": odd})).asked
        assert "Result " not in texts(asked.messages)[1]


def test_errors_stand_at_the_step_that_had_them_where_that_was_kept() -> None:
    """The next page cannot tell those of the last step, nor of one that had no action."""
    seen = (None, "no element 3\nRate limit", "Timeout")
    steps = tuple(
        Step(index=index, observation=Observation(page_error=error), action=f"act({index})")
        for index, error in enumerate(seen)
    )
    errors = [["no element 3"], ["Rate limit"], ["Timeout", "Closed"]]
    [asked] = shown(mug_run(steps=steps, metadata={"errors": errors})).asked
    assert (
        "Step 1:\nActions: act(0)\nError 1: no element 3\n\nStep 2:\nActions: act(1)\n"
        "Error 1: Rate limit\n\nStep 3:\nActions: act(2)\nError 1: Timeout\nError 2: Closed\n"
    ) in texts(asked.messages)[1]


def test_a_text_has_the_number_of_its_action_and_stands_beside_its_error() -> None:
    steps = (Step(index=0, action="one()\ntwo()\nthree()"),)
    kept = {"results": [["Typed.", None, "Read."]], "errors": [[None, "no element 13"]]}
    [asked] = shown(mug_run(steps=steps, metadata=kept)).asked
    assert "Result 1: Typed.\nError 2: no element 13\nResult 3: Read.\n" in texts(asked.messages)[1]


@pytest.mark.real_data
def test_results_and_errors_of_a_real_history_are_those_that_the_source_lists(
    real_data: Path,
) -> None:
    """But for the last, which is the answer and stands there alone."""
    folder = real_data / "formats" / "browser_use_0_13" / "run1"
    history = json.loads((folder / "AgentHistory.json").read_text(encoding="utf-8"))["history"]
    listed = [
        f"{name} {number}: {result[field]}"
        for item in history
        for number, result in enumerate(item["result"], 1)
        for name, field in (("Result", "extracted_content"), ("Error", "error"))
        if result.get(field) and not result.get("is_done")
    ]
    assert "Error 2: Element with index 13 does not exist" in listed
    (run,) = open_source(str(folder))
    assert isinstance(run, Trajectory)
    [asked] = shown(run).asked
    lines = texts(asked.messages)[1].splitlines()
    assert [line for line in lines if line.startswith(("Result ", "Error "))] == listed


def test_task_steps_and_answer_are_each_cut_from_the_beginning() -> None:
    run = mug_run(goal="g" * 900, answer="a" * 900, steps=(Step(index=0, action="s" * 900),))
    [asked] = shown(run, characters=600).asked
    prompt = texts(asked.messages)[1]
    assert prompt.count("[... text is cut here.]") == 3
    assert "g" * 577 + "[" in prompt
    assert "g" * 578 not in prompt
    assert asked.rung == "full"


def test_a_text_is_cut_from_one_character_too_many() -> None:
    texts_of_run = RunTexts("x" * 30, "y" * 31, "", None)
    assert texts_of_run.cut(30, "~") == RunTexts("x" * 30, "y" * 7 + "~", "", None)


def test_the_packages_prompts_ask_by_a_schema_unless_told_otherwise() -> None:
    def form(**options: str) -> str:
        return BrowserUseOptions.model_validate(options).form

    published = {"prompts": "browser-use", "date": "today"}
    assert [form(), form(answer="schema"), form(**published)] == ["text", "schema", "schema"]
    assert form(**published, answer="text") == "text"
    assert BrowserUseOptions(representation="none").needs.screenshots == ()
    assert BrowserUseOptions(screenshots=4).needs.screenshots == last(4)


def test_what_does_not_fit_is_cut_until_the_model_takes_it(tmp_path: Path) -> None:
    run = seen_run(4, goal="Buy the mug. " * 4_000, answer="Done. " * 4_000)
    with LlmServer(text=BROWSER_USE, script=at({0: "overflow"})) as server:
        judge = browser_use(max_prompt_tokens=14_000)
        judgment = judged_over_http(server, judge, run, tmp_path)
        sizes = [len(asked.prompt) for asked in server.seen]
    assert judgment.status == "ok"
    assert judgment.calls[-1].rung in ("cut", "fewer")
    assert sizes[1] < sizes[0]


def test_the_date_is_told_where_it_is_given() -> None:
    [dated] = shown(seen_run(), date="2026-01-31 12:00 UTC").asked
    [undated] = shown(seen_run()).asked
    assert "It is 2026-01-31 12:00 UTC now. Content with recent dates" in texts(dated.messages)[0]
    assert "- Content with recent dates is real" in texts(undated.messages)[0]


def test_the_ground_truth_comes_from_a_file_by_task_and_makes_another_judge(tmp_path: Path) -> None:
    file = tmp_path / "truth.json"
    file.write_text(json.dumps({"shop.1": "The mug is red.", "other": "x"}))
    [asked] = shown(seen_run(), ground_truth=file).asked
    system, user = texts(asked.messages)
    assert "# Ground truth, above everything else" in system
    assert "<ground_truth>\nThe mug is red.\n</ground_truth>" in user
    with_truth, without = browser_use(ground_truth=file), browser_use()
    file.write_text(json.dumps({"shop.1": "The mug is green."}))
    other = browser_use(ground_truth=file)
    assert len({with_truth.prompt_hash, without.prompt_hash, other.prompt_hash}) == 3
    [plain] = shown(seen_run()).asked
    assert "round truth" not in "".join(texts(plain.messages))


def test_a_task_without_ground_truth_is_skipped_where_there_is_a_file(tmp_path: Path) -> None:
    file = tmp_path / "truth.json"
    file.write_text("{}")
    with pytest.raises(Skipped, match=r"holds no ground truth of task shop\.1"):
        shown(seen_run(), ground_truth=file)


@pytest.mark.parametrize(
    ("content", "said"),
    [("[", "is not JSON"), ("[]", "texts by task"), ('{"a": 1}', "texts by task"), (None, "read")],
)
def test_a_bad_file_is_one_sentence(tmp_path: Path, content: str | None, said: str) -> None:
    file = tmp_path / "truth.json"
    if content is not None:
        file.write_text(content)
    with pytest.raises(UserError, match=said):
        browser_use(ground_truth=file)
