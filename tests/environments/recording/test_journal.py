"""A recording on disk: which runs its labels count."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from trajudge.environments.analysis.agent_results import summary
from trajudge.environments.analysis.outcomes import read_outcomes
from trajudge.environments.model.case import Case, write_cases
from trajudge.environments.model.config import Config
from trajudge.environments.recording.journal import COMPLETE, Journal, assemble
from trajudge.trajectories.model import Trajectory, TrajectoryKey

# scenario, success, side effect
RUNS = (("price", True, None), ("buy", None, None), ("wish", False, True))
COUNTS = {"a": {"runs": 3, "success": 1, "side_effect": 1, "repetition": 0, "ambiguous": 1}}


@pytest.fixture
def recorded(tmp_path: Path) -> tuple[Path, Path]:
    """A complete recording and its cases."""
    folder, cases = tmp_path / "recorded", tmp_path / "cases.jsonl"
    configs = [Config(app="shop", scenario=scenario) for scenario, *_ in RUNS]
    write_cases(
        cases,
        [
            Case(config=config, goal="", domain="d", vector=(1,) * 7, level=1, shortest=1)
            for config in configs
        ],
    )
    journal = Journal(folder, {})
    with journal.file.open("ab") as file:
        for config, (scenario, success, side_effect) in zip(configs, RUNS, strict=True):
            key = TrajectoryKey(benchmark="shop", agent="a", task_id=config.id)
            run = Trajectory(key=key, raw_task_id=config.id, goal="g", telemetry={"n_steps": 1.0})
            labels = {"success": success, "side_effect": side_effect, "repetition": False}
            entry = {
                "run": scenario,
                "trajectory": run.model_dump(mode="json"),
                "labels": {**labels, "optimality": None},
                "facts": {},
            }
            file.write(orjson.dumps(entry) + b"\n")
    assert assemble(journal, [scenario for scenario, *_ in RUNS]) == COUNTS
    return folder, cases


def test_a_recording_counts_as_ambiguous_what_its_results_leave_out(
    recorded: tuple[Path, Path],
) -> None:
    folder, cases = recorded
    figures = summary("a", read_outcomes([folder], cases), seed=0)
    assert figures["ambiguous"] == COUNTS["a"]["ambiguous"] == 1


def test_a_recording_of_the_version_before_is_counted_again(recorded: tuple[Path, Path]) -> None:
    """It counted every label that was open to argument: of one run, two."""
    folder, _ = recorded
    content = orjson.loads((folder / COMPLETE).read_bytes())
    content["counts"] = {
        "a": {"runs": 3, "success": 1, "side_effect": 1, "repetition": 0, "open": 3}
    }
    (folder / COMPLETE).write_bytes(orjson.dumps(content))
    assert Journal(folder, {}).counts == COUNTS
