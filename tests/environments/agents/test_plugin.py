"""Agents of the user's: what they see, how they end, what is said of one that cannot be used."""

from __future__ import annotations

import json
import os
import sys
from functools import partial
from pathlib import Path

import pytest

from tests.commands import command
from tests.environments.cases import job, sound
from tests.installed import write_metadata
from trajudge.environments.agents.plugin import AgentPlugin
from trajudge.environments.agents.protocol import Agent, NotPlayed
from trajudge.environments.model.case import write_cases
from trajudge.environments.recording.episode import Recorded, play_offline
from trajudge.util.commands import OK, USAGE_ERROR
from trajudge.util.errors import UserError

record = command("env record")

FIRST_LINK = """
import re

class Agent:
    def __init__(self, goal, word="done"):
        self.word, self.goal = word, goal
        self.telemetry = {}

    def act(self, observation):
        print("seen", observation.title)
        assert observation.goal == self.goal
        self.telemetry["lines"] = len(observation.axtree.splitlines())
        if observation.step == 1:
            return f"send_msg_to_user('{self.word} {observation.last_action[:5]}')"
        return f"click('{re.search(r'.([0-9]+). link', observation.axtree)[1]}')", "the first link"
"""


def played(path: Path, content: str = "", *, seconds: float = 60, memory: int = 1024) -> Recorded:
    if content:
        path.write_text(content)
    plugin = AgentPlugin(str(path), seconds=seconds, memory=memory)
    task = job(sound("price"), plugin.name)
    with plugin.open(task.goal or "") as agent:
        return play_offline(task, lambda _: agent, b"a secret")


def _same(agent: Agent, _: object) -> Agent:
    return agent


def acting(body: str) -> str:
    return f"class Agent:\n    def act(self, observation):\n        {body}\n"


def test_a_class_acts_on_what_the_page_shows(tmp_path: Path) -> None:
    recorded = played(tmp_path / "mine.py", FIRST_LINK)
    run = recorded.trajectory
    assert run.key.agent == "mine"
    assert [step.reasoning for step in run.steps] == ["the first link", "", None]
    assert run.answer == "done click" and run.terminated
    assert run.telemetry["lines"] > 10
    assert "agent_failure" not in recorded.facts


def test_the_agent_gets_nothing_of_the_run_and_none_of_our_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAJUDGE_CACHE", "ours")
    monkeypatch.setenv("USERS_OWN", "theirs")
    source = """
import os
def make(goal, **options):
    return Mine()
class Mine:
    def act(self, observation):
        try:
            observation.goal = "another"
        except AttributeError as error:
            frozen = type(error).__name__
        names = sorted(observation.__slots__)
        seen = [os.environ.get("TRAJUDGE_CACHE"), os.environ["USERS_OWN"], os.getppid()]
        return f"send_msg_to_user({str([frozen, names, *seen])!r})"
"""
    answer = played(tmp_path / "mine.py", source).trajectory.answer
    assert answer == str([
        "FrozenInstanceError",
        sorted(["goal", "url", "title", "axtree", "focused", "last_action", "last_action_error",
                "step", "screenshot"]),
        None, "theirs", os.getpid(),
    ])  # fmt: skip


@pytest.mark.parametrize(
    ("body", "failure"),
    [
        ("return 12", "act failed: TypeError: it gave int, where an action such as"),
        ("raise ValueError('no idea')", "act failed: ValueError: no idea (FILE:3): correct it"),
        ("import os; os._exit(7)", "its process ended (exit code 7)"),
        ("import time; time.sleep(60)", "gave nothing within 3 s"),
        ("return 'x' * (2 * 10**9)", "act failed: MemoryError"),
        ("raise SystemExit(0)", "act failed: SystemExit"),
        ("return 'x' * 2**21", "its process ended"),
    ],
    ids=["no action", "raises", "dies", "silent", "memory", "exits", "endless"],
)
def test_an_agent_that_fails_ends_its_run_which_counts(
    tmp_path: Path, body: str, failure: str
) -> None:
    path = tmp_path / "mine.py"
    slow = "sleep" in body
    recorded = played(path, acting(body), seconds=3 if slow else 60)
    assert recorded.trajectory.truncated and not recorded.trajectory.terminated
    assert recorded.finding.labels.success is False
    assert failure.replace("FILE", str(path)) in recorded.facts["agent_failure"]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("x = 1", "FILE defines no agent: write  def make(goal, **options)  that gives"),
        (acting("pass") + acting("pass").replace("Agent", "Other"),
         "FILE defines Agent (line 1) and Other (line 4): name one with  --agent FILE:Agent"),
        ("x = (", "FILE: cannot be loaded ('(' was never closed (mine.py, line 1))"),
        ("\n1 / 0", "FILE: cannot be loaded (ZeroDivisionError: division by zero, line 2)"),
        ("async def make(goal): ...", "make is async: write  def make(goal, **options)"),
    ],
    ids=["none", "two", "syntax", "raises", "async"],
)  # fmt: skip
def test_what_is_no_agent_is_refused_before_anything_runs(
    tmp_path: Path, content: str, sentence: str
) -> None:
    path = tmp_path / "mine.py"
    path.write_text(content)
    with pytest.raises(UserError) as refused:
        AgentPlugin(str(path)).check()
    assert sentence.replace("FILE", str(path)) in str(refused.value)


def test_one_that_cannot_be_made_gives_no_run(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def make(goal, **options):\n    return 3\n")
    with pytest.raises(NotPlayed, match=r"it gave int, which has no act \(.*mine.py:1\)"):
        played(tmp_path / "mine.py")


def test_packages_bring_agents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "their_agents"
    package.mkdir()
    (package / "__init__.py").write_text(acting("return \"answer('theirs')\""))
    write_metadata(tmp_path, "their-agents", "[trajudge.agents]\nclicker = their_agents\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    for spec in ("their_agents:Agent", "clicker"):
        plugin = AgentPlugin(spec)
        with plugin.open("goal") as agent:
            task = job(sound("price"), plugin.name)
            recorded = play_offline(task, partial(_same, agent), b"")
        assert recorded.trajectory.answer == '{"answer": "theirs"}'
        assert recorded.trajectory.key.agent == spec
    for spec in ("their_agents:Missing", "no_such_package:Agent", "missing.py"):
        with pytest.raises(UserError, match=f"--agent {spec}: "):
            AgentPlugin(spec).check()


@pytest.mark.browser
def test_the_command_records_it_with_others_of_its_own(
    tmp_path: Path, chromium: Path, monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    write_cases(Path("cases.jsonl"), [sound("price")])
    Path("first.py").write_text(FIRST_LINK)
    failing = acting("raise ValueError('no idea')")
    Path("fails.py").write_text(f"{failing}\ndef make(goal, word):\n    return Agent()\n")
    words = ["--cases", "cases.jsonl", "--agent", "./first.py", "./fails.py", "does-nothing"]
    assert record([*words, "--agent-option", "word=seen", "--agent-timeout", "60"]) == OK
    shown, printed = capfd.readouterr()
    assert "1 run ended because the agent failed (facts.jsonl), such as" in shown
    assert "seen " in printed
    facts = map(json.loads, Path("recorded/facts.jsonl").read_text().splitlines())
    failures = {fact["key"]["agent"]: fact.get("agent_failure") for fact in facts}
    assert failures.keys() == {"first", "fails", "scripted-k"}
    assert failures["first"] is None and "no idea" in (failures["fails"] or "")
    assert record(["--cases", "cases.jsonl", "--agent", "./first.py", "./first.py"]) == USAGE_ERROR
    assert "another agent is called 'first'" in capfd.readouterr().err
