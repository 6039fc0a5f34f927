"""Message logs of three APIs: the samples, and traps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.trajectories.loaders import conversations as made
from trajudge.trajectories.loaders.messages import LEAKS
from trajudge.trajectories.model import Trajectory, Unreadable


@pytest.fixture
def samples(real_data: Path) -> Path:
    return real_data / "formats" / "message_logs"


@pytest.mark.real_data
def test_what_the_samples_hold(samples: Path) -> None:
    first = made.load_one(samples / "anthropic_messages.json")
    assert [made.colour(step.observation.screenshot) for step in first.steps] == [
        None, "red", "green"
    ]  # fmt: skip
    assert first.steps[0].reasoning == "First a screenshot.\nI take a screenshot."
    assert first.final.page_error == "no focus"
    responses = made.load_one(samples / "openai_responses.json")
    assert responses.steps[1].observation.url == "http://shop.example/"
    assert len(responses.steps) == 4
    chat = made.load_one(samples / "openai_chat.json")
    assert chat.steps[0].action == 'click({"bid": "12"})\nfill({"bid": "12", "value": "lamp")'
    assert made.warnings(chat) == ["The arguments of a call of fill are no JSON."]
    assert (len(chat.steps), made.colour(chat.final.screenshot)) == (2, "blue")
    for run in (first, responses, chat):
        assert (run.goal, run.terminated) == ("How many lamps cost less than $20?", True)
        assert run.answer == "Three lamps cost less than $20."
    lines = [run for run in made.load(samples / "openai_chat.jsonl") if isinstance(run, Trajectory)]
    assert [(str(run.key), run.official_reward) for run in lines] == [
        ("messages/mine/task-0", 0.0), ("messages/mine/task-1", 1.0)
    ]  # fmt: skip
    assert len(made.load(samples)) == 5


def _one(tmp_path: Path, *messages: object, **beside: Any) -> Trajectory:
    return made.load_one(made.write(tmp_path / "run.json", {"messages": [*messages], **beside}))


def test_results_belong_to_their_calls_whatever_their_order(tmp_path: Path) -> None:
    user, *_ = made.anthropic()
    calls = [made.tool_use("a", action="type"), made.tool_use("b", action="key")]
    results = [made.tool_result("b", made.shown("green")), made.tool_result("a", made.shown("red"))]
    run = _one(
        tmp_path, user,
        {"role": "assistant", "content": calls}, {"role": "user", "content": results},
    )  # fmt: skip
    assert made.colour(run.final.screenshot) == "green"  # of the later call
    assert (run.answer, run.truncated, run.terminated) == (None, True, False)
    assert made.warnings(run) == []


def test_calls_and_results_without_the_other_are_said(tmp_path: Path) -> None:
    user, call, *_ = made.anthropic()
    stray = {"role": "user", "content": [made.tool_result("zzz", made.shown("blue"))]}
    run = _one(tmp_path, user, call, stray, {"role": "assistant", "content": "Done."})
    assert made.colour(run.final.screenshot) == "blue"
    assert made.warnings(run) == [
        "A call of computer has no result.",
        "A result names no call: 'zzz'.",
    ]
    assert run.answer == "Done."


@pytest.mark.parametrize(
    ("block", "problem"),
    [
        (
            {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}},
            "a.png', which",
        ),
        ({"type": "image", "source": {"type": "file", "file_id": "file_1"}}, "given as 'file_1'"),
        ({"type": "input_image", "file_id": "file-7"}, "given as 'file-7'"),
        ({"type": "image_url", "image_url": {"url": "/etc/passwd"}}, "which is not fetched"),
        ({"type": "image_url", "image_url": {"url": "data:image/png;base64,!!!"}}, "is no base64"),
        ({"type": "image", "source": {"type": "base64", "data": "aGk="}}, "is not a PNG"),
    ],
)
def test_pictures_that_are_elsewhere_or_none(
    tmp_path: Path, block: dict[str, Any], problem: str
) -> None:
    user, call, _, *rest = made.anthropic()
    run = _one(
        tmp_path, user, call, {"role": "user", "content": [made.tool_result("a", block)]}, *rest
    )
    assert problem in str(made.colour(run.steps[1].observation.screenshot))
    assert len(made.warnings(run)) == 1


def test_a_picture_cut_out_of_a_long_conversation_is_no_page(tmp_path: Path) -> None:
    user, call, _, *rest = made.anthropic()
    cut = made.tool_result("a", {"type": "text", "text": "[image removed]"})
    run = _one(tmp_path, user, call, {"role": "user", "content": [cut]}, *rest)
    assert "removed" in str(made.colour(run.steps[1].observation.screenshot))
    assert run.steps[1].observation.axtree is None
    assert made.warnings(run) == ["The picture of step 2 was removed."]


def test_a_goal_that_is_repeated_is_no_page(tmp_path: Path) -> None:
    user, call, result, *rest = made.anthropic("Buy tea")
    run = _one(tmp_path, user, call, result, user, *rest, goal="Buy tea")
    assert [step.observation.axtree for step in run.steps] == [None] * 3
    told = _one(tmp_path, user, call, result, *rest, goal="Buy green tea")
    assert (told.goal, told.steps[0].observation.axtree) == ("Buy green tea", "Buy tea")


def test_words_without_a_call_are_reasoning_of_the_next_step(tmp_path: Path) -> None:
    user, *rest = made.anthropic()
    thought = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
    hidden = {"type": "redacted_thinking", "data": "c2VjcmV0"}
    words = {"role": "assistant", "content": [thought, hidden, {"type": "text", "text": "First."}]}
    run = _one(tmp_path, {"role": "system", "content": "Be good."}, user, words, *rest)
    assert run.steps[0].reasoning == "Hm.\nFirst."
    assert made.warnings(run) == ["Some of the agent's thinking is redacted."]
    assert "c2" not in run.model_dump_json(exclude={"steps": {"__all__": {"observation"}}})


@pytest.mark.parametrize(
    ("entry", "warning"),
    [
        ({"type": "compaction", "encrypted_content": "x"}, "The conversation was compacted"),
        (
            {"role": "assistant", "content": [{"type": "compaction"}]},
            "The conversation was compact",
        ),
        ({"type": "item_reference", "id": "x"}, "Entries of the type 'item_reference' are not"),
        ("words", "An entry of the conversation is no object."),
    ],
)
def test_what_is_not_read_is_said(tmp_path: Path, entry: object, warning: str) -> None:
    user, *rest = made.anthropic()
    run = _one(tmp_path, user, entry, *rest)
    [said] = made.warnings(run)
    assert said.startswith(warning)
    assert run.model_copy(update={"metadata": {"warnings": []}}) == _one(tmp_path, user, *rest)


def test_a_thought_under_two_names_is_one(tmp_path: Path) -> None:
    user = {"role": "user", "content": "Buy tea"}
    thought = {"reasoning_content": "Hm.", "reasoning": "Hm."}
    run = _one(tmp_path, user, {"role": "assistant", "content": "Yes", **thought})
    assert run.steps[0].reasoning == "Hm."


def test_a_finishing_call_gives_the_answer(tmp_path: Path) -> None:
    user = {"role": "user", "content": "Buy tea"}
    call = {"id": "1", "function": {"name": "finish", "arguments": '{"answer": "Bought."}'}}
    run = _one(tmp_path, user, {"role": "assistant", "content": "So.", "tool_calls": [call]})
    assert (run.answer, run.terminated, run.truncated) == ("Bought.", True, False)
    assert run.steps[-1].action == 'finish({"answer": "Bought."})'


def test_a_finishing_call_may_give_a_number(tmp_path: Path) -> None:
    user = {"role": "user", "content": "How many lamps?"}
    call = {"id": "1", "function": {"name": "finish", "arguments": '{"text": null, "answer": 3}'}}
    assert _one(tmp_path, user, {"role": "assistant", "tool_calls": [call]}).answer == "3"


def test_a_question_and_an_answer_alone_have_no_action(tmp_path: Path) -> None:
    user = {
        "role": "user",
        "content": [{"type": "text", "text": "One"}, {"type": "text", "text": "two?"}],
    }
    run = _one(tmp_path, user, {"role": "assistant", "content": "Yes"})
    assert (run.goal, run.answer, len(run.steps)) == ("One\ntwo?", "Yes", 1)
    assert run.steps[0].action is None


def test_tools_of_the_server_are_steps_too(tmp_path: Path) -> None:
    """Their results stand in the agent's own message."""
    found = {
        "type": "web_search_result",
        "title": "Tea",
        "url": "http://tea",
        "encrypted_content": "x",
    }
    blocks = [
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "tea"}},
        {"type": "web_search_tool_result", "tool_use_id": "s", "content": [found]},
        {"type": "text", "text": "Tea costs $2."},
    ]
    run = _one(
        tmp_path, {"role": "user", "content": "Tea?"}, {"role": "assistant", "content": blocks}
    )
    assert [step.action for step in run.steps] == ['web_search({"query": "tea"})', None]
    assert "http://tea" in str(run.final.axtree)
    assert "encrypted" not in str(run.final.axtree)
    assert run.answer == "Tea costs $2."


