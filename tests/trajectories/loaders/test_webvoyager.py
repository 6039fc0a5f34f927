"""WebVoyager's result folders, made up and real."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.trajectories.loaders.made import only, split, webvoyager
from trajudge.trajectories.loaders.webvoyager import detect, load
from trajudge.trajectories.model import ImageRef


def test_a_task_folder_gives_the_whole_trajectory(tmp_path: Path) -> None:
    folder = webvoyager(tmp_path / "some-agent" / "taskTea--7")
    assert detect(folder)
    assert detect(folder.parent)
    [run], [] = split(load(folder))
    assert str(run.key) == "webvoyager/some-agent/Tea--7"
    assert run.goal == "Find\ntea."
    assert [(step.reasoning, step.action) for step in run.steps] == [
        ("First\n\nI look.", "Type [2]; tea"),
        ("I forgot the form.", None),
        ("Found.", "ANSWER; Green tea,\n2 euros."),
    ]
    assert [step.observation.screenshot for step in run.steps] == [
        ImageRef(path=folder / "screenshot1.png"),
        None,
        ImageRef(problem=f"{folder}/screenshot3.png is a git-LFS pointer, not an image"),
    ]
    assert (run.answer, run.terminated, run.official_reward) == (
        "Green tea,\n2 euros.",
        True,
        None,
    )
    assert run.metadata == {
        "start_url": "https://tea.example/",
        "warnings": [
            "Turn 2 of the agent names no action.",
            "The screenshot screenshot2.png is missing.",
            "The screenshot screenshot3.png is a git-LFS pointer, not an image.",
        ],
    }


def test_only_a_screenshot_that_was_seen_is_missing(tmp_path: Path) -> None:
    folder = webvoyager(tmp_path / "taskTea--7")
    (folder / "screenshot1.png").unlink()
    (folder / "screenshot3.png").unlink()
    [run], [] = split(load(folder))
    problem = f"{folder}/screenshot1.png is missing"
    shots = [step.observation.screenshot for step in run.steps]
    assert shots == [ImageRef(problem=problem), None, None]


def test_damaged_folders_are_named_and_unwanted_ones_not_opened(tmp_path: Path) -> None:
    webvoyager(tmp_path / "taskTea--1")
    broken = webvoyager(tmp_path / "taskTea--2") / "interact_messages.json"
    broken.write_text("[")
    messages = [{"role": "user", "content": "hello"}]
    (webvoyager(tmp_path / "taskTea--3") / "interact_messages.json").write_text(
        json.dumps(messages)
    )
    [run], bad = split(load(tmp_path))
    assert run.key.task_id == "Tea--1"
    assert [result.key and result.key.task_id for result in bad] == ["Tea--2", "Tea--3"]
    assert "JSON" in bad[0].reason
    assert "no goal" in bad[1].reason
    assert len(list(load(tmp_path, only("Tea--1")))) == 1


@pytest.mark.real_data
def test_the_real_runs(real_data: Path) -> None:
    [salmon, xbox], [] = split(load(real_data / "webvoyager"))
    assert (salmon.key.task_id, xbox.key.task_id) == ("Allrecipes--4", "Amazon--0")
    assert xbox.goal == (
        "Search an Xbox Wireless controller with green color and rated above 4 stars."
    )
    assert [step.action for step in xbox.steps[:2]] == [
        "Type [2]; green Xbox Wireless controller 4 stars",
        "Click [33]",
    ]
    assert (xbox.answer or "").startswith("The green Xbox Wireless controller (")
    assert [step.action for step in salmon.steps[:2]] == ["Click [2]", "Type [2]; Baked Salmon"]
    assert (salmon.answer or "").endswith("a preparation time of 15 minutes.")
    for run, count in ((salmon, 6), (xbox, 3)):
        assert len(run.steps) == count
        assert all(step.reasoning and step.observation.screenshot for step in run.steps)
        assert run.metadata["warnings"] == []
