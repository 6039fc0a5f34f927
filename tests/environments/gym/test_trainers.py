"""The classes for trainers keep to their interfaces, read from the published TRL where it is there
and from verl-agent's sources."""

from __future__ import annotations

import ast
import inspect
import math
import subprocess
import sys
from pathlib import Path

import pytest

from tests.environments.cases import agent
from tests.trainers import packages
from trajudge.environments.agents.script import Behaviour
from trajudge.environments.gym.env import WebEnv
from trajudge.environments.gym.trl import BrowserEnv, tasks
from trajudge.environments.gym.verl_agent import BrowserEnvManager, projection
from trajudge.environments.recording.recorder import recorded_offline
from trajudge.util.errors import UserError

__all__ = ["packages"]

TOOLS = {"click", "fill", "select", "press", "goto", "back", "answer"}


def way(env: WebEnv) -> list[str]:
    """The oracle's actions in the run that is open."""
    begun = env._episode
    assert begun is not None
    oracle = begun.job.model_copy(update={"agent": agent(Behaviour.ORACLE)})
    return [s.action for s in recorded_offline(oracle, 0).trajectory.steps if s.action]


def call(env: BrowserEnv, action: str) -> str:
    """The tool call that an action is."""
    node = ast.parse(action, mode="eval").body
    assert isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    names = {"select_option": "select", "go_back": "back", "send_msg_to_user": "answer"}
    arguments = [ast.literal_eval(argument) for argument in node.args]
    shown: str = getattr(env, names.get(node.func.id, node.func.id))(*arguments)
    return shown


def test_trls_class_has_a_tool_an_action_and_rewards_the_oracle() -> None:
    public = {name for name, _ in inspect.getmembers(BrowserEnv, inspect.isfunction)}
    assert {n for n in public if n[0] != "_"} == TOOLS | {"reset", "get_reward"}
    for name in TOOLS:
        tool = getattr(BrowserEnv, name)
        assert inspect.signature(tool).parameters.keys() == {"self", *_described(tool.__doc__)}
    env = BrowserEnv()
    with pytest.raises(ValueError, match="the run is over"):
        env.back()
    first = env.reset(task="shop.price", seed=1, split="train", prompt=[])
    assert "RootWebArea" in first and "answer(value)" in first
    *actions, _ = way(env._env)  # type: ignore[arg-type]
    for action in actions:
        assert "RootWebArea" in call(env, action)
    assert "no element with bid" in env.click("999")
    assert env.get_reward() == 0.0
    [price] = env._env._episode.run.evidence().scenario.answers  # type: ignore[union-attr]
    assert price.kind == "money"
    right = way(env._env)[-1].split("'")[1]  # type: ignore[arg-type]
    env.answer(right.split()[-1].rstrip("."))
    assert env.get_reward() == 1.0
    with pytest.raises(ValueError, match="the run is over"):
        env.back()


def _described(text: str | None) -> set[str]:
    _, _, arguments = (text or "").partition("Args:\n")
    return {line.split(":")[0].strip() for line in arguments.splitlines() if line.strip()}


def test_members_of_a_group_start_alike_in_runs_of_other_codes() -> None:
    rows = tasks("train", 2, n=3)
    assert rows.column_names == ["prompt", "task", "seed", "split"]
    assert rows["seed"] == [0, 1, 2]
    assert tasks("train", 2)["seed"] == [*range(100)]
    one, other = BrowserEnv(), BrowserEnv()
    assert one.reset(**rows[0]) == other.reset(**rows[0])
    assert one.reset(**rows[1]) != other.reset(**rows[2])
    keys = [env._env._episode.run.key for env in (one, other)]  # type: ignore[union-attr]
    assert keys[0] != keys[1]
    first = one.reset(task="shop.price")
    assert first == other.reset(task="shop.price", seed=0) != other.reset(**rows[0])
    with pytest.raises(UserError, match="level4"):
        tasks("train", 4)


@pytest.mark.slow
def test_trls_trainer_takes_the_class(packages: Path) -> None:
    """What TRL makes of the class: schemas of its tools, by transformers."""
    code = (
        "import sys, inspect; sys.path.append(sys.argv[1])\n"
        "from transformers.utils import get_json_schema\n"
        "from trajudge.environments.gym.trl import BrowserEnv\n"
        "env = BrowserEnv()\n"
        "names = [n for n, _ in inspect.getmembers(BrowserEnv, inspect.isfunction)\n"
        "         if n[0] != '_' and n not in ('reset', 'get_reward')]\n"
        "print(sorted(get_json_schema(getattr(env, n))['function']['name'] for n in names))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(packages)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert ast.literal_eval(done.stdout.splitlines()[-1]) == sorted(TOOLS)


def test_verl_agents_projection_reads_the_last_action() -> None:
    texts = [
        "<think>so</think><action>noop()</action> no: <action> click('3') </action>",
        "click('3')",
        "<action>jump()</action>",
    ]
    assert projection(texts) == (["click('3')", "click('3')", "jump()"], [1, 0, 0])


def test_verl_agents_manager_plays_groups_side_by_side() -> None:
    manager = BrowserEnvManager([WebEnv("shop.price") for _ in range(4)], group=2, seed=5)
    seen, infos = manager.reset()
    assert seen["anchor"][0] == seen["anchor"][1] != seen["anchor"][2] == seen["anchor"][3]
    assert all("RootWebArea" in text for text in seen["text"]) and not infos[0]["won"]
    actions = way(manager.envs[0])
    history, batches = [], []
    for action in actions:
        texts = [f"<action>{action}</action>", "I give up.", "<action>noop()</action>"]
        texts.append("<action>send_msg_to_user('$1.00')</action>")
        batches.append([{"active_masks": not over} for over in manager._over])
        seen, rewards, dones, infos = manager.step(texts)
        history.append(infos)
    assert rewards.tolist() == [1.0, 0.0, 0.0, 0.0]
    assert dones.tolist() == [True, False, False, True]
    assert [int(info["is_action_valid"]) for info in infos] == [1, 0, 1, 1]
    assert not math.isnan(rewards.sum())
    columns = [list(map(list, zip(*rows, strict=True))) for rows in (history, batches)]
    rates = manager.success_evaluator(total_infos=columns[0], total_batch_list=columns[1])
    assert rates["success_rate"].tolist() == [1.0, 0.0, 0.0, 0.0]
    assert manager.success_evaluator([[{"won": True}]], [[{"active_masks": False}]]) == {
        "success_rate": [0.0]
    }
    again, _ = manager.reset()
    assert again["anchor"][0] != seen["anchor"][0]