def _response(number: int, *output: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"id": f"resp_{number}", "object": "response", "model": "m", "output": [*output], **more}


def _said(text: str) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text}]
    return {"type": "message", "id": f"msg_{text}", "role": "assistant", "content": content}


CALL = {"type": "function_call", "id": "f", "call_id": "c", "name": "go", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "c", "output": "A page"}
USER = {"role": "user", "content": "Buy tea"}


@pytest.mark.parametrize(
    "value",
    [
        [_response(1, CALL, input=[USER]), _response(2, _said("Yes"), input=[OUTPUT])],
        [_response(1, CALL, input="Buy tea"), _response(2, _said("Yes"), input=[OUTPUT])],
        [_response(1, CALL, input=[USER]), _response(2, _said("Yes"), input=[USER, CALL, OUTPUT])],
        {"input": [USER, CALL, OUTPUT], "output": [_said("Yes")]},
        [USER, CALL, OUTPUT, _said("Yes")],
        {"conversation": [USER, CALL, OUTPUT, _said("Yes")]},
    ],
)
def test_requests_and_responses_are_one_conversation(tmp_path: Path, value: object) -> None:
    run = made.load_one(made.write(tmp_path / "shop.json", value))
    assert (run.raw_task_id, run.goal, run.answer) == ("shop", "Buy tea", "Yes")
    assert [(s.action, s.observation.axtree) for s in run.steps] == [
        ("go({})", None),
        (None, "A page"),
    ]


