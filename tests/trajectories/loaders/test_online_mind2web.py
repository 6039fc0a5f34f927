"""Online-Mind2Web submissions, made up and real."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.trajectories.loaders.made import LFS_POINTER, TASK, mind2web, only, split
from trajudge.trajectories.loaders.online_mind2web import detect, load
from trajudge.trajectories.model import ImageRef


def test_a_task_folder_gives_the_whole_trajectory(tmp_path: Path) -> None:
    folder = mind2web(tmp_path / "some-agent" / TASK)
    assert detect(folder)
    assert detect(folder.parent)
    [run], [] = split(load(folder))
    assert str(run.key) == f"online-mind2web/some-agent/{TASK}"
    assert (run.goal, run.answer, run.official_reward) == ("Find tea.", "Found.", None)
    image = folder / "trajectory" / "1_full_screenshot.png"
    assert [(step.action, step.reasoning, step.observation.screenshot) for step in run.steps] == [
        ("Navigate", None, None),
        ("Click", "I see it.", ImageRef(path=image)),
        (None, None, ImageRef(path=image.with_name("2_full_screenshot.png"))),
    ]
    assert run.metadata["warnings"] == []


def test_screenshots_counted_from_0_show_what_each_action_saw(tmp_path: Path) -> None:
    mind2web(tmp_path / TASK, numbers=(0, 1))
    [run], [] = split(load(tmp_path))
    assert [step.action for step in run.steps] == ["Navigate", "Click"]
    assert all(step.observation.screenshot for step in run.steps)


def test_submissions_of_one_task_are_attempts(tmp_path: Path) -> None:
    mind2web(tmp_path / f"{TASK}_110325", task_id=f"{TASK}_110325")
    mind2web(tmp_path / TASK)
    mind2web(tmp_path / "renamed", task_id="ffff")
    runs, [] = split(load(tmp_path))
    assert [(run.key.task_id, run.key.attempt, run.raw_task_id) for run in runs] == [
        (TASK, 0, TASK),
        (TASK, 1, f"{TASK}_110325"),
        ("ffff", 0, "ffff"),
    ]
    assert [run.raw_task_id for run in split(load(tmp_path, only("ffff")))[0]] == ["ffff"]


def test_amiss_screenshots_and_lengths_are_told(tmp_path: Path) -> None:
    folder = mind2web(tmp_path / TASK, numbers=(2, 3, 12))
    result = json.loads((folder / "result.json").read_text())
    result["thoughts"] = ["a", "b", "c"]
    (folder / "result.json").write_text(json.dumps(result))
    (folder / "trajectory" / "2_full_screenshot.png").write_bytes(LFS_POINTER)
    [run], [] = split(load(tmp_path))
    assert run.metadata["warnings"] == [
        "2 actions but 3 thoughts.",
        "The screenshot 2_full_screenshot.png is a git-LFS pointer, not an image.",
        "The screenshot 12_full_screenshot.png belongs to no action.",
        "There is no screenshot of number 1.",
    ]


def test_a_damaged_folder_is_named(tmp_path: Path) -> None:
    mind2web(tmp_path / "a", task_id="a")
    (mind2web(tmp_path / "b") / "result.json").write_text('{"task_id": "b", "task": ""}')
    (mind2web(tmp_path / "c") / "result.json").write_text('{"task_id": 1}')
    [run], bad = split(load(tmp_path))
    assert run.key.task_id == "a"
    assert [result.key and result.key.task_id for result in bad] == ["1", "b"]


def test_what_a_run_that_broke_off_left_is_named(tmp_path: Path) -> None:
    """Such folders were passed over; the attempts of whole runs are counted without them."""
    mind2web(tmp_path / "b", task_id="task")
    (mind2web(tmp_path / "a", task_id="task") / "trajectory").rename(tmp_path / "elsewhere")
    (tmp_path / "c" / "trajectory").mkdir(parents=True)
    (tmp_path / "notes").mkdir()
    [run], bad = split(load(tmp_path))
    assert (run.key.task_id, run.key.attempt) == ("task", 0)
    assert [(Path(one.source).name, one.reason) for one in bad] == [
        ("c", "result.json cannot be read: No such file or directory"),
        ("a", "the folder trajectory/, with the screenshots, is missing"),
    ]


@pytest.mark.real_data
def test_the_real_submissions(real_data: Path) -> None:
    runs, [] = split(load(real_data / "online-mind2web"))
    assert [(run.raw_task_id, len(run.steps)) for run in runs] == [
        ("bf3b311cc8dce16d3de844f4b5875dfd", 39),
        ("d02d236836924919f35f2438d9ed2374", 6),
        ("e43cbc8a0bf9e999884928d11006f894_110325", 19),
    ]
    imdb = runs[1]
    assert imdb.goal == "Browse the top 250 movies and find one movie that is available on AMC+."
    assert imdb.steps[0].action == "Navigate to https://www.imdb.com/chart/top/"
    assert imdb.steps[0].reasoning is None
    assert imdb.steps[4].action == "Click at (949, 345)"
    assert "**The Shawshank Redemption**" in (imdb.answer or "")
    assert imdb.metadata["warnings"] == [
        f"The screenshot {n}_full_screenshot.png is a git-LFS pointer, not an image."
        for n in range(1, 6)
    ]
    tasks = json.loads((real_data / "online-mind2web" / "tasks.json").read_text())
    assert {run.key.task_id for run in runs} <= {task["task_id"] for task in tasks}
