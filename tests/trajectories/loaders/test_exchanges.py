"""Logs of what a program sent to the chat and messages APIs and of what it got, in their order."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from tests.trajectories.loaders import conversations as made
from trajudge.trajectories.model import Trajectory

Log = list[dict[str, Any]]
SYSTEM = {"role": "system", "content": "You act in a browser."}


def _picture(colour: str) -> dict[str, Any]:
    url = f"data:image/png;base64,{made.picture(colour)}"
    return {"type": "image_url", "image_url": {"url": url}}


def _user(goal: str, *more: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": goal}, *more]}


def _completion(**message: Any) -> dict[str, Any]:
    from openai.types.chat import ChatCompletion

    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "stop"}
    common = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m"}
    return ChatCompletion.model_validate({**common, "choices": [choice]}).model_dump(mode="json")


def _chat(goal: str = "Buy tea") -> Log:
    """Two turns; the second request no longer holds the first one's picture."""
    call = {"id": "c", "type": "function", "function": {"name": "go", "arguments": "{}"}}
    called = {"role": "assistant", "tool_calls": [call]}
    result = {"role": "tool", "tool_call_id": "c", "content": "A page"}
    sent = [SYSTEM, _user(goal), called, result, {"role": "user", "content": [_picture("green")]}]
    return [
        {"model": "m", "messages": [SYSTEM, _user(goal, _picture("red"))]},
        _completion(content=None, tool_calls=[call]),
        {"model": "m", "messages": sent},
        _completion(content="Bought."),
    ]


def _anthropic() -> Log:
    from anthropic.types import Message

    usage = {"input_tokens": 1, "output_tokens": 1}
    common = {"type": "message", "role": "assistant", "model": "m", "usage": usage}
    blocks = [[made.tool_use("a", action="screenshot")], [{"type": "text", "text": "Bought."}]]
    replies = [
        Message.model_validate({"id": f"msg_{at}", "content": content, **common}).model_dump(
            mode="json"
        )
        for at, content in enumerate(blocks)
    ]
    again = [_user("Buy tea"), {"role": "assistant", "content": blocks[0]}]
    again.append({"role": "user", "content": [made.tool_result("a", made.shown("blue"))]})
    return [
        {"model": "m", "system": "Act.", "messages": [_user("Buy tea")]},
        replies[0],
        {"model": "m", "system": "Act.", "messages": again},
        replies[1],
    ]


def _in_pairs(log: Log) -> Log:
    pairs = zip(log[::2], log[1::2], strict=True)
    return [{"request": request, "response": response} for request, response in pairs]


def _merged(log: Log) -> Log:
    return [request | response for request, response in zip(log[::2], log[1::2], strict=True)]


def _sent_again(log: Log) -> Log:
    return [*log[:2], log[2], _completion(content="Not read."), *log[2:]]


@pytest.mark.parametrize("name", ["log.json", "log.jsonl"])
@pytest.mark.parametrize("form", [list, _in_pairs, _merged, _sent_again])
def test_a_log_of_chat_is_one_run(tmp_path: Path, name: str, form: Any) -> None:
    run = made.load_one(made.write(tmp_path / "shop" / name, form(_chat())))
    assert run.key.agent == "m"
    assert (run.goal, run.answer, run.truncated) == ("Buy tea", "Bought.", False)
    assert [
        (step.action, step.observation.axtree, made.colour(step.observation.screenshot))
        for step in run.steps
    ] == [("go({})", None, "red"), (None, "A page", "green")]


@pytest.mark.parametrize("name", ["log.json", "log.jsonl"])
@pytest.mark.parametrize("form", [list, _in_pairs])
def test_a_log_of_anthropics_is_one_run(tmp_path: Path, name: str, form: Any) -> None:
    run = made.load_one(made.write(tmp_path / name, form(_anthropic())))
    assert (run.goal, run.answer, made.warnings(run)) == ("Buy tea", "Bought.", [])
    assert [step.action for step in run.steps] == ['computer({"action": "screenshot"})', None]
    assert made.colour(run.final.screenshot) == "blue"