def test_lines_may_be_messages_and_a_list_may_be_runs(tmp_path: Path) -> None:
    lines = made.load_one(made.write(tmp_path / "run.jsonl", made.anthropic()))
    assert (len(lines.steps), lines.answer) == (3, "Done.")
    runs = made.load(made.write(tmp_path / "many.json", [{"messages": made.anthropic()}] * 2))
    assert [run.key.task_id for run in runs if run.key] == ["many-1", "many-2"]


def test_an_attempt_that_is_written_as_text_is_that_attempt(tmp_path: Path) -> None:
    record = {"messages": made.anthropic(), "id": "t"}
    attempts = ({**record, "attempt": text} for text in ("1", "0"))
    runs = made.load(made.write(tmp_path / "a.jsonl", [*attempts]))
    assert [run.key.attempt for run in runs if isinstance(run, Trajectory)] == [1, 0]


def test_keys_and_attempts(tmp_path: Path) -> None:
    record = {"messages": made.anthropic(), "id": 7, "model": "m", "success": True}
    runs = made.load(made.write(tmp_path / "a.jsonl", [record, record, {**record, "attempt": 5}]))
    assert [str(run.key) for run in runs] == ["messages/m/7", "messages/m/7#1", "messages/m/7#5"]
    nameless = made.write(tmp_path / "agent" / "task-1" / "messages.json", made.anthropic())
    [run] = made.load(nameless)
    assert str(run.key) == "messages/agent/task-1"
    assert [str(one.key) for one in made.load(tmp_path / "agent")] == ["messages/agent/task-1"]


def test_a_bad_line_costs_its_run_alone(tmp_path: Path) -> None:
    file = made.write(tmp_path / "a.jsonl", [{"messages": made.anthropic()}] * 2)
    file.write_text(file.read_text().replace('{"messages"', '{"messages" no', 1) + "[]\n{}\n")
    bad, good, third, fourth = made.load(file)
    assert isinstance(good, Trajectory)
    assert all(isinstance(one, Unreadable) for one in (bad, third, fourth))
    assert [one.source for one in (bad, fourth) if isinstance(one, Unreadable)] == [
        f"{file}:1", f"{file}:4"
    ]  # fmt: skip


@pytest.mark.parametrize("name", LEAKS)
def test_what_says_the_result_is_the_reward_and_nothing_else(tmp_path: Path, name: str) -> None:
    plain = _one(tmp_path, *made.anthropic())
    told = _one(tmp_path, *made.anthropic(), **{name: 0.5, "expected": "SECRET"})
    assert told.official_reward == 0.5
    assert told.model_copy(update={"official_reward": None}) == plain
    marked = _one(tmp_path, *made.anthropic(), **{name: "X" * 40})
    assert made.warnings(marked) == [f"The {name} is not read: the text is no number."]
    assert marked.model_copy(update={"metadata": plain.metadata}) == plain


@pytest.mark.parametrize(
    ("stated", "reward"),
    [("0.5", 0.5), ("1", 1.0), ("True", 1.0), ("false", 0.0), ("nan", None), ("yes", None)],
)
def test_a_reward_that_is_written_as_text_is_read(
    tmp_path: Path, stated: str, reward: float | None
) -> None:
    assert _one(tmp_path, *made.anthropic(), score=stated).official_reward == reward


@pytest.mark.parametrize("name", ["id", "agent", "benchmark"])
def test_a_name_of_megabytes_is_none(tmp_path: Path, name: str) -> None:
    record = {"messages": made.anthropic(), name: "a" * 2**20}
    [run] = made.load(made.write(tmp_path / "a.json", record))
    assert isinstance(run, Unreadable)
    assert len(run.reason) < 100


def test_what_is_huge_is_refused_before_it_is_built(tmp_path: Path) -> None:
    for count, sentence in ((30_000, "more than 20,000 entries"), (400_000, "more than 300,000")):
        path = tmp_path / "a.json"
        path.write_text('{"messages": [' + '{"role": "user"},' * count + "{}]}")
        [run] = made.load(path)
        assert isinstance(run, Unreadable)
        assert sentence in run.reason
    page = "function a() { b[0] }" * 200_000  # of a text nothing is built
    records = [{"role": "user", "content": page}, {"role": "assistant", "content": "Yes"}]
    assert made.load_one(made.write(path, records)).answer == "Yes"
