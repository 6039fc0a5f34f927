"""The real TRL in two ranks: one budget for both, and one end."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.llm_server import LlmServer
from tests.rewards.server.conftest import serving
from trajudge.eval.runs.settings import JudgeConfig
from trajudge.judges.calls.settings import CallConfig
from trajudge.judges.engine.budget import read_payments
from trajudge.rewards.rewarder import Rewarder
from trajudge.rewards.settings import RewardConfig
from trajudge.util.errors import UserError

ROOT = Path(__file__).parents[2]
MAX_COST, STEPS, GROUP = 5.0, 4, 8


class Trained(NamedTuple):
    """What a training of two ranks left: its folder, and what each rank tells."""

    folder: Path
    ranks: list[dict[str, Any]]
    paid: float
    asked: int


@pytest.fixture(scope="module")
def trained(packages: Path, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    folder = tmp_path_factory.mktemp("ranks")
    prices = folder / "prices.toml"
    prices.write_text("[models.mock]\ninput = 1000.0\noutput = 0.0\n", encoding="utf-8")
    words = ["--model", "mock", "--representation", "axtree", "--prices", str(prices)]
    program = [sys.executable, "-m", "tests.rewards.trl_ranks", str(packages), "2", str(folder)]
    with LlmServer(usage=lambda usage: {**usage, "prompt_tokens": 500}) as model:
        judge = [*words, "--base-url", f"{model.url}/v1", "--max-cost", str(MAX_COST)]
        with LlmServer() as other, serving(folder, *judge) as server:
            ran = subprocess.run(
                [*program, server.url, other.url],
                cwd=ROOT, capture_output=True, text=True, check=False,
            )  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-3000:]
    ranks = [json.loads((folder / f"rank{n}.json").read_text()) for n in range(2)]
    paid = sum(read_payments(folder / "store" / "payments.jsonl").values())
    return Trained(folder, ranks, paid, model.stats.requests)


@pytest.mark.slow
def test_ranks_that_ask_one_server_keep_one_budget(trained: Trained) -> None:
    assert MAX_COST / 2 < trained.paid <= MAX_COST
    assert trained.paid == pytest.approx(0.5 * trained.asked)
    for told in (rank["budget"] for rank in trained.ranks):
        assert told["steps"] == STEPS
        rewards = np.array([group["rewards"] for group in told["groups"]])
        assert rewards.shape == (STEPS, GROUP)
        assert (~np.isnan(rewards)).sum() == trained.asked, "those of both ranks"
        assert np.isnan(rewards[-1]).all()


@pytest.mark.slow
def test_a_drift_that_one_rank_sees_ends_both_after_the_same_step(trained: Trained) -> None:
    assert [rank["stopped"] for rank in trained.ranks] == [True, False]
    assert [rank["drift"]["steps"] for rank in trained.ranks] == [2, 2]
    (saved,) = (trained.folder / "drift" / "out").glob("checkpoint-*")
    assert json.loads((saved / "trainer_state.json").read_text())["global_step"] == 2
    assert (saved / "model.safetensors").exists()
    assert not [*(trained.folder / "budget" / "out").glob("checkpoint-*")]


def test_a_budget_in_each_rank_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    given = RewardConfig(judge=JudgeConfig(judge="heuristic"), calls=CallConfig(max_cost=2.0))
    for alone in ("1", None):
        if alone is None:
            monkeypatch.delenv("WORLD_SIZE", raising=False)
        else:
            monkeypatch.setenv("WORLD_SIZE", alone)
        Rewarder(given)
    monkeypatch.setenv("WORLD_SIZE", "2")
    told = (
        r"^max_cost 2 would hold in each of the 2 ranks of this training on its own: start  "
        r"trajudge serve --max-cost  once, and let the ranks ask it$"
    )
    with pytest.raises(UserError, match=told):
        Rewarder(given)
    Rewarder(given.model_copy(update={"calls": CallConfig()}))
