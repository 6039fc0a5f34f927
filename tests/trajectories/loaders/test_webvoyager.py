"""WebVoyager's result folders, made up and real."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.trajectories.loaders.made import only, split, webvoyager
from trajudge.trajectories.loaders.webvoyager import detect, load
from trajudge.trajectories.model import ImageRef, Trajectory


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


def test_what_a_run_that_broke_off_left_is_named(tmp_path: Path) -> None:
    webvoyager(tmp_path / "taskTea--7")
    (webvoyager(tmp_path / "taskTea--8") / "interact_messages.json").unlink()
    (tmp_path / "notes--1").mkdir()
    [run], [bad] = split(load(tmp_path))
    assert run.key.task_id == "Tea--7"
    assert bad.key == run.key.model_copy(update={"task_id": "Tea--8"})
    assert bad.reason == "interact_messages.json cannot be read: No such file or directory"


OPENING = "Now given a task: Buy.  Please interact with https://x.example/ and get the answer."


def _run(folder: Path, *turns: tuple[str, object]) -> Trajectory:
    folder.mkdir(parents=True, exist_ok=True)
    opening: tuple[str, object] = ("user", f"{OPENING} \nObservation: look")
    messages = [{"role": role, "content": content} for role, content in (opening, *turns)]
    (folder / "interact_messages.json").write_text(json.dumps(messages))
    [run], [] = split(load(folder))
    return run


@pytest.mark.parametrize(
    ("turn", "thought"),
    [
        ("Thought: It is here. Action: ANSWER; 42", "It is here."),
        ("**Thought:** It is here.\n\n**Action:** ANSWER; 42", "It is here."),
        ("Thought: My Action: a click.\nAction: ANSWER; 42", "My Action: a click."),
    ],
)
def test_an_action_on_the_thoughts_line_or_in_bold_is_one(
    tmp_path: Path, turn: str, thought: str
) -> None:
    run = _run(tmp_path / "taskTea--7", ("assistant", turn))
    assert [(step.reasoning, step.action) for step in run.steps] == [(thought, "ANSWER; 42")]
    assert (run.answer, run.terminated) == ("42", True)


@pytest.mark.parametrize("rest", ["", "Observation: An accessibility tree. (Omitted in context.)"])
def test_a_refused_action_is_an_error_that_the_agent_saw(tmp_path: Path, rest: str) -> None:
    refusal = "The action you have chosen cannot be exected. Please double-check it."
    run = _run(
        tmp_path / "taskTea--7",
        ("assistant", "Thought: A.\nAction: Click [99]"),
        ("user", refusal + rest),
        ("assistant", "Thought: B.\nAction: Click [9]"),
        ("user", "Observation: A screenshot and some texts. (Omitted in context.)"),
        ("assistant", "Thought: C.\nAction: ANSWER; 42"),
    )
    assert [step.observation.page_error for step in run.steps] == [None, refusal, None]
    assert [step.observation.screenshot is None for step in run.steps] == [False, True, False]
    assert run.telemetry == {"n_steps": 3.0, "n_err": 1.0}


def test_the_trees_of_a_run_without_pictures_are_read(tmp_path: Path) -> None:
    folder = webvoyager(tmp_path / "taskTea--7")
    (folder / "accessibility_tree1.txt").write_text("[1] RootWebArea 'Té'")
    (folder / "accessibility_tree3.txt").write_bytes("x".encode("utf-16"))
    [run], [] = split(load(folder))
    trees = [step.observation.axtree for step in run.steps]
    assert trees == ["[1] RootWebArea 'Té'", None, None]
    assert "The tree accessibility_tree3.txt is not read" in str(run.metadata["warnings"])


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
