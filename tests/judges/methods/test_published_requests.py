"""Requests under the published prompts, as a server receives them, against the messages that the
package itself builds of every stored history."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.judges.adapters.every_adapter import without_litellm
from tests.judges.adapters.requests import adapter_for
from tests.llm_server import LlmServer
from trajudge.judges.methods.simplified import PaperPrompt
from trajudge.judges.model import Request
from trajudge.trajectories.model import Observation, Step, Trajectory, TrajectoryKey
from trajudge.trajectories.represent import Representation
from trajudge.trajectories.truncate import views

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(find_spec("agent_reward_bench") is None, reason="needs agent-reward-bench"),
    pytest.mark.skipif(not os.environ.get("TRAJUDGE_REAL_DATA"), reason="TRAJUDGE_REAL_DATA"),
]

FOLDER = "agentrewardbench/judgments"
_STEP = re.compile(r"^\d+\. (.*?)\. Reasoning: (.*?)(?=^\d+\. |\Z)", re.DOTALL | re.MULTILINE)


def stored(folder: Path) -> Iterator[tuple[str, str, list[dict[str, str | None]]]]:
    """Agent, goal and steps of every history that a stored judgment holds, each once."""
    histories: dict[str, tuple[str, str]] = {}
    for file in sorted(folder.glob("*/*/*/*.json")):
        content = orjson.loads(file.read_bytes())
        histories.setdefault(content["input_text"], (content["agent"], content["goal"]))
    for text, (agent, goal) in histories.items():
        found = _STEP.findall(text.partition("Action History:\n")[2])
        steps: list[dict[str, str | None]] = [
            {"url": None, "action": action, "reasoning": reasoning.removesuffix("\n")}
            for action, reasoning in found
        ]
        yield agent, goal, [*steps, {"url": None, "action": None, "reasoning": None}]


def trajectory(agent: str, goal: str, steps: list[dict[str, str | None]]) -> Trajectory:
    return Trajectory(
        key=TrajectoryKey(benchmark="webarena", agent=agent, task_id="1"),
        raw_task_id="1",
        goal=goal,
        steps=tuple(
            Step(
                index=index,
                observation=Observation(axtree="RootWebArea 'x'"),
                action=step["action"],
                reasoning=step["reasoning"],
            )
            for index, step in enumerate(steps)
        ),
        terminated=True,
    )


def published(goal: str, steps: list[dict[str, str | None]]) -> Any:
    """The package's own messages."""
    reference = import_module("agent_reward_bench.judge")
    defaults = import_module("agent_reward_bench.judge.defaults")
    return reference.format_chat_messages_for_judge(
        sys_prompt=defaults.INVERTED_SYSTEM_PROMPT,
        goal_msg=defaults.GOAL_TEMPLATE.format(goal=goal),
        action_msg=defaults.ACTION_TEMPLATE.format(steps=reference.format_steps(steps)),
        axtree_msg=defaults.AXTREE_TEMPLATE.format(axtree="RootWebArea 'x'"),
        img_msg_content=[],
    )


def with_marks(messages: Any) -> Any:
    """The messages with the marks that are neutralised in what agents wrote."""
    return orjson.loads(re.sub(rb"\((/?[a-z]+>)", rb"<\1", orjson.dumps(messages)))


@pytest.mark.parametrize(
    ("name", "every"),
    [("http", 1), ("openai", 25), pytest.param("litellm", 100, marks=without_litellm)],
)
async def test_what_the_server_receives_is_what_the_package_builds(name: str, every: int) -> None:
    form = PaperPrompt(Representation.AXTREE, "last")
    histories = list(stored(Path(os.environ["TRAJUDGE_REAL_DATA"]) / FOLDER))[::every]
    assert len(histories) * every >= 900
    different = []
    with LlmServer(record=1, text="yes") as server:
        adapter, model = adapter_for(name, server.url)
        for agent, goal, steps in histories:
            view = next(views(trajectory(agent, goal, steps), Representation.AXTREE, 10**9))
            messages = tuple(form.messages(view, ()))
            await adapter.send(Request(endpoint="test", model=model, messages=messages))
            received = server.seen[-1].payload["messages"]
            expected = published(goal, steps)
            assert [part["type"] for part in received[1]["content"]] == ["text"] * 4
            if received != expected:
                assert with_marks(received) == with_marks(expected), (agent, goal)
                different.append(agent)
        await adapter.close()
    assert all("claude" in agent for agent in different), "only Claude writes such marks"
