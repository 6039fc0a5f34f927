"""Message logs of other makers: their formats, their SDKs and exchanges."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from tests.trajectories.loaders import conversations as made
from trajudge.trajectories.loaders import detect_kind
from trajudge.trajectories.model import Trajectory, Unreadable

RECORDED = Path(__file__).parent / "recorded_formats"
GOAL, ANSWER = "How many items are in the cart?", "The cart holds 2 items."
CALL = {"name": "click", "arguments": {"bid": "12"}}
FAILED = {"name": "scroll", "arguments": {"bid": "9"}}
SHAREGPT = {
    "llama_factory": [
        ("system", "Be exact."),
        ("human", GOAL),
        ("gpt", "I open the cart."),
        ("function_call", json.dumps(CALL)),
        ("observation", "opened: 2 items"),
        ("gpt", "Once more."),
        ("function_call", json.dumps(FAILED)),
        ("observation", "Error: no such element"),
        ("gpt", ANSWER),
    ],
    "hermes": [
        ("human", GOAL),
        ("gpt", f"I open the cart.\n<tool_call>\n{json.dumps(CALL)}\n</tool_call>"),
        ("tool", "<tool_response>\nopened: 2 items\n</tool_response>"),
        ("gpt", f"Once more.<tool_call>{json.dumps(FAILED)}</tool_call>"),
        ("tool", "<tool_response>Error: no such element</tool_response>"),
        ("gpt", ANSWER),
    ],
}
NAMES = sorted(
    path.stem
    for path in RECORDED.glob("*.json")
    if path.stem not in ("smolagents_memory", "inspect_value_to_float", "langchain_chunks")
)


def _check(run: Trajectory) -> None:
    assert made.warnings(run) == []
    assert [step.action for step in run.steps] == [
        *('click({"bid": "12"})', 'scroll({"bid": "9"})'),
        None,
    ]
    assert (run.goal, run.answer) == (GOAL, ANSWER)
    assert (run.terminated, run.truncated) == (True, False)
    assert [step.reasoning for step in run.steps] == ["I open the cart.", "Once more.", None]
    assert run.steps[1].observation.axtree in ("opened: 2 items", '{"opened": 2}')
    assert "no such element" in str(run.steps[2].observation.page_error)
    assert run.telemetry == {"n_steps": 2.0, "n_err": 1.0}


@pytest.mark.parametrize("name", NAMES)
def test_a_run_is_the_same_in_every_form(tmp_path: Path, name: str) -> None:
    file = RECORDED / f"{name}.json"
    copy = tmp_path / file.name
    copy.write_bytes(file.read_bytes())
    assert detect_kind(copy) == "messages"
    _check(made.load_one(copy))
    value = json.loads(file.read_text())
    if isinstance(value, dict):
        _check(made.load_one(made.write(tmp_path / "lines" / "a.jsonl", [value])))


@pytest.mark.parametrize("name", SHAREGPT)
def test_sharegpt_is_read(tmp_path: Path, name: str) -> None:
    entries = [{"from": who, "value": value} for who, value in SHAREGPT[name]]
    path = made.write(tmp_path / "data.json", [{"id": "1", "conversations": entries}])
    assert detect_kind(path) == "messages"
    _check(made.load_one(path))


def test_a_streamed_message_of_langchain_is_read(tmp_path: Path) -> None:
    value = json.loads((RECORDED / "langchain_chunks.json").read_text())
    run = made.load_one(made.write(tmp_path / "a.json", value))
    assert [step.action for step in run.steps][:2] == [
        'click({"bid": "12"})',
        'scroll({"bid": "9"})',
    ]


@pytest.mark.parametrize(
    ("messages", "met"),
    [
        (None, "entries with role 'tool-call'"),
        ([{"speaker": "bot", "line": "Done."}], "entries with the fields speaker, line"),
        ([{"role": "user", "content": "Go"}, {"role": "critic", "content": "x"}], "'critic'"),
        ([{"role": "assistant", "content": [{"type": "deed", "do": 1}]}], "type 'deed'"),
        ([{"role": "assistant", "content": [{"deed": 1}]}], "entries with the fields deed"),
        (
            [{"role": "user", "parts": [{"text": "a"}]}, {"role": "model", "parts": [{"deed": 1}]}],
            "deed",
        ),
        ([{"from": "narrator", "value": "x"}], "entries with from 'narrator'"),
        ([{"role": "user", "content": "Go"}, {"type": "deed"}], "entries with type 'deed'"),
        (["Go", "Done"], "entries of the type str"),
        ([{"role": "assistant", "text": "Done"}], "messages with the fields role, text"),
        ([{"role": "USER", "message": "Go"}], "entries with role 'USER'"),
    ],
)
def test_what_is_of_no_form_known_is_refused_with_the_form(
    tmp_path: Path, messages: Any, met: str
) -> None:
    value = json.loads((RECORDED / "smolagents_memory.json").read_text())
    value = value if messages is None else {"messages": messages}
    [run] = made.load(made.write(tmp_path / "a.json", value))
    assert isinstance(run, Unreadable)
    assert met in run.reason
    for name in ("Anthropic", "Vercel's AI SDK", "Gemini", "Bedrock Converse", "ShareGPT"):
        assert name in run.reason


@pytest.mark.parametrize(
    "calls",
    [
        [{"type": "tool_call", "args": {"bid": "12"}}],
        [{"function": {"arguments": "{}"}}],
        {"args": {}},
        ["click(12)"],
        "click(12)",
    ],
)
def test_a_call_without_a_name_is_refused(tmp_path: Path, calls: Any) -> None:
    messages = [{"role": "user", "content": GOAL}, {"role": "assistant", "tool_calls": calls}]
    [run] = made.load(made.write(tmp_path / "a.json", {"messages": messages}))
    assert isinstance(run, Unreadable)
    assert "a call of a tool " in run.reason


def test_parallel_calls_of_the_ai_sdk_are_one_step(tmp_path: Path) -> None:
    done = {"state": "output-available", "input": {}}
    parts = [
        {"type": "tool-a", "toolCallId": "1", "output": {"n": 1}, **done},
        {"type": "tool-b", "toolCallId": "2", "output": "two", **done},
        {"type": "text", "text": ANSWER},
    ]
    messages: list[dict[str, Any]] = [{"role": "user", "parts": [{"type": "text", "text": GOAL}]}]
    messages += [{"role": "assistant", "parts": parts}]
    run = made.load_one(made.write(tmp_path / "a.json", messages))
    assert [step.action for step in run.steps] == ["a({})\nb({})", None]
    assert run.steps[1].observation.axtree == '{"n": 1}\ntwo'
    assert run.answer == ANSWER


@pytest.mark.parametrize(
    "image",
    [
        {"parts": [{"inlineData": {"mimeType": "image/png", "data": made.picture("red")}}]},
        {"parts": [{"inline_data": {"mime_type": "image/png", "data": made.picture("red")}}]},
        {"content": [{"image": {"format": "png", "source": {"bytes": made.picture("red")}}}]},
        {"content": [{"type": "image", "base64": made.picture("red"), "mime_type": "image/png"}]},
        {"content": [{"type": "image", "source_type": "base64", "data": made.picture("red")}]},
        {
            "parts": [
                {
                    "type": "file",
                    "mediaType": "image/png",
                    "url": f"data:image/png;base64,{made.picture('red')}",
                }
            ]
        },
    ],
)
def test_pictures_of_every_form_are_read(tmp_path: Path, image: dict[str, Any]) -> None:
    messages = [{"role": "user", "content": GOAL}, {"role": "user", **image}]
    messages += [{"role": "assistant", "content": ANSWER}]
    run = made.load_one(made.write(tmp_path / "a.json", {"messages": messages}))
    assert made.colour(run.steps[0].observation.screenshot) == "red"


@pytest.mark.parametrize(
    ("content", "thought", "answer"),
    [
        ("<think>3? no</think>Two.", "3? no", "Two."),
        ("3? no</think>\nTwo.", "3? no", "Two."),
        ("<think>3? no", "3? no", None),
        ("<thinking>a</thinking> Two. <thinking>b</thinking>", "a\nb", "Two."),
        ("<seed:think>3? no</seed:think>Two.", "3? no", "Two."),
        ("◁think▷3? no◁/think▷Two.", "3? no", "Two."),
        ("[THINK]3? no[/THINK]Two.", "3? no", "Two."),
        (
            "<|channel|>analysis<|message|>3? no<|end|><|start|>assistant<|channel|>final"
            "<|message|>Two.<|return|>",
            *("3? no", "Two."),
        ),
        ("Two, as the tag <think> says.", None, "Two, as the tag <think> says."),
    ],
)
@pytest.mark.parametrize("form", ["chat", "block", "inspect"])
def test_thoughts_in_the_last_message_are_no_answer(
    tmp_path: Path, content: str, thought: str | None, answer: str | None, form: str
) -> None:
    said: Any = [{"type": "text", "text": content}] if form == "block" else content
    messages = [{"role": "user", "content": GOAL}, {"role": "assistant", "content": said}]
    if form == "inspect":
        from tests.trajectories.loaders import inspect_made

        sample = inspect_made.sample(messages=messages, output={"completion": content})
        run = made.load_one(inspect_made.write(tmp_path / "a.eval", sample), "inspect")
    else:
        run = made.load_one(made.write(tmp_path / "a.json", {"messages": messages}))
    assert (run.steps[-1].reasoning, run.answer) == (thought, answer)
    assert run.terminated is (answer is not None)


@pytest.mark.parametrize(
    "message",
    [
        {"role": "assistant", "content": None, "refusal": "I cannot help"},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "I cannot help"}]},
        {"type": "ai", "content": "", "additional_kwargs": {"refusal": "I cannot help"}},
    ],
)
def test_a_refusal_is_the_answer(tmp_path: Path, message: dict[str, Any]) -> None:
    messages = [{"role": "user", "content": GOAL}, message]
    run = made.load_one(made.write(tmp_path / "a.json", {"messages": messages}))
    assert (run.answer, run.terminated, run.truncated) == ("I cannot help", True, False)


ARGUMENTS = json.dumps({"url": "http://shop"})


def _responses() -> list[dict[str, Any]]:
    from openai.types.responses import Response

    common = {
        **{"object": "response", "created_at": 1.0, "model": "m", "parallel_tool_calls": True},
        **{"tool_choice": "auto", "tools": []},
    }
    item = {"type": "function_call", "id": "f", "call_id": "c", "name": "goto"}
    action = {"type": "click", "button": "left", "x": 1, "y": 2}
    click = {"type": "computer_call", "id": "k", "call_id": "d", "actions": [action]}
    click |= {"pending_safety_checks": [], "status": "completed"}
    search: dict[str, Any] = {"type": "web_search_call", "id": "w", "status": "completed"}
    search |= {"action": {"type": "search", "query": "tea", "queries": ["tea"]}}
    text = {"type": "output_text", "text": "Bought.", "annotations": []}
    message = {"type": "message", "id": "m", "role": "assistant", "status": "completed"}
    turns = (
        [{"type": "reasoning", "id": "r", "summary": []}, {**item, "arguments": ARGUMENTS}],
        [click],
        [search, {**message, "content": [text]}],
    )
    return [
        Response.model_validate({"id": f"resp_{at}", "output": turn, **common}).model_dump(
            mode="json"
        )
        for at, turn in enumerate(turns)
    ]


def test_responses_with_their_inputs(tmp_path: Path) -> None:
    first, second, third = _responses()
    image = {"type": "computer_screenshot", "image_url": f"data:x;base64,{made.picture('red')}"}
    first["input"] = "Buy tea"
    second["input"] = [{"type": "function_call_output", "call_id": "c", "output": "A page"}]
    third["input"] = [{"type": "computer_call_output", "call_id": "d", "output": image}]
    run = made.load_one(made.write(tmp_path / "shop.json", [first, second, third]))
    actions = [step.action or "" for step in run.steps]
    assert actions[0] == f"goto({ARGUMENTS})"
    assert [action.partition("(")[0] for action in actions] == ["goto", "computer", "web_search"]
    assert json.loads(actions[1][len("computer(") : -1])["x"] == 1
    assert [made.colour(step.observation.screenshot) for step in run.steps] == [None, None, "red"]
    assert (run.goal, run.answer, run.key.task_id) == ("Buy tea", "Bought.", "shop")
    assert made.warnings(run) == []


def test_lines_of_responses_that_follow_each_other_are_one_conversation(tmp_path: Path) -> None:
    first, second, third = _responses()
    first |= {"input": "Buy tea", "goal": "Buy green tea"}
    second["previous_response_id"] = first["id"]
    third |= {"previous_response_id": second["id"], "reward": 1}
    other = {**first, "id": "resp_9"}
    runs = made.load(made.write(tmp_path / "a.jsonl", [first, second, third, other]))
    assert [str(run.key) for run in runs] == ["messages/m/a-1", "messages/m/a-4"]
    [whole, start] = [run for run in runs if isinstance(run, Trajectory)]
    assert (whole.goal, whole.answer, whole.official_reward) == ("Buy green tea", "Bought.", 1.0)
    assert (len(whole.steps), len(start.steps), start.truncated) == (3, 1, True)


def test_messages_of_chat(tmp_path: Path) -> None:
    from openai.types.chat import ChatCompletionMessage

    call = {"id": "c", "type": "function", "function": {"name": "goto", "arguments": ARGUMENTS}}
    replies = [
        ChatCompletionMessage.model_validate({"role": "assistant", **fields}).model_dump(
            mode="json"
        )
        for fields in ({"content": None, "tool_calls": [call]}, {"content": "Bought."})
    ]
    assert replies[0]["function_call"] is None
    user = {"role": "user", "content": "Buy tea"}
    tool = {"role": "tool", "tool_call_id": "c", "content": [{"type": "text", "text": "A page"}]}
    run = made.load_one(made.write(tmp_path / "a.json", [user, replies[0], tool, replies[1]]))
    assert [step.action for step in run.steps] == [f"goto({ARGUMENTS})", None]
    assert (run.final.axtree, run.answer, made.warnings(run)) == ("A page", "Bought.", [])


def test_messages_of_anthropic(tmp_path: Path) -> None:
    from anthropic.types import Message

    usage = {"input_tokens": 1, "output_tokens": 1}
    blocks = [
        [
            {"type": "thinking", "thinking": "Hm.", "signature": "x"},
            made.tool_use("a", action="key"),
        ],
        [{"type": "text", "text": "Bought."}],
    ]
    common = {"type": "message", "role": "assistant", "model": "m", "usage": usage}
    replies = [
        Message.model_validate({"id": f"msg_{at}", "content": content, **common}).model_dump(
            mode="json"
        )
        for at, content in enumerate(blocks)
    ]
    user = {"role": "user", "content": "Buy tea"}
    result = {"role": "user", "content": [made.tool_result("a", made.shown("blue"))]}
    run = made.load_one(made.write(tmp_path / "a.json", [user, replies[0], result, replies[1]]))
    assert [(step.action, step.reasoning) for step in run.steps] == [
        ('computer({"action": "key"})', "Hm."), (None, None)
    ]  # fmt: skip
    assert (made.colour(run.final.screenshot), run.answer) == ("blue", "Bought.")
    assert made.warnings(run) == []


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


def _exchanges_responses() -> Log:
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
    run = made.load_one(made.write(tmp_path / name, form(_exchanges_responses())))
    assert (run.goal, run.answer, run.truncated) == ("Buy tea", "Bought.", False)
    assert [(step.action, step.observation.axtree) for step in run.steps] == [
        ("go({})", None),
        (None, "A page"),
    ]


@pytest.mark.parametrize("log", [_chat, _anthropic, _exchanges_responses])
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
@pytest.mark.parametrize("at", [0, 1, 2])
def test_exchanges_beside_other_records_are_joined(tmp_path: Path, name: str, at: int) -> None:
    """A file may hold logs of several APIs and conversations: each run has its goal, which only the
    request holds, and its answer, which only the response holds."""
    other = [{"task_id": "lamp", "messages": made.anthropic("Buy a lamp")}]
    logs = [_exchanges_responses(), _chat("Buy milk")]
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