def _responses() -> Log:
    call = {"type": "function_call", "id": "f", "call_id": "c", "name": "go", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "c", "output": "A page"}
    content = [{"type": "output_text", "text": "Bought."}]
    said = {"type": "message", "id": "m", "role": "assistant", "content": content}
    common = {"object": "response", "model": "m"}
    return [
        {"model": "m", "input": "Buy tea"},
        {"id": "resp_1", **common, "output": [call]},
        {"model": "m", "input": [output], "previous_response_id": "resp_1"},
        {"id": "resp_2", **common, "output": [said]},
    ]


@pytest.mark.parametrize("name", ["log.json", "log.jsonl"])
@pytest.mark.parametrize("form", [list, _in_pairs, _merged])
def test_a_log_of_responses_is_one_run(tmp_path: Path, name: str, form: Any) -> None:
    run = made.load_one(made.write(tmp_path / name, form(_responses())))
    assert (run.goal, run.answer, run.truncated) == ("Buy tea", "Bought.", False)
    assert [(step.action, step.observation.axtree) for step in run.steps] == [
        ("go({})", None),
        (None, "A page"),
    ]


@pytest.mark.parametrize("log", [_chat, _anthropic, _responses])
@pytest.mark.parametrize("name", ["log.json", "log.jsonl"])
def test_a_log_that_breaks_off_before_a_response_is_one_run(
    tmp_path: Path, name: str, log: Callable[[], Log]
) -> None:
    run = made.load_one(made.write(tmp_path / name, log()[:-1]))
    assert (run.goal, run.answer, len(run.steps)) == ("Buy tea", None, 2)
    assert run.steps[0].action and run.steps[1].action is None


@pytest.mark.parametrize("name", ["log.json", "log.jsonl"])
def test_another_task_in_a_log_is_another_run(tmp_path: Path, name: str) -> None:
    loaded = made.load(made.write(tmp_path / name, [*_chat(), *_chat("Buy a lamp")]))
    runs = [run for run in loaded if isinstance(run, Trajectory)]
    assert [run.goal for run in runs] == ["Buy tea", "Buy a lamp"]
    assert [run.answer for run in runs] == ["Bought.", "Bought."]


@pytest.mark.parametrize("name", ["all.json", "all.jsonl"])
def test_conversations_without_responses_stay_apart(tmp_path: Path, name: str) -> None:
    loaded = made.load(made.write(tmp_path / name, [{"messages": made.anthropic()}] * 2))
    assert [run.key.task_id for run in loaded if run.key] == ["all-1", "all-2"]


@pytest.mark.parametrize("name", ["all.json", "all.jsonl"])
@pytest.mark.parametrize("at", [0, 1, 2])
def test_exchanges_beside_other_records_are_joined(tmp_path: Path, name: str, at: int) -> None:
    """A file may hold logs of several APIs and conversations: each run has its goal, which only the
    request holds, and its answer, which only the response holds."""
    other = [{"task_id": "lamp", "messages": made.anthropic("Buy a lamp")}]
    logs = [_responses(), _chat("Buy milk")]
    loaded = made.load(made.write(tmp_path / name, [*chain(*logs[:at], other, *logs[at:])]))
    runs = [run for run in loaded if isinstance(run, Trajectory)]
    read = [(run.goal, run.answer, len(run.steps)) for run in runs]
    expected = [("Buy tea", "Bought.", 2), ("Buy milk", "Bought.", 2)]
    assert len(loaded) == 3 and "lamp" in {run.key.task_id for run in runs}
    assert read == [*expected[:at], ("Buy a lamp", "Done.", 3), *expected[at:]]


def test_an_object_without_a_conversation_does_not_part_exchanges(tmp_path: Path) -> None:
    log = [{"note": "first"}, *_chat(), {"note": "last"}]
    first, run, last = made.load(made.write(tmp_path / "log.json", log))
    assert isinstance(run, Trajectory) and (run.goal, run.answer) == ("Buy tea", "Bought.")
    assert [
        not isinstance(one, Trajectory) and "no turn of an agent" in one.reason
        for one in (first, last)
    ] == [True, True]
