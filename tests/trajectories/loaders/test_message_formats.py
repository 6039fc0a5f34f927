"""One run in the forms of other packages, recorded with the packages themselves."""

from __future__ import annotations

import json
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
