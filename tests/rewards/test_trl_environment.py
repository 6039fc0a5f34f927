"""An environment of TRL that records its own run and asks the judge for its reward."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

import pytest

from trajudge.eval.runs.settings import JudgeConfig
from trajudge.rewards.rewarder import Rewarder
from trajudge.rewards.settings import RewardConfig
from trajudge.rewards.trainers import JudgedEnvironment
from trajudge.trajectories.model import Observation, TrajectoryKey


class Shop(JudgedEnvironment):
    def reset(self, goal: str, **_: Any) -> str:
        self._begin(goal, key=TrajectoryKey(benchmark="shop", agent="policy", task_id="1"))
        return self._see(Observation(url="http://shop/", axtree="[1] button 'Buy'"))

    def click(self, element: str) -> str:
        self._act(f"click({element!r})", reasoning="I buy it.")
        return self._see(Observation(url="http://shop/done", axtree="[2] heading 'Thanks'"))


def test_the_judge_reads_what_the_environment_recorded() -> None:
    rewarder = Rewarder(RewardConfig(judge=JudgeConfig(judge="heuristic")))
    shop = Shop(rewarder)
    assert shop.reset(goal="Buy a mug") == "[1] button 'Buy'"
    assert shop.click("1") == "[2] heading 'Thanks'"
    shop._answer("I bought the mug.")
    run = shop._begun()
    assert [step.action for step in run.steps] == ["click('1')", None]
    assert [step.index for step in run.steps] == [0, 1]
    assert asyncio.run(shop.get_reward()) == asyncio.run(rewarder.reward(run)).value
    shop.reset(goal="Another")
    assert len(shop._begun().steps) == 1


def test_trl_takes_its_public_methods_for_tools() -> None:
    public = {name for name, _ in inspect.getmembers(Shop) if not name.startswith("_")}
    assert public == {"reset", "get_reward", "click"}
    assert inspect.iscoroutinefunction(Shop.get_reward)


def test_an_environment_without_a_run_says_what_to_call() -> None:
    shop = Shop(Rewarder(RewardConfig(judge=JudgeConfig(judge="heuristic"))))
    with pytest.raises(RuntimeError, match=r"_begin\(\)"):
        shop._act("click('1')")
