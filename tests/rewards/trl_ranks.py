"""A training of the real TRL in several ranks, which torchrun starts.

``python -m tests.rewards.trl_ranks SITE_PACKAGES RANKS FOLDER REWARD_URL MODEL_URL`` is the
launcher; each rank writes what it came to as ``rank<N>.json`` into the folder.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

sys.path.append(sys.argv[1])

RANK = os.environ.get("RANK")


def launch(packages: str, ranks: str, *words: str) -> None:
    from torch.distributed.run import main as torchrun

    module = ["-m", "tests.rewards.trl_ranks", packages, ranks, *words]
    torchrun(["--standalone", "--nproc-per-node", ranks, *module])


def train(folder: Path, reward_url: str, model_url: str) -> None:
    """Train with one server's rewards until its budget is gone, and then with a judge in each rank,
    of which the first one's watch stops the rewards in the second step."""
    from tests.rewards.cases import trajectory
    from tests.rewards.trl_steps import GROUP, rewarder_at, trained
    from trajudge.rewards import RewardClient
    from trajudge.rewards.trainers import stop_on_drift, trajudge_reward

    settings: dict[str, Any] = {"per_device_train_batch_size": GROUP // 2, "max_steps": 4}
    settings |= {"ddp_backend": "gloo", "ddp_timeout": 180}

    def run_of(row: Mapping[str, Any]) -> Any:
        return trajectory(row["task"], f"{RANK} {row['completion']}")

    served = RewardClient(reward_url)
    judged = trajudge_reward(served, run_of)
    told: dict[str, Any] = {
        "budget": trained(judged, folder / "budget", stop_on_drift(served), **settings)
    }

    place = folder / f"judge{RANK}"
    place.mkdir()
    rewarder = rewarder_at(model_url, place)
    asked: list[Any] = []

    def drifting(row: Mapping[str, Any]) -> Any:
        asked.append(row)
        if RANK == "0" and len(asked) == GROUP // 2 + 1:
            for _ in range(50):
                rewarder.watch.monitor.failure_test.add(1.0)
        return run_of(row)

    judged = trajudge_reward(rewarder, drifting)
    told["drift"] = trained(judged, folder / "drift", stop_on_drift(rewarder), **settings)
    told["stopped"] = rewarder.stopped
    (folder / f"rank{RANK}.json").write_text(json.dumps(told), encoding="utf-8")


if __name__ == "__main__":
    if RANK is None:
        launch(*sys.argv[1:])
    else:
        train(Path(sys.argv[3]), *sys.argv[4:])
