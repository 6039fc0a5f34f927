"""Text trajectories out of published judgments."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

import pytest

from tests.trajectories.loaders.made import judgment, only, split
from trajudge.trajectories.loaders.agentrewardbench_text import KIND, detect, load
from trajudge.trajectories.model import Trajectory, TrajectoryKey, canonical_task_id
from trajudge.util.errors import UserError


def test_a_judgment_gives_the_whole_trajectory(tmp_path: Path) -> None:
    judgment(tmp_path)
    assert detect(tmp_path)
    assert detect(tmp_path / "judgments")
    [run], [] = split(load(tmp_path / "judgments"))
    assert run.key == TrajectoryKey(benchmark="webarena", agent="A", task_id="webarena.1")
    assert run.goal == "Buy tea\n"
    assert [(step.action, step.reasoning) for step in run.steps] == [
        ("send_msg_to_user('1. tea\\n2. milk')", "why"),
        (None, None),
    ]
    assert run.answer == "1. tea\n2. milk"
    assert (run.official_reward, run.terminated, run.truncated) == (0.5, True, False)
    assert run.telemetry == {"n_steps": 1, "cum_cost": 0.25, "error": 0}
    assert run.metadata["warnings"] == []


def test_copies_and_second_judges_count_once(tmp_path: Path) -> None:
    judgment(tmp_path, judge="webjudge-gpt-4o")
    judgment(tmp_path, judge="webjudge-gpt-4o", name="webarena.1(1)")
    judgment(tmp_path)
    (tmp_path / "judgments/webarena/A/aer").mkdir()
    (tmp_path / "judgments/webarena/A/aer/webarena.2.json").write_text("not ours to read")
    [run], [] = split(load(tmp_path))
    assert run.metadata["source"] == "webjudge-7b/webarena.1.json"
    assert run.metadata["warnings"] == []


def test_a_second_judge_with_another_history_is_told(tmp_path: Path) -> None:
    judgment(tmp_path)
    judgment(tmp_path, judge="webjudge-gpt-4o", reasoning="another")
    [run], [] = split(load(tmp_path))
    assert run.steps[0].reasoning == "why"
    assert run.metadata["warnings"] == ["webjudge-gpt-4o/webarena.1.json tells another history."]


def test_a_damaged_file_gives_way_to_the_second_judge_or_is_named(tmp_path: Path) -> None:
    judgment(tmp_path).write_text("{")
    judgment(tmp_path, judge="webjudge-gpt-4o")
    broken = judgment(tmp_path, name="webarena.2")
    broken.write_text('{"goal": 3}')
    judgment(tmp_path, name="webarena.3")
    runs, [bad] = split(load(tmp_path))
    assert [run.key.task_id for run in runs] == ["webarena.1", "webarena.3"]
    assert "webjudge-7b/webarena.1.json" in str(runs[0].metadata["warnings"])
    assert bad.source == str(broken)
    assert "JSON" in bad.reason
    assert bad.key == TrajectoryKey(benchmark="webarena", agent="A", task_id="webarena.2")


def test_invalid_runs_are_left_out_and_unwanted_ones_not_opened(tmp_path: Path) -> None:
    judgment(tmp_path, valid=False)
    judgment(tmp_path, name="webarena.2").write_text("broken, but nobody asked for it")
    judgment(tmp_path, name="webarena.3")
    assert [r.key and r.key.task_id for r in load(tmp_path, only("webarena.3"))] == ["webarena.3"]
    assert list(load(tmp_path, only("webarena.1"))) == []


def test_a_history_that_contradicts_the_summary_is_told(tmp_path: Path) -> None:
    judgment(tmp_path, n_steps=7)
    [run], [] = split(load(tmp_path))
    assert run.metadata["warnings"] == ["The history lists 2 steps, the summary 7."]


def test_variants_of_a_task_share_its_key(tmp_path: Path) -> None:
    judgment(tmp_path, benchmark="visualwebarena", name="visualwebarena.resized.3")
    [run], [] = split(load(tmp_path))
    assert run.key.task_id == "visualwebarena.3"
    assert run.raw_task_id == "visualwebarena.resized.3"


@pytest.mark.parametrize("inside", ["", "judgments", "judgments/webarena/A/aer"])
def test_a_folder_without_such_judgments_is_the_users_mistake(tmp_path: Path, inside: str) -> None:
    (tmp_path / inside).mkdir(parents=True, exist_ok=True)
    with pytest.raises(UserError, match=KIND):
        load(tmp_path)
    with pytest.raises(UserError):
        load(tmp_path / "nowhere")


@pytest.fixture(scope="module")
def published(arb: Path) -> list[Trajectory]:
    runs, unreadable = split(load(arb))
    assert not unreadable
    return runs


@pytest.mark.real_data
def test_the_published_files_hold_926_trajectories(published: list[Trajectory]) -> None:
    assert len({run.key for run in published}) == len(published) == 926
    assert [run.key.order for run in published] == sorted(run.key.order for run in published)
    assert not any(run.metadata["warnings"] for run in published)


@pytest.mark.real_data
def test_every_published_history_has_the_steps_that_its_summary_tells(
    published: list[Trajectory],
) -> None:
    """n actions and a last observation; as many as actions where the run crashed."""
    extra = Counter(
        (len(run.steps) - run.telemetry["n_steps"], run.metadata["error"] is not None)
        for run in published
    )
    assert set(extra) == {(1, False), (0, True)}
    for run in published:
        assert all(step.action for step in run.steps[:-1])
        assert (run.steps[-1].action is None) == (run.metadata["error"] is None)


@pytest.mark.real_data
def test_the_official_reward_against_the_experts_in_test(
    published: list[Trajectory], arb: Path
) -> None:
    with (arb / "splits.csv").open(newline="") as file:
        test = {row["task_id"] for row in csv.DictReader(file) if row["split"] == "test"}
    expert: dict[tuple[str, str, str], str] = {}
    with (arb / "annotations.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            task_id = canonical_task_id(row["benchmark"], row["task_id"])
            key = (row["benchmark"], row["model_name"], task_id)
            expert.setdefault(key, row["trajectory_success"])
    cells = Counter(
        (
            run.official_reward is not None and run.official_reward > 0.5,
            expert[run.key.benchmark, run.key.agent, run.key.task_id] == "Successful",
        )
        for run in published
        if run.key.task_id in test
    )
    assert cells == {
        (True, True): 132,
        (True, False): 27,
        (False, True): 72,
        (False, False): 550,
    }
