"""An environment of TRL that records its own run and asks the judge for its reward."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

import pytest

from trajudge.eval.runs.settings import JudgeConfig
from trajudge.rewards.reward import Reward
from trajudge.rewards.rewarder import Rewarder
from trajudge.rewards.settings import RewardConfig
from trajudge.rewards.trainers import JudgedEnvironment, trajudge_reward
from trajudge.rewards.watch import ReferencePoint
from trajudge.trajectories.model import Observation, Trajectory, TrajectoryKey


class Shop(JudgedEnvironment):
    def reset(self, goal: str, **_: Any) -> str:
        self._begin(goal, key=TrajectoryKey(benchmark="shop", agent="policy", task_id="1"))
        return self._see(Observation(url="http://shop/", axtree="[1] button 'Buy'"))

    def click(self, element: str) -> str:
        self._act(f"click({element!r})", reasoning="I buy it.")
        return self._see(Observation(url="http://shop/done", axtree="[2] heading 'Thanks'"))


class Judges:
    """A source that gives no reward before it was asked for so many at once."""

    stopped = False

    def __init__(self, at_once: int = 1, point: ReferencePoint | None = None) -> None:
        self.asked: list[tuple[Trajectory, int | None]] = []
        self._at_once, self._all = at_once, asyncio.Event()
        self._point = point

    async def reward(self, trajectory: Trajectory, *, step: int | None = None) -> Reward:
        self.asked.append((trajectory, step))
        if len(self.asked) >= self._at_once:
            self._all.set()
        await asyncio.wait_for(self._all.wait(), 60)
        return Reward(key=trajectory.key, value=1.0, judge="j", version="v", seconds=2.0, cost=0.5)

    async def reference(self, before: int) -> ReferencePoint | None:
        return self._point if self._point and self._point.step < before else None


class TrainerState:
    """The one thing that is read of a trainer's state."""

    global_step = 3


def rewards_of(
    source: Judges, environments: list[Any], last: str = "done", **more: Any
) -> list[float | None]:
    """Ask as TRL does once the rollouts are there."""
    completions = [[{"role": "assistant", "content": last}] for _ in environments]
    asked = trajudge_reward(source)(
        ["p"] * len(environments), completions, environments=environments, **more
    )
    found: list[float | None] = asyncio.run(asked)  # type: ignore[arg-type]
    return found


def started(source: Judges | Rewarder, count: int) -> list[Shop]:
    shops = [Shop(source) for _ in range(count)]
    for shop in shops:
        shop.reset(goal="Buy a mug")
    return shops


def test_the_judge_reads_what_the_environment_recorded() -> None:
    rewarder = Rewarder(RewardConfig(judge=JudgeConfig(judge="heuristic")))
    (shop,) = started(rewarder, 1)
    assert shop.click("1") == "[2] heading 'Thanks'"
    shop._answer("I bought the mug.")
    run = shop._started()
    assert [step.action for step in run.steps] == ["click('1')", None]
    assert [step.index for step in run.steps] == [0, 1]
    assert (run.answer, run.terminated) == ("I bought the mug.", True)
    assert shop._finish().result(60).value == asyncio.run(rewarder.reward(run)).value
    shop.reset(goal="Another")
    assert len(shop._started().steps) == 1


def test_all_rollouts_are_judged_at_once() -> None:
    source = Judges(at_once=16)
    assert rewards_of(source, started(source, 16)) == [1.0] * 16


def test_the_judge_is_asked_when_the_run_ends_and_once() -> None:
    source = Judges()
    ended, going_on = started(source, 2)
    ended._answer("sold out")
    assert ended._finish().result(60).value == 1.0
    assert len(source.asked) == 1, "before the trainer asks for rewards"
    with pytest.raises(RuntimeError, match="the run is over"):
        ended.click("1")
    with pytest.raises(RuntimeError, match="the run is over"):
        ended._answer("again")
    assert rewards_of(source, [ended, going_on], "Here is the mug.") == [1.0, 1.0]
    assert [run.answer for run, _ in source.asked] == ["sold out", "Here is the mug."]


@pytest.mark.parametrize(
    "last",
    [
        {"role": "tool", "name": "click", "content": "a page"},
        {"role": "assistant", "content": ""},
        {"role": "assistant", "content": "I click.", "tool_calls": [{"type": "function"}]},
    ],
)
def test_what_is_no_message_of_the_policy_is_no_answer(last: dict[str, Any]) -> None:
    source = Judges()
    given = trajudge_reward(source)(["p"], [[last]], environments=started(source, 1))
    assert asyncio.run(given) == [1.0]  # type: ignore[arg-type]
    ((run, _),) = source.asked
    assert (run.answer, run.terminated) == (None, None)


def test_a_run_of_another_environment_has_no_reward_of_ours() -> None:
    source = Judges()
    assert rewards_of(source, [*started(source, 1), object()]) == [1.0, None]


def test_without_environments_it_says_what_to_give() -> None:
    with pytest.raises(ValueError, match="no environments to judge: give the trainer environment_"):
        asyncio.run(trajudge_reward(Judges())(["p"], ["c"]))  # type: ignore[arg-type]


def test_the_trainers_step_and_the_reference_are_logged() -> None:
    point = ReferencePoint(2)
    point.add(1.0, 0.0)
    source = Judges(point=point)
    logged: dict[str, list[float]] = {}
    columns: dict[str, list[Any]] = {}
    rewards_of(
        source,
        [*started(source, 1), object()],
        trainer_state=TrainerState(),
        log_metric=lambda name, value: logged.setdefault(name, []).append(value),
        log_extra=columns.__setitem__,
    )
    assert [step for _, step in source.asked] == [3]
    assert logged == {
        "trajudge/abstained": [0.0, 1.0],
        "trajudge/unparsable": [0.0, 0.0],
        "trajudge/seconds": [2.0],
        "trajudge/cost": [0.5],
        "trajudge/reference/abstained": [0.0],
        "trajudge/reference/proxy": [1.0],
        "trajudge/reference/reference": [0.0],
        "trajudge/reference/gap": [1.0],
        "trajudge/reference/disagreement": [1.0],
    }
    assert columns["trajudge_abstained"] == ["", "lost"]
    assert columns["trajudge_cost"] == [0.5, None]
    (early,) = started(source, 1)
    early._answer("done")
    assert early._finish().result(60).value == 1.0
    assert source.asked[-1][1] == 3, "the step of the trainer that asked before"


def test_trl_takes_its_public_methods_for_tools() -> None:
    """No ``get_reward`` among them, which TRL would await one by one."""
    public = {name for name, _ in inspect.getmembers(Shop) if not name.startswith("_")}
    assert public == {"reset", "click"}


def test_an_environment_without_a_run_says_what_to_call() -> None:
    shop = Shop(Rewarder(RewardConfig(judge=JudgeConfig(judge="heuristic"))))
    with pytest.raises(RuntimeError, match=r"_begin\(\)"):
        shop._act("click('1')")
