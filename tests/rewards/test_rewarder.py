"""Rewards from a judge whose model is a real server on loopback."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.llm_server import LlmServer, at
from tests.rewards.cases import calibration_file, config, trajectory
from trajudge import accept, judge, load, select
from trajudge.eval.runs.settings import JudgeConfig
from trajudge.judges.model import Status
from trajudge.rewards.reward import Reward
from trajudge.rewards.rewarder import Rewarder
from trajudge.rewards.settings import RewardConfig, RewardShaping
from trajudge.trajectories.model import Trajectory
from trajudge.util.errors import UserError


def rewards_of(given: RewardConfig, runs: Sequence[Trajectory], **more: float) -> list[Reward]:
    async def ask() -> list[Reward]:
        async with Rewarder(given) as rewarder:
            return await rewarder.group(runs, **more)

    return asyncio.run(ask())


def test_equal_trajectories_are_one_call_and_nothing_is_paid_twice(tmp_path: Path) -> None:
    with LlmServer(latency=0.05) as server:
        given = config(server, tmp_path)
        rewards = rewards_of(given, [trajectory(1)] * 64)
        assert server.stats.requests == 1
        assert len({reward.value for reward in rewards}) == 1
        assert all(reward.value is not None for reward in rewards)
        again = rewards_of(given, [trajectory(1)])
        assert server.stats.requests == 1, "a new process pays nothing that was answered"
    assert again[0].cached
    assert (again[0].value, again[0].version) == (rewards[0].value, rewards[0].version)


def test_a_failed_judge_abstains_beside_its_group(tmp_path: Path) -> None:
    with LlmServer(script=at({1: "refusal"})) as server:
        rewards = rewards_of(config(server, tmp_path), [trajectory(i) for i in range(3)])
    failed = [reward for reward in rewards if reward.value is None]
    assert len(failed) == 1
    assert failed[0].abstained == "failed"
    assert failed[0].status is Status.REFUSED


def test_at_the_deadline_the_judge_goes_on_and_asking_again_is_free(tmp_path: Path) -> None:
    async def ask(given: RewardConfig) -> tuple[Reward, Reward]:
        async with Rewarder(given) as rewarder:
            first = await rewarder.reward(trajectory(1), deadline=0.05)
            return first, await rewarder.reward(trajectory(1), deadline=10)

    with LlmServer(latency=0.5) as server:
        first, second = asyncio.run(ask(config(server, tmp_path)))
        assert server.stats.requests == 1
    assert (first.value, first.abstained, first.status) == (None, "late", None)
    assert second.value is not None


def test_past_the_budget_rewards_abstain(tmp_path: Path) -> None:
    prices = tmp_path / "prices.toml"
    prices.write_text("[models.mock]\ninput = 1000.0\noutput = 1000.0\n", encoding="utf-8")
    calls = {"max_cost": 0.0001, "prices": str(prices), "context": 8000}
    with LlmServer() as server:
        (reward,) = rewards_of(config(server, tmp_path, calls=calls), [trajectory(1)])
        assert server.stats.requests == 0
    assert (reward.value, reward.abstained) == (None, "over_budget")


def test_a_judge_without_a_model(tmp_path: Path) -> None:
    given = RewardConfig(judge=JudgeConfig(judge="heuristic"))
    (reward,) = rewards_of(given, [trajectory(1)])
    assert reward.value is not None
    assert reward.judge == "heuristic"


def test_the_version_changes_with_what_decides_the_value(tmp_path: Path) -> None:
    with LlmServer() as server:
        plain = config(server, tmp_path)
        other = plain.model_copy(
            update={"judge": plain.judge.model_copy(update={"representation": "none"})}
        )
        reshaped = plain.model_copy(
            update={"shaping": plain.shaping.model_copy(update={"side_effect": 0.2})}
        )
        versions = {Rewarder(one).function.version for one in (plain, other, reshaped)}
        assert len(versions) == 3
        assert Rewarder(plain).function.version in versions


def test_a_calibration_gives_probabilities_and_holds_for_its_judge_alone(tmp_path: Path) -> None:
    with LlmServer() as server:
        path = calibration_file(tmp_path / "map.json", "simplified-axtree:mock", {"model": "mock"})
        given = config(server, tmp_path, calibration=path)
        (reward,) = rewards_of(given, [trajectory(1)])
        assert reward.probability in (0.25, 0.75)
        calibration_file(
            path, "simplified-axtree:mock", {"model": "mock", "prompt_hash": "another"}
        )
        with pytest.raises(UserError, match="was fitted to a different configuration of"):
            Rewarder(given)
        calibration_file(path, "other", {})
        with pytest.raises(UserError, match="has no calibration of simplified-axtree:mock"):
            Rewarder(given)


def test_a_judge_that_asks_needs_its_model() -> None:
    with pytest.raises(UserError, match="needs a model: name it"):
        Rewarder(RewardConfig(judge=JudgeConfig(judge="simplified")))


def test_a_decision_gives_the_threshold_to_the_judge_that_it_was_made_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A judge that asks no model as well: that it asks none is known of it."""
    monkeypatch.chdir(tmp_path)
    runs = list(load("sample"))
    judgments = judge("sample", "heuristic")
    decision = select(judgments, target_precision=0.1, confidence=0.8)
    assert decision.chosen is not None
    given = RewardConfig(
        judge=JudgeConfig(judge="heuristic"),
        decision=decision.folder,
        shaping=RewardShaping(form="verdict", side_effect=0, repetition=0),
    )
    accepted = accept(judgments, decision).to_frame().set_index("ending")["trajectories"]
    found = rewards_of(given, runs)
    assert sum(one.value == 1 for one in found) == accepted["accepted"] < len(runs)
    with pytest.raises(UserError, match="decided for heuristic, not for rule-based"):
        Rewarder(given.model_copy(update={"judge": JudgeConfig(judge="rule-based")}))
