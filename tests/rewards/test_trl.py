"""The real TRL with rewards of a judge that fails for every fourth completion (spec G1)."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.llm_replies import Incoming, verdict_text
from tests.llm_server import LlmServer
from tests.rewards.server.conftest import serving
from trajudge.eval.runs.settings import JudgeConfig
from trajudge.rewards.rewarder import Rewarder
from trajudge.rewards.settings import RewardConfig
from trajudge.rewards.trainers import combine, trajudge_reward

ROOT = Path(__file__).parents[2]


class Ended(NamedTuple):
    """What a program came to; ``asked`` are the requests that its judge made."""

    code: int
    out: str
    err: str
    asked: int

    def told(self) -> Any:
        """What it printed as JSON."""
        assert self.code == 0, self.err
        return json.loads(self.out.splitlines()[-1])


def refused(one: Incoming) -> str | None:
    """Refuse every fourth request."""
    return "refusal" if one.ordinal % 4 == 1 else None


def shop_number(one: Incoming) -> int:
    """The number of the rollout whose run a judge is asked about, of four."""
    return int(re.findall(r"mug (\d+)", one.prompt)[0]) % 4


@pytest.fixture(scope="module")
def programs(packages: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ended]:
    """What all programs came to that train."""
    folder = tmp_path_factory.mktemp("programs")
    (folder / "trl").mkdir()
    with (
        LlmServer(script=refused) as steps,
        LlmServer(
            script=lambda one: "refusal" if shop_number(one) == 1 else None,
            text=lambda one: (
                "I cannot tell." if shop_number(one) == 3 else verdict_text(one.prompt)
            ),
        ) as environment,
        LlmServer(script=refused) as guide,
        LlmServer(script=refused) as behind,
        serving(folder, "--model", "gpt-4o", "--base-url", f"{behind.url}/v1") as server,
    ):
        words = [str(packages), str(folder / "trl")]
        words += [steps.url, environment.url, guide.url, server.url]
        ran = subprocess.run(
            [sys.executable, "-m", "tests.rewards.trl_programs", *words],
            cwd=ROOT, capture_output=True, text=True, check=False,
        )  # fmt: skip
        asked = {"steps": steps.stats.requests, "guide": guide.stats.requests}
    assert ran.returncode == 0, ran.stderr[-2000:]
    ended = json.loads(ran.stdout.splitlines()[-1])
    return {name: Ended(**one, asked=asked.get(name, 0)) for name, one in ended.items()}


@pytest.fixture(scope="module")
def steps(programs: dict[str, Ended]) -> Any:
    """What TRL made of two groups of eight, every fourth request refused."""
    return programs["steps"].told()


@pytest.mark.slow
@pytest.mark.parametrize("form", ["alone", "combined"])
def test_an_abstention_moves_nothing(steps: dict[str, dict[str, list]], form: str) -> None:  # type: ignore[type-arg]
    """Its advantage is 0, and the others' are those of the group without it."""
    assert abstentions(steps[form]["groups"]) == [2, 2]
    assert "trajudge/abstained" in steps[form]["logged"]


def abstentions(groups: list[dict[str, list[float]]]) -> list[int]:
    """Hold the advantages of TRL's groups to those of the groups without abstentions; the number of
    these in each."""
    counts, spread = [], 0.0
    for group in groups:
        rewards, found = np.array(group["rewards"]), np.array(group["advantages"])
        known = ~np.isnan(rewards)
        counts.append(int((~known).sum()))
        assert (found[~known] == 0).all()
        rest = rewards[known]
        expected = (rest - rest.mean()) / (rest.std(ddof=1) + 1e-4)
        assert found[known] == pytest.approx(expected, abs=1e-6)
        spread += rest.std()
    assert spread > 0, "a judge that always says the same would show nothing"
    return counts


