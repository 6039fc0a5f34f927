"""verl's reward manager and agent loops, and OpenRLHF's client and multi-turn executor, as they
are, against the server (spec G2 and G3)."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.llm_replies import Incoming
from tests.llm_server import LlmServer
from tests.rewards.cases import calibrated_words, trajectory
from tests.rewards.server.conftest import record_of, serving
from trajudge.rewards.client import RewardUnavailable
from trajudge.rewards.trainers import verl_score

ROOT = Path(__file__).parents[2]
COUNT, BASE_RATE, GROUP = 40, 0.3, 8


def troubled(incoming: Incoming) -> str | None:
    """Refuse every fourth task for good; fail and limit every tenth request for once."""
    asked_task = re.search(r"Do task (\d+)\n", incoming.prompt)
    if asked_task and not int(asked_task[1]) % 4:
        return "refusal"
    return {3: "500", 7: "429"}.get(incoming.ordinal % 10)


class Answers(NamedTuple):
    """What each client made of the rewards, beside what the server says itself."""

    verl: list[dict[str, Any]]
    verl_agents: list[dict[str, Any]]
    validation: dict[str, Any]
    openrlhf: list[dict[str, Any]]
    openrlhf_turns: list[dict[str, Any]]
    own: list[dict[str, Any]]


@pytest.fixture(scope="module")
def answers(packages: Path, tmp_path_factory: pytest.TempPathFactory) -> Answers:
    """Ask a server with forty pushed trajectories."""
    return asked(packages, tmp_path_factory.mktemp("trainers"), COUNT)


def asked(packages: Path, folder: Path, count: int) -> Answers:
    """Ask a server with so many pushed trajectories."""
    words = calibrated_words(folder, BASE_RATE)
    with (
        LlmServer(script=troubled) as model,
        serving(folder, *words, "--base-url", f"{model.url}/v1") as server,
    ):
        names = [f"r{i}" for i in range(count)]
        for i, name in enumerate(names):
            record = record_of(trajectory(i))
            server.ask("/v1/trajectories", {"id": name, "trajectory": record})
        ran = subprocess.run(
            [
                *(sys.executable, "-m", "tests.rewards.trainer_clients"),
                *(str(packages), server.url, str(count)),
            ],
            cwd=ROOT, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert ran.returncode == 0, ran.stderr[-2000:]
        own = server.ask("/v1/rewards", {"items": [{"id": name} for name in names]})
        answered = model.stats.answered
    assert answered == 2 * count, "all clients and we together paid once, OpenRLHF's agents anew"
    return Answers(**json.loads(ran.stdout.splitlines()[-1]), own=own.content["rewards"])


def expected(answers: Answers) -> list[float]:
    return [BASE_RATE if one["value"] is None else one["value"] for one in answers.own]


def with_means(answers: Answers) -> list[float]:
    """The values, for an abstention the mean of its group."""
    values = np.array([[np.nan if one["value"] is None else one["value"]] for one in answers.own])
    groups = values.reshape(-1, GROUP)
    known = np.where(np.isnan(groups), np.nanmean(groups, axis=1, keepdims=True), groups)
    return [float(value) for value in known.ravel()]


FAILED = [*range(0, COUNT, 4)]


@pytest.mark.slow
@pytest.mark.parametrize("way", ["verl", "verl_agents"])
def test_verl_gets_equal_keys_no_nan_and_neutral_abstentions(answers: Answers, way: str) -> None:
    told: list[dict[str, Any]] = getattr(answers, way)
    extras = [one["reward_extra_info"] for one in told]
    assert {frozenset(extra) for extra in extras} == {frozenset(extras[0])}
    abstained = np.array([extra["abstained"] for extra in extras], dtype=bool)
    assert np.flatnonzero(abstained).tolist() == FAILED
    scores = np.array([one["reward_score"] for one in told])
    assert scores == pytest.approx(with_means(answers), nan_ok=False)
    accuracies = np.array([extra["acc"] for extra in extras])
    assert accuracies[abstained] == pytest.approx(scores[abstained]), "no failure of the policy"
    advantages = np.array([one["advantage"] for one in told])
    assert np.abs(advantages[abstained]).max() <= 1e-6
    assert np.isfinite(advantages).all()


@pytest.mark.slow
def test_an_abstention_in_verls_validation_waits_for_no_other_rollout(answers: Answers) -> None:
    """There a prompt has ``val_kwargs.n`` rollouts, here one, whatever it has in training."""
    assert answers.validation["reward_extra_info"]["abstained"] == 1
    assert answers.validation["reward_score"] == BASE_RATE


@pytest.mark.slow
def test_openrlhf_loses_no_reward_and_takes_no_failure_for_one(answers: Answers) -> None:
    found = answers.openrlhf
    assert [one["reward"] for one in found] == [one["scores"] for one in found]
    assert [one["reward"][0] for one in found] == pytest.approx(expected(answers))
    flags = [one["extra_logs"]["abstained"][0] for one in found]
    assert np.flatnonzero(flags).tolist() == FAILED


@pytest.mark.slow
def test_openrlhfs_turns_end_with_a_reward_and_equal_logs(answers: Answers) -> None:
    *ended, endless = answers.openrlhf_turns
    rewards = np.array([one["reward"] for one in ended])
    assert rewards == pytest.approx(np.array([one["scores"] for one in ended]))
    assert rewards[FAILED] == pytest.approx(BASE_RATE)
    judged = np.delete(rewards, FAILED)
    assert {0.25, 0.75} <= {*judged}, "the calibration's, some of them less a penalty"
    assert BASE_RATE not in judged
    logs = [one["extra_logs"] for one in answers.openrlhf_turns]
    assert {frozenset(one) for one in logs} == {frozenset(logs[0])}, "OpenRLHF makes columns"
    assert [place for place, one in enumerate(logs) if one["abstained"]] == FAILED
    assert all(len(one["action_ranges"]) == 2 for one in ended)
    assert (endless["reward"], endless["extra_logs"]["unfinished"]) == (0, 1)


def test_a_rollout_of_verl_without_an_id_is_told_where_one_comes_from() -> None:
    told = (
        r"a row of shop has no extra_info\['trajectory_id'\]: let the agent loop return it in its"
    )
    with pytest.raises(RewardUnavailable, match=told):
        asyncio.run(verl_score("shop", "", None, {"index": 3}))
