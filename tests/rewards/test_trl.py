"""The real TRL with rewards of a judge that fails for every fourth completion (spec G1)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.llm_server import LlmServer
from trajudge.rewards.trainers.trl import combine

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def steps(packages: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, object]]:
    """What TRL made of two groups of eight, every fourth request refused."""
    with LlmServer(script=lambda one: "refusal" if one.ordinal % 4 == 1 else None) as server:
        words = [str(packages), server.url, str(tmp_path_factory.mktemp("trl"))]
        ran = subprocess.run(
            [sys.executable, "-m", "tests.rewards.trl_steps", *words],
            cwd=ROOT, capture_output=True, text=True, check=False,
        )  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-2000:]
    yield json.loads(ran.stdout.splitlines()[-1])


@pytest.mark.slow
@pytest.mark.parametrize("form", ["alone", "combined"])
def test_an_abstention_moves_nothing(steps: dict[str, dict[str, list]], form: str) -> None:  # type: ignore[type-arg]
    """Its advantage is 0, and the others' are those of the group without it."""
    groups = steps[form]["groups"]
    assert len(groups) == 2
    spread = 0.0
    for group in groups:
        rewards, found = np.array(group["rewards"]), np.array(group["advantages"])
        known = ~np.isnan(rewards)
        assert (~known).sum() == 2
        assert (found[~known] == 0).all()
        rest = rewards[known]
        expected = (rest - rest.mean()) / (rest.std(ddof=1) + 1e-4)
        assert found[known] == pytest.approx(expected, abs=1e-6)
        spread += rest.std()
    assert spread > 0, "a judge that always says the same would show nothing"
    assert "trajudge/abstained" in steps[form]["logged"]


@pytest.mark.slow
def test_the_example_trains_on_the_sample(packages: Path) -> None:
    path = os.pathsep.join([str(ROOT), *sys.path[1:], str(packages)])
    ran = subprocess.run(
        [sys.executable, ROOT / "examples" / "grpo_on_cpu.py"],
        env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert ran.stdout.count("abstained 0.0") == 2


@pytest.mark.slow
def test_the_lines_of_the_readme_train(packages: Path, tmp_path: Path) -> None:
    """A policy at random instead of the named one, and a server instead of the provider."""
    with LlmServer(script=lambda one: "refusal" if one.ordinal % 4 == 1 else None) as server:
        environment = {
            **os.environ,
            "OPENAI_API_KEY": "a-key",
            "OPENAI_BASE_URL": f"{server.url}/v1",
            "TRAJUDGE_CACHE": str(tmp_path / "replies.sqlite"),
        }
        ran = subprocess.run(
            [sys.executable, "-m", "tests.rewards.readme_grpo", str(packages), str(tmp_path)],
            cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        asked = server.stats.requests
    assert ran.returncode == 0, ran.stderr[-2000:]
    told = json.loads(ran.stdout.splitlines()[-1])
    assert told["lines"] <= 12
    assert asked
    assert len(told["logged"]) == 2
    assert max(step["trajudge/abstained"] for step in told["logged"]) > 0


@pytest.mark.slow
def test_training_ends_once_the_rewards_are_stopped(steps: dict[str, object]) -> None:
    assert steps["stopped"] == 1


def test_combined_functions_need_a_weight_each() -> None:
    with pytest.raises(ValueError, match="2 reward functions take as many weights"):
        combine(lambda: [], lambda: [], weights=[1.0])