@pytest.mark.slow
def test_episodes_of_an_environment_are_judged_and_logged(programs: dict[str, Ended]) -> None:
    """TRL's log, TensorBoard's files and the table of completions say the same of each step."""
    told = programs["environment"].told()
    assert abstentions(told["groups"]) == [4, 4]
    assert "I bought the mug." in told["answers"]
    for step, (group, logged, table) in enumerate(
        zip(told["groups"], told["history"], told["tables"], strict=True)
    ):
        rewards = np.array(group["rewards"])
        rows = {name: [*column.values()] for name, column in table.items()}
        assert set(rows["step"]) == {step + 1}
        kinds = np.array(rows["trajudge_abstained"])
        assert (kinds == "failed").tolist() == np.isnan(rewards).tolist()
        assert rows["trajudge_status"].count("unparsable") == 2
        expected = {
            "reward": np.nanmean(rewards),
            "rewards/trajudge/mean": np.nanmean(rewards),
            "trajudge/abstained": np.isnan(rewards).mean(),
            "trajudge/unparsable": 2 / 8,
            "trajudge/cost": np.mean([cost for cost in rows["trajudge_cost"] if cost is not None]),
            "trajudge/seconds": np.mean(rows["trajudge_seconds"]),
        }
        assert {name: logged[name] for name in expected} == pytest.approx(expected, rel=1e-5)
        written = {name: told["events"][f"train/{name}"][step] for name in expected}
        assert written == pytest.approx(expected, rel=1e-5)
    assert min(line["trajudge/cost"] for line in told["history"]) > 0


@pytest.mark.slow
def test_the_example_trains_on_the_sample(programs: dict[str, Ended]) -> None:
    assert programs["example"].code == 0, programs["example"].err
    assert programs["example"].out.count("abstained 0.0") == 2


@pytest.mark.slow
def test_the_lines_of_the_guide_train(programs: dict[str, Ended]) -> None:
    """A policy at random instead of the named one, a reward server of ours, and a server instead
    of the provider."""
    by_server, in_process = programs["guide"].told()
    assert in_process["lines"] <= 12
    assert programs["guide"].asked
    for told in (by_server, in_process):
        assert len(told["logged"]) == 2
        assert max(step["trajudge/abstained"] for step in told["logged"]) > 0
    assert max(step["tools/call_frequency"] for step in by_server["logged"]) > 0


@pytest.mark.slow
def test_training_ends_once_the_rewards_are_stopped(steps: dict[str, object]) -> None:
    assert steps["stopped"] == 1


def test_combined_functions_need_a_weight_each() -> None:
    with pytest.raises(ValueError, match="2 reward functions take as many weights"):
        combine(lambda: [], lambda: [], weights=[1.0])


def test_a_keyword_that_is_no_column_is_left_out_and_noted_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """TRL's trainers hand every key of a row on; others add numbers, texts and settings."""
    rows: list[Mapping[str, Any]] = []

    def trajectory_of(row: Mapping[str, Any]) -> None:
        rows.append(row)

    given: dict[str, Any] = {
        "task": ["a", "b"],
        "step": 3,
        "phase": "ok",
        "options": {"x": 1, "y": 2},
    }
    given |= {"few": [1], "weights": np.array([0.5, 1.0]), "nothing": None}

    async def ask() -> None:
        async with Rewarder(RewardConfig(judge=JudgeConfig(judge="heuristic"))) as rewarder:
            reward = trajudge_reward(rewarder, trajectory_of)
            for _ in range(2):
                assert await reward(["p"] * 2, ["c"] * 2, **given) == [None, None]

    asyncio.run(ask())
    assert [sorted(row) for row in rows] == [["completion", "prompt", "task", "weights"]] * 4
    notes = capsys.readouterr().err.splitlines()
    assert [note.split()[1] for note in notes] == ["step", "phase", "options", "few"]


def test_connections_are_closed_when_the_training_ends() -> None:
    code = """
import asyncio, sys
from tests.judges.runs import seen_run
from trajudge.eval.runs.settings import JudgeConfig
from trajudge.judges.calls.settings import CallConfig
from trajudge.rewards.rewarder import Rewarder
from trajudge.rewards.settings import RewardConfig
from trajudge.rewards.trainers import trajudge_reward
judge = JudgeConfig(judge="simplified", model="gpt-4o")
config = RewardConfig(judge=judge, calls=CallConfig(base_url=sys.argv[1]))
reward = trajudge_reward(Rewarder(config), lambda row: seen_run(3))
assert asyncio.run(reward(["p"], ["c"])) == [1.0]
"""
    with LlmServer() as server:
        done = subprocess.run(
            [sys.executable, "-c", code, f"{server.url}/v1"],
            cwd=ROOT, capture_output=True, text=True, check=False,
        )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
