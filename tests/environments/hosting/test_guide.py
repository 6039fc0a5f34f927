"""The examples of the guide to agents, word by word, with scripted stand-ins."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.environments.cases import job, sound
from tests.environments.hosting.guide import OPENENV, OWN, SERVED
from tests.environments.hosting.served import TOKEN, serving
from trajudge.environments.agents.plugin import AgentPlugin
from trajudge.environments.recording.episode import play_offline

MOST_LINES = 10


@pytest.mark.parametrize("block", [OWN, SERVED, OPENENV])
def test_an_example_is_short(block: str) -> None:
    assert len([line for line in block.splitlines() if line.strip()]) <= MOST_LINES


def test_the_own_agent_plays(tmp_path: Path) -> None:
    (tmp_path / "my_agent.py").write_text(OWN)
    plugin = AgentPlugin(str(tmp_path / "my_agent.py"))
    task = job(sound("price"), plugin.name)
    with plugin.open(task.goal or "") as agent:
        recorded = play_offline(task, lambda _: agent, b"")
    assert "agent_failure" not in recorded.facts
    assert recorded.trajectory.terminated and len(recorded.trajectory.steps) == 5


def test_the_served_agent_is_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("served").mkdir()
    Path("served/harness-token").write_text(TOKEN)
    case = sound("price")
    with serving([case]) as served:

        def my_agent(goal: str, start_url: str) -> None:
            assert re.search(r"http://\S+/_answer", goal)
            (run,) = served.host.runs.values()
            assert served.page({"start_url": start_url}, "/home").status == 200
            assert run.status == "open"

        stand_in: dict[str, Callable[..., None]] = {"my_agent": my_agent}
        example = SERVED.replace("8378", str(served.control))
        exec(compile(example, "agent.md", "exec"), stand_in)
    assert "'success': False" in capsys.readouterr().out
