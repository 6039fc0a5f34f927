"""The reference judge: the curve of a reward judge that a policy learns to exploit, of known
truth."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from tests.llm_replies import Incoming
from tests.llm_server import LlmServer
from tests.ports import free_port
from tests.rewards.cases import ACCEPTED, config, trajectory
from tests.rewards.server.conftest import record_of, serving
from tests.waiting import wait_until
from tests.worlds.rewards import reward
from trajudge.eval.runs.settings import JudgeConfig
from trajudge.judges.engine.budget import Payments, read_payments
from trajudge.judges.model import Judgment
from trajudge.rewards import RewardClient
from trajudge.rewards.reward import Reward
from trajudge.rewards.rewarder import Rewarder
from trajudge.rewards.settings import RewardConfig, WatchConfig
from trajudge.rewards.watch import (
    ReferenceCurve,
    ReferenceJudge,
    ReferencePoint,
    RewardMonitor,
    RewardWatch,
)
from trajudge.trajectories.model import Trajectory
from trajudge.util.errors import UserError

REJECTED = ACCEPTED.replace("Successful", "Unsuccessful")
GOLD = "simplified-axtree:gold"
STEPS, ROLLOUTS = 6, 30


class Step(NamedTuple):
    """The rollouts of one training step, with what is true of each."""

    runs: list[Trajectory]
    successes: list[bool]
    exploits: list[bool]

    @property
    def means(self) -> dict[str, float]:
        """What two judges make of it: one that is fooled by an exploit, and one that is not."""
        true, exploits = np.array(self.successes), np.array(self.exploits)
        believed = true | exploits
        return {
            "abstained": 0.0,
            "proxy": float(believed.mean()),
            "reference": float(true.mean()),
            "gap": float(believed.mean() - true.mean()),
            "disagreement": float((believed & ~true).mean()),
        }


def training(rng: np.random.Generator) -> list[Step]:
    """Make steps of a policy that succeeds ever less, and is believed ever more."""
    steps = []
    for number in range(STEPS):
        share = number / (STEPS - 1)
        successes = rng.random(ROLLOUTS) < 0.5 - 0.3 * share
        exploits = rng.random(ROLLOUTS) < 0.05 + 0.8 * share
        answers = [
            f"{number}.{n} {'placed' if true else 'open'} {'trustme' if fake else 'plain'}"
            for n, (true, fake) in enumerate(zip(successes, exploits, strict=True))
        ]
        runs = [trajectory(f"{number}.{n}", answer) for n, answer in enumerate(answers)]
        steps.append(Step(runs, successes.tolist(), exploits.tolist()))
    return steps


def answered(one: Incoming) -> str:
    """Accept what was placed; the judge that is trained on believes a phrase as well."""
    fooled = one.payload["model"] == "mock" and "trustme" in one.prompt
    return ACCEPTED if "placed" in one.prompt or fooled else REJECTED


def watched(share: float = 1.0, **more: object) -> WatchConfig:
    return WatchConfig(reference="simplified:gold", reference_share=share, keep_going=True, **more)


def trained(
    given: RewardConfig, steps: Sequence[Step], payments: Payments | None = None
) -> tuple[list[Reward], RewardMonitor]:
    """Ask for the rewards of a training, step by step."""

    async def ask() -> tuple[list[Reward], RewardMonitor]:
        rewards = []
        async with Rewarder(given, payments=payments) as rewarder:
            for number, step in enumerate(steps):
                asked = (rewarder.reward(run, step=number) for run in step.runs)
                rewards += await asyncio.gather(*asked)
            await rewarder.watch.settled()
            return rewards, rewarder.watch.monitor

    return asyncio.run(ask())


def test_the_curve_shows_a_proxy_that_the_policy_exploits(tmp_path: Path) -> None:
    steps = training(np.random.default_rng(1))
    journal = tmp_path / "watch.jsonl"
    with LlmServer(text=answered) as server:
        given = config(server, tmp_path, watch=watched(journal=journal))
        _, monitor = trained(given, steps)
        points = monitor.curve.points()
        assert [point.step for point in points] == [*range(STEPS)]
        for point, step in zip(points, steps, strict=True):
            assert point.means() == pytest.approx(step.means)
        gaps = [point.means()["gap"] for point in points]
        assert gaps[0] < 0.15 < 0.5 < gaps[-1]
        gauges = monitor.gauges()
        assert gauges["reference_asked"] == STEPS * ROLLOUTS
        assert gauges["reference_step"] == STEPS - 1
        assert gauges["reference_gap"] == pytest.approx(gaps[-1])
        assert (monitor.curve.before(0), monitor.curve.before(3)) == (None, points[2])
        _, after_a_restart = trained(given, [])
        assert after_a_restart.curve.points() == points
        other = given.model_copy(
            update={"watch": WatchConfig(reference="heuristic", journal=journal)}
        )
        _, of_another = trained(other, [])
        assert of_another.curve.points() == []


def test_a_share_is_drawn_by_the_seed_and_tells_the_same(tmp_path: Path) -> None:
    steps = training(np.random.default_rng(2))
    with LlmServer(text=answered) as server:
        asked = []
        for seed in (0, 0, 1):
            given = config(server, tmp_path, watch=watched(0.4, seed=seed))
            _, monitor = trained(given, steps)
            asked.append([point.asked for point in monitor.curve.points()])
            assert 0.3 < sum(asked[-1]) / (STEPS * ROLLOUTS) < 0.5
            assert monitor.curve.points()[-1].means()["gap"] > 0.3
    assert asked[0] == asked[1] != asked[2]


def test_what_the_reference_cannot_judge_is_counted_and_left_out(tmp_path: Path) -> None:
    (step,) = training(np.random.default_rng(3))[-1:]

    def refuse(one: Incoming) -> str | None:
        return "refusal" if one.payload["model"] == "gold" and "trustme" in one.prompt else None

    with LlmServer(text=answered, script=refuse) as server:
        rewards, monitor = trained(config(server, tmp_path, watch=watched()), [step])
    (point,) = monitor.curve.points()
    exploits = np.array(step.exploits)
    assert (point.asked, point.abstained) == (ROLLOUTS, exploits.sum())
    assert point.reference == np.array(step.successes)[~exploits].sum() == point.proxy
    assert all(reward.value is not None for reward in rewards), "its failures take no reward away"


def test_its_calls_are_paid_from_the_same_budget(tmp_path: Path) -> None:
    prices = tmp_path / "prices.toml"
    prices.write_text(
        "[models.mock]\ninput = 1.0\noutput = 0.0\n[models.gold]\ninput = 3.0\noutput = 0.0\n",
        encoding="utf-8",
    )
    (step,) = training(np.random.default_rng(4))[:1]

    def paid(server: LlmServer, name: str, **limit: float) -> tuple[float, list[Reward], int]:
        folder = tmp_path / name
        folder.mkdir()
        calls = {"prices": str(prices), "context": 8000, **limit}
        ledger = Payments(folder / "payments.jsonl")
        given = config(server, folder, watch=watched(), calls=calls)
        rewards, monitor = trained(given, [step], ledger)
        ledger.close()
        (point,) = monitor.curve.points()
        return sum(read_payments(ledger.path).values()), rewards, point.abstained

    with LlmServer(text=answered, usage=lambda usage: {**usage, "prompt_tokens": 1000}) as server:
        whole, rewards, _ = paid(server, "whole")
        own = sum(one.cost or 0.0 for one in rewards)
        assert own == pytest.approx(ROLLOUTS * 0.001)
        assert whole == pytest.approx(own + ROLLOUTS * 0.003)
        some, rewards, abstained = paid(server, "some", max_cost=0.7 * whole)
        assert 0.5 * whole < some <= 0.7 * whole
        assert abstained > 0
    assert {one.abstained for one in rewards} <= {"", "over_budget"}


def test_a_reward_without_a_value_is_not_compared() -> None:
    monitor = RewardMonitor(watched(), GOLD)
    late = reward("x", True).model_copy(
        update={"value": None, "probability": None, "verdict": None, "abstained": "late"}
    )
    assert monitor.for_reference("x", late) is None
    assert monitor.for_reference("x", reward("x", True)) == 1.0
    assert RewardMonitor(watched()).for_reference("x", reward("x", True)) is None


def test_a_belief_of_one_half_is_accepted() -> None:
    point = ReferencePoint(0)
    point.add(0.5, 1.0)
    point.add(0.49, 0.5)
    assert point.disagreed == 1
    assert ReferencePoint(0, asked=2, abstained=2).means() == {"abstained": 1.0}
    assert ReferencePoint(0) == ReferencePoint(0, 0, 0, 0.0, 0.0, 0)
    point.add(0.75, None)
    assert point == ReferencePoint(0, 3, 1, 0.99, 1.5, 1)
    means = {"proxy": 0.495, "reference": 0.75, "gap": -0.255, "disagreement": 0.5}
    assert point.means() == pytest.approx({"abstained": 1 / 3, **means})
    curve = ReferenceCurve("a-judge")
    curve.add(3, 1.0, 1.0)
    curve.add(4, 1.0, None)
    assert curve.gauges()["reference_step"] == 3.0
    assert [curve.before(step) for step in (3, 4, 5)] == [None, *curve.points()]
    assert ReferenceCurve("").gauges() == {"reference_asked": 0.0, "reference_abstained": 0.0}


def test_a_hundred_rewards_are_a_step_where_the_training_names_none() -> None:
    async def unanswered(_: Trajectory) -> Judgment:
        raise UserError("no answer")

    async def points() -> list[ReferencePoint]:
        watch = RewardWatch(watched(every=50), "v", unanswered, ReferenceJudge("g", unanswered))
        run = trajectory(1)
        for number in range(101):
            watch.add(str(number), run, reward("x", True))
        watch.add("of step 7", run, reward("x", True), 7)
        await watch.settled()
        return watch.monitor.curve.points()

    expected = [ReferencePoint(0, 100, 100), ReferencePoint(1, 1, 1), ReferencePoint(7, 1, 1)]
    assert asyncio.run(points()) == expected


def test_a_reference_that_cannot_be_asked_is_refused() -> None:
    judge = JudgeConfig(judge="heuristic")
    for named, why in (("simplified", "needs a model: name it"), ("nobody:x", "nobody")):
        watch = WatchConfig(reference=named)
        with pytest.raises(UserError, match=rf"^--reference {named}: .*{why}"):
            Rewarder(RewardConfig(judge=judge, watch=watch))


def test_the_curve_is_told_over_http(tmp_path: Path) -> None:
    words = ["--judge", "heuristic", "--reference", "heuristic", "--reference-share", "1"]
    with serving(tmp_path, *words) as server:
        for step in (7, 9):
            items = [{"trajectory": record_of(trajectory(f"{step}.{n}"))} for n in range(step)]
            assert server.ask("/v1/rewards", {"items": items, "step": step}).status == 200
        wait_until(lambda: "trajudge_reference_asked 16" in server.ask("/metrics").content)
        whole = server.ask("/v1/reference").content
        assert whole["judge"] == server.ask("/v1/card").content["reference"] == "heuristic"
        assert [(one["step"], one["asked"]) for one in whole["points"]] == [(7, 7), (9, 9)]
        assert [one["disagreed"] for one in whole["points"]] == [0, 0]
        for before, points in ((9, whole["points"][:1]), (10, whole["points"][1:]), (7, [])):
            assert server.ask(f"/v1/reference?before={before}").content["points"] == points
            found = asyncio.run(RewardClient(server.url).reference(before))
            assert found == (ReferencePoint(**points[0]) if points else None)
        bad = [
            server.ask("/v1/rewards", {"items": items, "step": -1}),
            server.ask("/v1/rewards", {"items": items, "step": True}),
            server.ask("/v1/reference?before=soon"),
        ]
        assert [(one.status, one.content["error"]) for one in bad] == [
            (400, "a step must be a non-negative integer")
        ] * 3


def test_a_server_without_a_reference_is_asked_once(tmp_path: Path) -> None:
    with serving(tmp_path, "--judge", "heuristic") as server:
        client = RewardClient(server.url)
        assert asyncio.run(client.reference(1)) is None
    assert asyncio.run(client.reference(2)) is None, "the server is gone by now"


def test_a_curve_that_cannot_be_had_ends_no_training() -> None:
    client = RewardClient(f"http://127.0.0.1:{free_port()}", deadline=0.1)
    assert asyncio.run(client.reference(1)) is None
